"""Changes to definitions that are established: patches, writes of the status, invalid parts that were there before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.crd_definitions.bodies import GONE, TEXT, WHOLE, changed, definition, version
from tests.crd_definitions.exchange import DEFINITIONS, Case, Step

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_ROOT = {"type": "object", "properties": {"spec": {"type": "object"}}}


def _versions(*said: tuple[str, bool, bool]) -> list[dict[str, Any]]:
    return [{**version(name), "served": served, "storage": storage} for name, served, storage in said]


def _merges() -> Iterator[tuple[str, Any]]:
    yield "nothing", {}
    yield "label", {"metadata": {"labels": {"a": "b"}}}
    yield "name", {"metadata": {"name": "other.example.com"}}
    yield "uid", {"metadata": {"uid": "other"}}
    yield "resource-version", {"metadata": {"resourceVersion": "1"}}
    yield "resource-version-word", {"metadata": {"resourceVersion": "x"}}
    yield "group", {"spec": {"group": "other.example.com"}}
    yield "scope", {"spec": {"scope": "Cluster"}}
    yield "kind", {"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}}
    yield "plural", {"spec": {"names": {"plural": "others"}}}
    yield "singular", {"spec": {"names": {"singular": "other"}}}
    yield "short-names", {"spec": {"names": {"shortNames": ["w"], "categories": ["all"]}}}
    yield "no-names", {"spec": {"names": None}}
    yield "no-spec", {"spec": None}
    yield "no-versions", {"spec": {"versions": []}}
    yield "stored-version-gone", {"spec": {"versions": _versions(("v2", True, True))}}
    yield "version-more", {"spec": {"versions": _versions(("v1", True, True), ("v2", True, False))}}
    yield "version-twice", {"spec": {"versions": _versions(("v1", True, True), ("v1", True, False))}}
    yield "storage-moved", {"spec": {"versions": _versions(("v1", True, False), ("v2", True, True))}}
    yield "storage-twice", {"spec": {"versions": _versions(("v1", True, True), ("v2", True, True))}}
    yield "storage-nowhere", {"spec": {"versions": _versions(("v1", True, False))}}
    yield "unserved", {"spec": {"versions": _versions(("v1", False, True))}}
    yield "preserve", {"spec": {"preserveUnknownFields": True}}
    yield "webhook-empty", {"spec": {"conversion": {"strategy": "Webhook"}}}
    yield "webhook-url", {"spec": {"conversion": {"webhook": {"clientConfig": {"url": "https://127.0.0.1/x"}}}}}
    webhook = {"clientConfig": {"url": "https://127.0.0.1/x"}, "conversionReviewVersions": ["v1"]}
    yield "webhook", {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    yield "webhook-versions", {"spec": {"conversion": {"strategy": "Webhook", "webhook": {**webhook, "conversionReviewVersions": ["v9"]}}}}
    yield "conversion-gone", {"spec": {"conversion": None}}
    yield "status", {"status": {"storedVersions": [], "acceptedNames": {"plural": "x", "kind": "y"}}}
    yield "unknown", {"unknown": 1, "spec": {"unknown": 1}}
    yield "type", {"spec": {"scope": 1}}
    yield "list", []
    yield "word", "x"


def _invalid() -> Iterator[tuple[str, Any, Any]]:
    """A schema that is good, and one that is not."""
    yield "pattern", TEXT, {**TEXT, "pattern": "("}
    yield "default", WHOLE, {**WHOLE, "default": "x"}
    yield "rule", WHOLE, {**WHOLE, "x-kubernetes-validations": [{"rule": "self >"}]}
    yield "no-type", WHOLE, {"description": "x"}
    yield "list-type", {"type": "array", "items": TEXT}, {"type": "array", "items": TEXT, "x-kubernetes-list-type": "other"}
    yield "enum", TEXT, {**TEXT, "enum": ["a", "a"], "default": "b"}


def _statuses() -> Iterator[tuple[str, Any]]:
    yield "nothing", {}
    yield "stored-gone", {"status": {"storedVersions": []}}
    yield "stored-null", {"status": {"storedVersions": None}}
    yield "stored-other", {"status": {"storedVersions": ["v2"]}}
    yield "stored-more", {"status": {"storedVersions": ["v1", "v2"]}}
    yield "stored-twice", {"status": {"storedVersions": ["v1", "v1"]}}
    yield "names", {"status": {"acceptedNames": {"plural": "X", "kind": "y Z"}}}
    yield "names-gone", {"status": {"acceptedNames": None}}
    yield "conditions-gone", {"status": {"conditions": None}}
    yield "condition", {"status": {"conditions": [{"type": "Other", "status": "Perhaps"}]}}
    yield "gone", {"status": None}
    yield "spec", {"spec": {"scope": "Cluster"}}
    yield "metadata", {"metadata": {"labels": {"a": "b"}, "finalizers": ["a/b"], "annotations": {"c": "d"}}}
    yield "unknown", {"status": {"unknown": 1}}


def _patches() -> Iterator[tuple[str, str, Any]]:
    yield "json-replace", JSON_PATCH, [{"op": "replace", "path": "/spec/scope", "value": "Cluster"}]
    yield "json-remove", JSON_PATCH, [{"op": "remove", "path": "/spec/versions/0"}]
    yield "json-test", JSON_PATCH, [{"op": "test", "path": "/spec/scope", "value": "Cluster"}]
    yield "json-add", JSON_PATCH, [{"op": "add", "path": "/spec/names/shortNames", "value": ["w"]}]
    yield "json-object", JSON_PATCH, {}
    yield "strategic-label", STRATEGIC, {"metadata": {"labels": {"a": "b"}}}
    yield "strategic-versions", STRATEGIC, {"spec": {"versions": _versions(("v2", True, False))}}
    yield "strategic-names", STRATEGIC, {"spec": {"names": {"shortNames": ["w"]}}}
    yield "strategic-delete", STRATEGIC, {"spec": {"names": {"$patch": "delete"}}}
    yield "no-kind", "application/json", {}


def update_cases() -> Iterator[Case]:
    def sequence(name: str, *steps: tuple[str, str, Any, str, str], schema: Any = None) -> Case:
        group = f"{name}.updates.example.com"
        body = definition(version(schema=schema), group=group)
        path = f"{DEFINITIONS}/widgets.{group}"
        begin = (Step(method="POST", path=DEFINITIONS, body=body, quiet=True), Step(method="GET", path=path, established=True))
        asked = (Step(method=m, path=f"{path}{sub}?{query}", body=b, content_type=kind) for m, sub, b, kind, query in steps)
        return Case(name=f"update-{name}", steps=(*begin, *asked))

    dry = "dryRun=All"
    for name, merge in _merges():
        yield sequence(f"merge-{name}", ("PATCH", "", merge, MERGE, dry))
    for name, merge in _statuses():
        yield sequence(f"status-{name}", ("PATCH", "/status", merge, MERGE, dry))
    for name, kind, patch in _patches():
        yield sequence(f"patch-{name}", ("PATCH", "", patch, kind, dry))
    for name, good, bad in _invalid():
        schema = {**_ROOT, "properties": {"x": good}}
        worse = {"spec": {"versions": [version(schema={**_ROOT, "properties": {"x": bad}})]}}
        yield sequence(f"invalid-{name}", ("PATCH", "", worse, MERGE, dry), schema=schema)
    for name, changes in _written():
        group = f"{name}.updates.example.com"
        body = changed(definition(group=group), changes)
        yield sequence(name, ("PUT", "", body, "application/json", dry))
    for name, changes in _written():
        group = f"apply-{name}.updates.example.com"
        body = changed(definition(group=group), changes)
        yield sequence(f"apply-{name}", ("PATCH", "", body, APPLY, f"{dry}&fieldManager=other"))
        yield sequence(f"force-{name}", ("PATCH", "", body, APPLY, f"{dry}&fieldManager=other&force=true"))


def _written() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "put-same", {}
    yield "put-scope", {"spec.scope": "Cluster"}
    yield "put-no-spec", {"spec": GONE}
    yield "put-short", {"spec.names.shortNames": ["w"]}
    yield "put-kind", {"kind": "Other"}
    yield "put-old", {"metadata.resourceVersion": "1"}
    yield "put-version", {"spec.versions.0.name": "v2"}
