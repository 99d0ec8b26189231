"""Runs the creates and updates of golden transcripts against the strategies alone: decode, default, prepare, validate.

What other rooms do (metadata, admission, patches, storage) is done here in the shortest way that the transcripts need, so that a
difference is the strategies' own.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from apiserver.machinery import merge_patch, names, object_meta_validation, status
from apiserver.machinery.objects import Object
from apiserver.registry.service_allocators import MemoryServiceAllocators
from apiserver.registry.strategies import strategy_for
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.decoding import DecodeError, decode
from apiserver.schemas.schema_set import SchemaSet
from tests.golden import golden

GOLDEN = Path(golden.__file__).parent
NOW = "2024-01-02T03:04:05Z"
VERSION = "1.37"
NAMES = {"ns": "golden-space", "n": "golden-name"}
_METHODS = ("POST", "PUT", "PATCH")


class Answer(NamedTuple):
    code: int
    body: Object


@functools.cache
def schemas() -> SchemaSet:
    return SchemaSet.load(VERSION)


@functools.cache
def table() -> ResourceTable:
    return ResourceTable(VERSION)


class Server:
    """Objects in a dict, one strategy a resource."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        self.objects: dict[str, Object] = {}
        self.allocators = MemoryServiceAllocators("10.96.0.0/12", "30000-32767", self.random)

    def request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer | None:
        """None for what only a whole server answers."""
        info, namespace, name, subresource = _parse(urlsplit(path).path)
        if info is None or method not in _METHODS or not isinstance(body, dict):
            return None
        strategy = strategy_for(info)
        context = StrategyContext(namespace=namespace, now=NOW, user="admin", allocators=self.allocators, schemas=schemas())
        try:
            if method == "POST" and not name:
                return self._create(info, strategy, context, body, dry_run="dryRun" in path)
            if subresource or name not in self._names(info, namespace):
                return None
            return self._update(info, strategy, context, name, method, body, headers)
        except status.StatusError as error:
            return Answer(error.code, error.status)

    def _names(self, info: ResourceInfo, namespace: str) -> set[str]:
        prefix = f"{info.resource}.{info.group}/{namespace}/"
        return {key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)}

    def _decode(self, info: ResourceInfo, body: Object) -> Object:
        body = {"apiVersion": info.api_version, "kind": info.kind, **body}
        try:
            type_ = schemas().type_of(info.group, info.version, info.kind)
            return copy.deepcopy(decode(type_, json.dumps(body).encode()).obj)
        except DecodeError as error:
            raise status.bad_request(f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: {error}') from error

    def _create(self, info: ResourceInfo, strategy: Strategy, context: StrategyContext, body: Object, *, dry_run: bool) -> Answer:
        obj = self._decode(info, body)
        metadata = obj.setdefault("metadata", {})
        if info.namespaced:
            metadata["namespace"] = context.namespace
        strategy.default(obj)
        if info.kind == "Pod":
            _admit_pod(obj)
        metadata["uid"] = names.new_uid(self.random)
        metadata["creationTimestamp"] = NOW
        if strategy.has_generation:
            metadata["generation"] = 1
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = names.generate_name(metadata["generateName"], self.random)
        strategy.prepare_for_create(context, obj)
        errors = object_meta_validation.validate(obj, namespaced=info.namespaced, name_rule=strategy.name_rule)
        errors = errors + strategy.validate(context, obj)
        if errors:
            raise status.invalid(info.group, info.kind, metadata.get("name") or "", errors)
        if not dry_run:
            metadata["resourceVersion"] = "1"
            self.objects[f"{info.resource}.{info.group}/{context.namespace}/{metadata['name']}"] = obj
        return Answer(201, obj)

    def _update(
        self, info: ResourceInfo, strategy: Strategy, context: StrategyContext, name: str, method: str, body: Object, headers: Any
    ) -> Answer:
        key = f"{info.resource}.{info.group}/{context.namespace}/{name}"
        old = self.objects[key]
        kept = copy.deepcopy(old)
        if method == "PUT":
            new = self._decode(info, body)
        elif "strategic" in headers.get("Content-Type", ""):
            new = self._decode(info, _by_name(old, body))
        else:
            new = self._decode(info, merge_patch.apply(copy.deepcopy(old), body))
        metadata = new["metadata"]
        for field in ("uid", "creationTimestamp", "namespace", "generation", "resourceVersion"):
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        strategy.default(new)
        if info.kind == "Pod":
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"]:
                    new["spec"].setdefault(field, old["spec"][field])
        strategy.prepare_for_update(context, new, old)
        errors = object_meta_validation.validate_update(new, old) + strategy.validate_update(context, new, old)
        assert old == kept, "the old object was changed"
        if errors:
            raise status.invalid(info.group, info.kind, name, errors)
        if strategy.has_generation and strategy.spec_changed(new, old):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        self.objects[key] = new
        return Answer(200, new)


def _parse(path: str) -> tuple[ResourceInfo | None, str, str, str]:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None, "", "", ""
    info = table().lookup(group, version, rest[0])
    return info, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""


def _admit_pod(obj: Object) -> None:
    """What the default admission plugins add to any pod."""
    spec = obj["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["priority"], spec["preemptionPolicy"] = 0, "PreemptLowerPriority"
    tolerations = list(spec.get("tolerations") or ())
    for state in ("not-ready", "unreachable"):
        toleration = {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        if toleration not in tolerations:
            tolerations.append(toleration)
    spec["tolerations"] = tolerations


def _by_name(old: Any, patch: Any) -> Any:
    """Strategic merge as far as the transcripts need it: lists of named things are merged by name."""
    if isinstance(old, dict) and isinstance(patch, dict):
        merged = dict(old)
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = _by_name(old.get(key), value)
        return merged
    if isinstance(old, list) and isinstance(patch, list) and patch and isinstance(patch[0], dict):
        found = {entry.get("name"): entry for entry in old}
        found.update({entry.get("name"): _by_name(found.get(entry.get("name"), {}), entry) for entry in patch})
        return list(found.values())
    return copy.deepcopy(patch)


class Case(NamedTuple):
    area: str
    scenario: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.area}/{self.scenario['name']}"


def cases(*areas: str) -> Iterator[Case]:
    for area in areas:
        for scenario in json.loads((GOLDEN / f"{area}.json").read_text())["scenarios"]:
            yield Case(area, scenario)


def differences(case: Case) -> tuple[int, list[str]]:
    """How many steps were compared, and what differed."""
    server, scenario, out, compared = Server(), case.scenario, [], 0
    for number, step in enumerate(scenario["steps"]):
        if "do" not in step or step.get("raw") is not None:
            continue
        method, _, path = golden.fill(step["do"], NAMES).partition(" ")
        answer = server.request(method, path, golden.fill(step.get("body"), NAMES), step.get("headers") or {})
        if answer is None:
            continue
        if step.get("quiet"):
            if answer.code >= 400:
                out.append(f"step {number}: {answer.body['message']}")
            continue
        rules = {r: (step.get(r) or []) + (scenario.get(r) or []) for r in golden.RULES}
        rules["null"] = [".*"]
        rules["extra"], rules["mask"] = rules["extra"] + golden.EXTRA, rules["mask"] + golden.MASK
        body: Any = answer.body
        if step.get("pick") and answer.code < 400:
            body = {where: golden.dig(body, golden.fill(where, NAMES)) for where in step["pick"]}
        seen, want = golden.Normal(NAMES, rules).value(body), step["expect"]
        compared += 1
        if answer.code != want["status"]:
            out.append(f"step {number} {step['do']}: {answer.code}, {want['status']} expected: {golden.short(body)}")
            continue
        wanted = golden.Normal({}, rules).value(want["body"])
        out += [f"step {number} {step['do']}: {d}" for d in golden.differences(wanted, seen, "", rules)]
    return compared, [line for line in out if not _of_another_room(line)]


#: what admission or storage add
_OTHERS = re.compile(r"(resourceVersion|finalizers): missing|metadata\.resourceVersion: unexpected")


def _of_another_room(line: str) -> bool:
    return bool(_OTHERS.search(line))
