"""Our answers to the steps of a group, in process, beside those of the real server."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import orjson

from tests.admission_differential.answers import compared
from tests.admission_differential.groups import GROUPS
from tests.admission_differential.steps import Step
from tests.apiserver.api import Api, config_in, running

RECORDED = Path(__file__).with_name("recorded")
#: API versions of 1.20 that later releases do not serve any more
_LATER_VERSIONS = {"/apis/policy/v1beta1/": "/apis/policy/v1/"}


class Speaking(Api):
    """With headers that may stand there several times."""

    more: tuple[tuple[str, str], ...] = ()

    def scope(self, method: str, path: str, query: Any, headers: dict[str, str]) -> dict[str, Any]:
        scope = super().scope(method, path, query, headers)
        scope["headers"] += [(name.lower().encode(), value.encode()) for name, value in self.more]
        return scope


def recorded(group: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((RECORDED / f"{group}.json.gz").read_bytes()))
    return found


async def ask(api: Speaking, step: Step) -> dict[str, Any]:
    path, _, query = step.path.partition("?")
    for old, new in _LATER_VERSIONS.items():
        path = path.replace(old, new)
    api.more = tuple(step.headers())
    answer = await api.request(step.method, path, step.body, query=query, content_type=step.content_type)
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    return compared(answer.status, body)


async def answers(group: str, directory: Path, **more: Any) -> dict[str, Any]:
    """Of every step, by its name."""
    made = GROUPS[group]
    config = config_in(directory, enable_admission_plugins=made.plugins, service_cluster_ip_range="10.0.0.0/24", **more)
    async with running(config) as running_api:
        api = Speaking(running_api.server, running_api.kv)
        return {step.name: await ask(api, step) for step in made.steps()}


def differences(ours: Any, real: Any, path: str = "") -> list[str]:
    """``path: ours, not real``, each place where the two differ."""
    if isinstance(ours, dict) and isinstance(real, dict):
        keys = sorted({**ours, **real})
        return [told for key in keys for told in differences(ours.get(key), real.get(key), f"{path}.{key}".lstrip("."))]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        return [told for i, pair in enumerate(zip(ours, real, strict=True)) for told in differences(*pair, f"{path}[{i}]")]
    return [] if ours == real else [f"{path}: {ours}, not {real}"]
