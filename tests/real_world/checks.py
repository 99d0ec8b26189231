"""What is done with one definition: loaded, its objects written, listed, explained, applied, deleted; then it goes with them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.apiserver.api import APPLY, Api
from tests.real_world import minimal

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ESTABLISHED_SECONDS_MAX = 20.0


class Loader(yaml.CSafeLoader):
    """To Kubernetes an equals sign and a time are texts, to YAML 1.1 of types of their own."""


Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: node.value)
Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: node.value)


@dataclass(slots=True)
class Outcome:
    """``problems``: what did not work. ``refused``: the rules (CEL) that a minimal object broke, as the server told them."""

    name: str
    versions: int = 0
    rules: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def definitions_in(directories: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for directory in directories:
        for path in sorted(directory.rglob("*.y*ml")):
            for document in yaml.load_all(path.read_text(), Loader):
                if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                    yield path, document


async def check(api: Api, definition: dict[str, Any]) -> Outcome:
    """``api``: a server with namespace ``ns-a``, in which the definition is not yet."""
    outcome = Outcome(definition["metadata"]["name"])
    definition = {**definition, "metadata": {"name": outcome.name, "annotations": definition["metadata"].get("annotations") or {}}}
    webhook = (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"
    if webhook:  # nobody would answer: its versions are served as they are stored
        definition["spec"] = {**definition["spec"], "conversion": {"strategy": "None"}}
    begins = time.perf_counter()
    made = await api.post(CRDS, definition)
    if made.status != 201:
        outcome.problems.append(f"create of the definition: {made.status} {made.message[:500]}")
        return outcome
    try:
        if not await established(api, outcome.name):
            outcome.problems.append("not established")
            return outcome
        for version in definition["spec"]["versions"]:
            if version.get("served"):
                outcome.versions += 1
                await _check_version(api, definition["spec"], version, outcome)
    finally:
        gone = await api.delete(f"{CRDS}/{outcome.name}")
        if gone.status != 200:
            outcome.problems.append(f"delete of the definition: {gone.status} {gone.body[:300]!r}")
        elif not await gone_for_good(api, outcome.name):
            outcome.problems.append("the definition does not end")
        outcome.seconds = time.perf_counter() - begins
    return outcome


async def established(api: Api, name: str) -> bool:
    ends = time.monotonic() + ESTABLISHED_SECONDS_MAX
    while time.monotonic() < ends:
        found = (await api.get(f"{CRDS}/{name}")).json["status"]
        if any(c["type"] == "Established" and c["status"] == "True" for c in found.get("conditions") or ()):
            return True
        await asyncio.sleep(0.005)
    return False


async def gone_for_good(api: Api, name: str) -> bool:
    """A definition ends once its objects have."""
    ends = time.monotonic() + ESTABLISHED_SECONDS_MAX
    while time.monotonic() < ends:
        if (await api.get(f"{CRDS}/{name}")).status == 404:
            return True
        await asyncio.sleep(0.005)
    return False


async def _check_version(api: Api, spec: dict[str, Any], version: dict[str, Any], outcome: Outcome) -> None:
    group, name, names = spec["group"], version["name"], spec["names"]
    base = f"/apis/{group}/{name}" + ("/namespaces/ns-a" if spec["scope"] == "Namespaced" else "") + f"/{names['plural']}"
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    outcome.rules += _count_rules(schema)

    def problem(step: str, answer: Any) -> None:
        outcome.problems.append(f"{name}: {step}: {answer.status} {answer.body[:700].decode(errors='replace')}")

    try:
        body = minimal.value(schema)
    except ValueError as error:
        outcome.problems.append(f"{name}: {error}")
        return
    body = {key: inner for key, inner in body.items() if key != "status"}
    body |= {"apiVersion": f"{group}/{name}", "kind": names["kind"], "metadata": {"name": "minimal"}}
    made = await api.post(base, body, query={"fieldValidation": "Strict"})
    if made.status == 422 and _only_rules(made.json):
        outcome.refused.append(made.message)
    elif made.status != 201:
        problem("create", made)
    listed = await api.get(base, headers={"accept": TABLE})
    if listed.status != 200 or len(listed.json["rows"]) != int(made.status == 201):
        problem("list", listed)
    elif [c["name"] for c in listed.json["columnDefinitions"]][:1] != ["Name"]:
        problem("columns", listed)
    explained = await api.get(f"/openapi/v3/apis/{group}/{name}")
    schemas = explained.json["components"]["schemas"] if explained.status == 200 else {}
    if not any(k.get("kind") == names["kind"] for s in schemas.values() for k in s.get("x-kubernetes-group-version-kind") or ()):
        problem("openapi", explained)
    if made.status != 201:
        return
    applied = await api.patch(f"{base}/minimal", body, APPLY, query={"fieldManager": "applier", "force": "true"})
    if applied.status != 200:
        problem("apply", applied)
    status = (version.get("subresources") or {}).get("status")
    if status is not None:
        read = await api.get(f"{base}/minimal/status")
        if read.status != 200:
            problem("status", read)
    gone = await api.delete(f"{base}/minimal")
    if gone.status != 200:
        problem("delete", gone)


def _count_rules(schema: Any) -> int:
    if isinstance(schema, dict):
        own = len(schema.get("x-kubernetes-validations") or ()) if isinstance(schema.get("x-kubernetes-validations"), list) else 0
        return own + sum(_count_rules(inner) for inner in schema.values())
    return sum(_count_rules(inner) for inner in schema) if isinstance(schema, list) else 0


def _only_rules(status: dict[str, Any]) -> bool:
    """Whether nothing but rules of the schema refused an object: a failed rule is told as an invalid value, with the rule's message."""
    causes = status["details"].get("causes") or []
    return bool(causes) and all(c.get("reason") in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired") for c in causes)
