"""Applies and managedFields as real API servers answered them: the transcripts ``apply`` and ``crd-patch`` replayed on the pure functions.

A dict of objects stands for the server; only scenarios whose kinds need no controllers and no defaulting beyond a constant are run.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.machinery import managed_fields, merge_patch, server_side_apply
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Type
from apiserver.schemas.schema_set import SchemaSet
from tests.apiserver.machinery import structural_types

GOLDEN = Path(__file__).parents[2] / "golden"
SCHEMAS = SchemaSet.load("1.34")
NOW = "2024-01-02T03:04:05Z"

CONFIG_MAPS = [
    "create-by-apply",
    "apply-as-yaml-text",
    "managed-fields-of-create-and-update",
    "removal-of-owned-fields",
    "fields-of-others-stay",
    "conflict",
    "shared-ownership",
    "containers-by-name",
    "sets",
    "managed-fields-in-the-body",
    "first-apply-after-managed-fields-were-cleared",
    "one-name-two-operations",
    "force-takes-only-what-is-applied",
]
CUSTOM = [
    "create, update and patch record their managers",
    "apply creates an object and owns what it named",
    "apply again removes what is no longer named",
    "an apply that changes nothing keeps the resource version",
    "two appliers conflict over one field",
    "apply and defaults - a default is nobody's",
    "apply to status has its own entry",
    "applying labels, annotations, finalizers and owners",
    "an update of status records its own entry",
]


def scenario(area: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in json.loads((GOLDEN / f"{area}.json").read_text())["scenarios"] if s["name"] == name)
    return found


class Server:
    """The least that an API server does around the functions under test."""

    def __init__(self, custom: Type | None = None) -> None:
        self.objects: dict[str, Object] = {}
        self.custom = custom

    def type_of(self, obj: Object) -> Type:
        if self.custom is not None:
            return self.custom
        group, _, version = obj["apiVersion"].rpartition("/")
        return SCHEMAS.type_of(group, version, obj["kind"])

    def default(self, obj: Object) -> Object:
        obj = copy.deepcopy(obj)
        if self.custom is not None and isinstance(obj.get("spec"), dict):
            obj["spec"].setdefault("d", "dee")
        defaulted: Object = without_nulls(obj)
        return defaulted

    def do(self, step: dict[str, Any]) -> tuple[int, Object]:
        verb, _, url = step["do"].partition(" ")
        url, _, query_text = url.partition("?")
        query = dict(part.split("=") for part in query_text.split("&") if part) | step.get("query", {})
        parts = url.strip("/").split("/")
        subresource = parts.pop() if parts[-1] == "status" else ""
        kinds = {"configmaps": "ConfigMap", "podtemplates": "PodTemplate", "widgets": "Widget"}
        name = parts[-1] if parts[-1] not in kinds else ""
        resource = parts[-2] if name else parts[-1]
        api_version = "v1" if parts[0] == "api" else "/".join(parts[1:3])
        body: Any = yaml.safe_load(step["raw"]) if "raw" in step else copy.deepcopy(step.get("body"))
        manager = query.get("fieldManager", "")
        content = step.get("headers", {}).get("Content-Type", "application/json")
        if verb == "POST":
            name = body["metadata"]["name"]
        live = self.objects.get(name)
        if verb == "GET":
            return (200, live) if live is not None else (404, {})
        if verb == "PATCH" and "apply" in content:
            if subresource and live is None:
                return 404, {}
            filters = managed_fields.ONLY_STATUS if subresource else managed_fields.WITHOUT_STATUS
            try:
                new = server_side_apply.apply(
                    live,
                    body,
                    type=self.type_of({"apiVersion": api_version, "kind": kinds[resource]}),
                    manager=manager,
                    force=query.get("force") == "true",
                    api_version=api_version,
                    kind=kinds[resource],
                    subresource=subresource,
                    now=NOW,
                    reset_fields=filters if self.custom is not None else managed_fields.NO_FILTER,
                )
            except StatusError as e:
                return e.code, e.status
            if new is live:
                return 200, live
            new = self.finish(new, live, subresource)
        else:
            if verb == "PATCH":
                assert live is not None
                body = merge_patch.apply(live, body)
            new = self.default({"apiVersion": api_version, "kind": kinds[resource], **body})
            entries = managed_fields.update(
                live,
                new,
                type=self.type_of(new),
                manager=manager,
                api_version=api_version,
                subresource=subresource,
                now=NOW,
                reset_fields=(managed_fields.ONLY_STATUS if subresource else managed_fields.WITHOUT_STATUS)
                if self.custom is not None
                else managed_fields.NO_FILTER,
            )
            new = self.finish(managed_fields.with_entries(new, entries), live, subresource)
        self.objects[name] = new
        return (201 if live is None else 200), new

    def finish(self, new: Object, live: Object | None, subresource: str) -> Object:
        new = self.default(new)
        if self.custom is not None:
            entries = new["metadata"].get("managedFields", [])
            if subresource:
                assert live is not None
                new = {**live, "status": new.get("status")}
            else:
                new = {k: v for k, v in new.items() if k != "status"} | ({"status": live["status"]} if live and "status" in live else {})
            new = managed_fields.with_entries(new, entries)
        new["metadata"].update(uid="u", namespace="${ns}", creationTimestamp=NOW)
        return new


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def by_manager(entries: Any) -> list[Any]:
    return sorted(entries or [], key=lambda e: [str(e.get(k)) for k in ("manager", "operation", "subresource")])


def normal_entries(entries: Any) -> list[Any]:
    text = json.dumps(by_manager(entries)).replace(NOW, "<time>")
    found: list[Any] = json.loads(re.sub(r"<uid>", "u", text))
    return found


def check(step: dict[str, Any], code: int, answer: Object) -> None:
    expect = step.get("expect")
    if expect is None:
        assert code < 300, (step, answer)
        return
    body = expect["body"]
    assert code == expect["status"], (step["do"], answer)
    if code >= 400:
        if "loose" not in step:
            assert answer == body or not answer
        return
    if "metadata.managedFields" in body or "managedFields" in body.get("metadata", {}):
        wanted = body.get("metadata.managedFields") or body["metadata"]["managedFields"]
        assert normal_entries(answer["metadata"].get("managedFields")) == normal_entries(wanted), step["do"]
    for field in ("data", "spec"):
        if field in body and "metadata.managedFields" not in body:
            assert answer.get(field) == body[field], step["do"]
    for field in ("labels", "annotations", "finalizers"):
        wanted = body.get("metadata." + field, body.get("metadata", {}).get(field))
        if "metadata" in body or "metadata." + field in body:
            assert sorted(answer["metadata"].get(field) or []) == sorted(wanted or []), step["do"]


@pytest.mark.parametrize("name", CONFIG_MAPS)
def test_transcripts_of_built_in_kinds(name: str) -> None:
    server = Server()
    for step in scenario("apply", name)["steps"]:
        check(step, *server.do(step))


@pytest.mark.parametrize("name", CUSTOM)
def test_transcripts_of_custom_resources(name: str) -> None:
    steps = scenario("crd-patch", name)["steps"]
    definition = steps[0]["body"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    meta = SCHEMAS.type_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    server = Server(structural_types.of_custom_resource(definition, meta))
    for step in steps:
        if "do" in step and "widgets.$" not in step["do"] and "until" not in step and "customresourcedefinitions" not in step["do"]:
            if step.get("quiet") and "finalizers" in json.dumps(step.get("body")) and "null" in json.dumps(step.get("body")):
                continue  # lets the namespace go
            check(step, *server.do(step))
