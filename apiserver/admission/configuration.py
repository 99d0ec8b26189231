"""``--admission-control-config-file``: what plugins are told beyond their flags (apiserver.config.k8s.io AdmissionConfiguration).

Each plugin's part stands in the file itself (``configuration``) or in one of its own (``path``, from the file's directory). A part for a
plugin that has none, and what nobody asks for, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apiserver.admission.optional_settings import EventLimit, ImagePolicy, TolerationConfiguration
from apiserver.admission.pod_security import policy
from apiserver.admission.pod_security.policy import Wanted
from apiserver.machinery import names
from apiserver.machinery.config_file import ConfigFileError, Section, read_config
from apiserver.outbound import kubeconfig
from apiserver.outbound.kubeconfig import NO_USERS, Users

_GROUP = "apiserver.config.k8s.io"
_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_POD_SECURITY = "pod-security.admission.config.k8s.io"
#: by plugin: the group and kind of its part; two of old have neither
_PARTS = {
    "PodSecurity": (_POD_SECURITY, "PodSecurityConfiguration"),
    "ResourceQuota": (_GROUP, "ResourceQuotaConfiguration"),
    "MutatingAdmissionWebhook": (_GROUP, "WebhookAdmissionConfiguration"),
    "ValidatingAdmissionWebhook": (_GROUP, "WebhookAdmissionConfiguration"),
    "EventRateLimit": ("eventratelimit.admission.k8s.io", "Configuration"),
    "PodTolerationRestriction": ("podtolerationrestriction.admission.k8s.io", "Configuration"),
    "PodNodeSelector": ("", ""),
    "ImagePolicyWebhook": ("", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSecurityConfiguration:
    """``defaults``: by mode, of namespaces whose labels do not say. The rest is exempt from everything."""

    defaults: dict[str, Wanted] = field(default_factory=dict)
    usernames: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedResource:
    """A resource that may be consumed only where a quota covers it: what contains one of ``match_contains``, and objects in one of the
    ``match_scopes`` (scoped-resource selector requirements)."""

    group: str
    resource: str
    match_contains: tuple[str, ...] = ()
    match_scopes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionConfiguration:
    pod_security: PodSecurityConfiguration = field(default_factory=PodSecurityConfiguration)
    limited_resources: tuple[LimitedResource, ...] = ()
    #: as whom webhooks are called, by the plugin that calls them
    webhook_users: Mapping[str, Users] = field(default_factory=dict)
    event_limits: tuple[EventLimit, ...] = ()
    tolerations: TolerationConfiguration = field(default_factory=TolerationConfiguration)
    node_selectors: dict[str, str] = field(default_factory=dict)
    image_policy: ImagePolicy | None = None


NO_POD_SECURITY = PodSecurityConfiguration()
NO_CONFIGURATION = AdmissionConfiguration()


def load(file: Path) -> AdmissionConfiguration:
    """Raises ConfigFileError, OSError."""
    from apiserver.admission import optional_configuration

    root = read_config(file.read_text(encoding="utf-8"), _GROUP, _VERSIONS, "AdmissionConfiguration")
    users: dict[str, Users] = {}
    found: dict[str, Any] = {"webhook_users": users}
    problems: list[str] = []
    for plugin in root.sections("plugins"):
        name, path, own = plugin.text("name"), plugin.text("path"), plugin.section("configuration")
        if path and own is not None:
            problems.append(f"{plugin.path()}: path and configuration exclude each other")
        if name not in _PARTS:
            problems.append(f'{plugin.path("name")}: "{name}" has no configuration; these have one: {", ".join(_PARTS)}')
            continue
        part = _part(file, path, own, *_PARTS[name], problems)
        if part is None:
            continue
        match name:
            case "PodSecurity":
                found["pod_security"] = _pod_security(part, problems)
            case "ResourceQuota":
                found["limited_resources"] = _limited(part)
            case "EventRateLimit":
                found["event_limits"] = optional_configuration.event_limits(part, problems)
            case "PodTolerationRestriction":
                found["tolerations"] = optional_configuration.tolerations(part)
            case "PodNodeSelector":
                found["node_selectors"] = optional_configuration.node_selectors(part)
            case "ImagePolicyWebhook":
                directory = (file.parent / path).parent if path else file.parent
                found["image_policy"] = optional_configuration.image_policy(part, directory, problems)
            case _:
                users[name] = _webhook_users(part, problems)
        if part is not own:
            problems += part.problems()
    if problems := root.problems() + problems:
        raise ConfigFileError(problems)
    return AdmissionConfiguration(**found)


def _part(file: Path, path: str, own: Section | None, group: str, kind: str, problems: list[str]) -> Section | None:
    if path:
        return read_config((file.parent / path).read_text(encoding="utf-8"), group, _VERSIONS, kind)
    if own is not None and group:
        api_version = own.text("apiVersion")
        if api_version not in [f"{group}/{version}" for version in _VERSIONS] or own.text("kind") != kind:
            problems.append(f"{own.path()}: it must be of apiVersion {group}/v1 and kind {kind}")
    return own


def _webhook_users(part: Section, problems: list[str]) -> Users:
    path = Path(part.text("kubeConfigFile"))
    if not path.is_absolute():
        problems.append(f"{part.path('kubeConfigFile')}: must be an absolute file path")
        return NO_USERS
    try:
        return kubeconfig.load_users(path)
    except OSError as error:
        problems.append(f"{part.path('kubeConfigFile')}: {path}: {error.strerror}")
    except kubeconfig.KubeconfigError as error:
        problems.append(f"{part.path('kubeConfigFile')}: {path}: {error}")
    return NO_USERS


def _pod_security(part: Section, problems: list[str]) -> PodSecurityConfiguration:
    said, exempt = part.required_section("defaults"), part.required_section("exemptions")
    levels = [level.value for level in policy.Level]
    defaults: dict[str, Wanted] = {}
    for mode in policy.MODES:
        level, version = said.text(mode) or "privileged", said.text(f"{mode}-version") or "latest"
        if level not in levels:
            problems.append(f"{said.path(mode)}: {policy.WRONG_LEVEL}")
        elif not policy.is_version(version):
            problems.append(f'{said.path(f"{mode}-version")}: must be "latest" or "v1.x"')
        else:
            defaults[mode] = Wanted(level=policy.Level(level), version=version)
    checks: dict[str, Callable[[str], list[str]]] = {
        "usernames": lambda name: [] if name else ["username must not be empty"],
        "runtimeClasses": names.dns1123_subdomain,
        "namespaces": names.dns1123_label,
    }
    for key, check in checks.items():
        said_names = exempt.texts(key)
        for position, name in enumerate(said_names):
            if wrong := check(name):
                problems.append(f"{exempt.path(key)}[{position}]: {', '.join(wrong)}")
            elif name in said_names[:position]:
                problems.append(f'{exempt.path(key)}[{position}]: "{name}" stands there twice')
    return PodSecurityConfiguration(
        defaults=defaults,
        usernames=frozenset(exempt.texts("usernames")),
        runtime_classes=frozenset(exempt.texts("runtimeClasses")),
        namespaces=frozenset(exempt.texts("namespaces")),
    )


def _limited(part: Section) -> tuple[LimitedResource, ...]:
    found = []
    for said in part.sections("limitedResources"):
        scopes = [
            {"scopeName": scope.text("scopeName"), "operator": scope.text("operator"), "values": list(scope.texts("values"))}
            for scope in said.sections("matchScopes")
        ]
        found.append(
            LimitedResource(
                group=said.text("apiGroup"),
                resource=said.text("resource"),
                match_contains=said.texts("matchContains"),
                match_scopes=tuple(scopes),
            )
        )
    return tuple(found)
