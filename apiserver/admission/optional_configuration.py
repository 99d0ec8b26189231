"""The parts of an AdmissionConfiguration that are about plugins which are off by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apiserver.admission.optional_settings import BUCKETS_MAX, EVENT_LIMITS, SERVER, EventLimit, ImagePolicy, TolerationConfiguration
from apiserver.machinery.config_file import Section

#: of answers that are remembered, in seconds, and of pauses, in milliseconds (upstream's bounds)
_TTL_SECONDS_MAX = 30 * 60
_DEFAULT_ALLOW_SECONDS, _DEFAULT_DENY_SECONDS = 300, 30


def event_limits(part: Section, problems: list[str]) -> tuple[EventLimit, ...]:
    found: list[EventLimit] = []
    for said in part.sections("limits"):
        kind, per_second, burst = said.text("type"), said.number("qps") or 0, said.number("burst") or 0
        buckets = said.number("cacheSize") or 0
        if kind not in EVENT_LIMITS:
            problems.append(f'{said.path("type")}: "{kind}" is none of {", ".join(EVENT_LIMITS)}')
        if any(limit.type == kind for limit in found):
            problems.append(f'{said.path("type")}: "{kind}" stands there twice')
        problems += [f"{said.path(name)}: must be positive" for name, value in (("qps", per_second), ("burst", burst)) if value <= 0]
        if burst < per_second:
            problems.append(f"{said.path('burst')}: must be at least qps")
        if buckets < 0 or (buckets and kind == SERVER):
            problems.append(f"{said.path('cacheSize')}: must not be {'set' if buckets > 0 else 'negative'}")
        found.append(EventLimit(type=kind, per_second=per_second, burst=burst, buckets_max=buckets or BUCKETS_MAX))
    if not found:
        problems.append(f"{part.path('limits')}: is needed")
    return tuple(found)


def tolerations(part: Section) -> TolerationConfiguration:
    return TolerationConfiguration(defaults=_tolerations(part, "default"), allowed=_tolerations(part, "whitelist"))


def _tolerations(part: Section, field: str) -> tuple[dict[str, Any], ...]:
    found = []
    for said in part.sections(field):
        one: dict[str, Any] = {name: said.text(name) for name in ("key", "operator", "value", "effect")}
        one["tolerationSeconds"] = said.number("tolerationSeconds")
        found.append({name: value for name, value in one.items() if value not in ("", None)})
    return tuple(found)


def node_selectors(part: Section) -> dict[str, str]:
    said = part.required_section("podNodeSelectorPluginConfig")
    return {name: said.text(name) for name in said.fields()}


def image_policy(part: Section, directory: Path, problems: list[str]) -> ImagePolicy:
    said = part.required_section("imagePolicy")
    file = said.text("kubeConfigFile")
    if not file:
        problems.append(f"{said.path('kubeConfigFile')}: is needed")
    said.number("retryBackoff")  # attempts follow the client's own pauses
    seconds: dict[str, float] = {}
    for field, default in (("allowTTL", _DEFAULT_ALLOW_SECONDS), ("denyTTL", _DEFAULT_DENY_SECONDS)):
        value = said.number(field) or default
        if value > _TTL_SECONDS_MAX or value < -1:
            problems.append(f"{said.path(field)}: must be between 1 and {_TTL_SECONDS_MAX} seconds, or -1")
        seconds[field] = max(0, value)  # -1: nothing is remembered
    return ImagePolicy(
        kubeconfig=str(directory / file),
        allow_seconds=seconds["allowTTL"],
        deny_seconds=seconds["denyTTL"],
        default_allow=said.flag("defaultAllow"),
    )
