"""Answers of structured-merge-diff 6.3 itself, recorded from random objects, applies and updates.

``structured_merge_diff_cases.json`` holds for each case the live object, its managers, what came, and what the library's updater said:
the new managers, the object after an apply, the conflicts, or the error. Nulls, duplicates in keyed lists and wrong types are among them.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery import apply_types, fieldset, managed_fields, server_side_apply, typed_fields
from apiserver.machinery.managed_fields import Entries, Entry, ManagerId
from apiserver.machinery.object_versions import ObjectVersions
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import ListType, Shape, Type

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("structured_merge_diff_cases.json").read_text())

STRING, INTEGER = Type(shape=Shape.STRING), Type(shape=Shape.INTEGER)


def struct(**fields: Type) -> Type:
    return Type(shape=Shape.STRUCT, fields=fields)


def keyed(element: Type, *keys: str) -> Type:
    return Type(shape=Shape.LIST, element=element, list_type=ListType.MAP, list_map_keys=keys)


STRINGS = Type(shape=Shape.MAP, element=STRING)
SET = Type(shape=Shape.LIST, element=STRING, list_type=ListType.SET)
PAIR = struct(x=STRING, y=INTEGER)
ATOMIC = Type(shape=Shape.STRUCT, fields=PAIR.fields, map_is_atomic=True)
PORTS = keyed(struct(port=INTEGER, proto=Type(shape=Shape.STRING, default="TCP", has_default=True), z=STRING), "port", "proto")
ROOT = struct(
    apiVersion=STRING,
    kind=STRING,
    metadata=struct(name=STRING, uid=STRING, labels=STRINGS, finalizers=SET),
    spec=struct(
        a=STRING,
        n=INTEGER,
        b=Type(shape=Shape.BOOLEAN),
        o=PAIR,
        at=ATOMIC,
        map=STRINGS,
        mapo=Type(shape=Shape.MAP, element=PAIR),
        plain=Type(shape=Shape.LIST, element=STRING),
        set=SET,
        keyed=keyed(struct(k=STRING, v=INTEGER, o=PAIR, m=STRINGS, set=SET, sub=PORTS), "k"),
        ports=PORTS,
        any=Type(shape=Shape.ANY, preserve_unknown=True),
    ),
)
#: under this name the library was asked to record an update
CURRENT = "cur"
UNOWNED = fieldset.of_paths(
    fieldset.fields("apiVersion"),
    fieldset.fields("kind"),
    fieldset.fields("metadata"),
    *(fieldset.fields("metadata", name) for name in typed_fields.UNOWNED_METADATA),
)


def identity(text: str) -> ManagerId:
    return ManagerId(*text.split("|"))


def entries_of(managers: dict[str, Any]) -> Entries:
    return {
        identity(name): Entry(id=identity(name), api_version="v1", time="n", fields=fieldset.parse(found["fields"]))
        for name, found in managers.items()
    }


def paths(entries: Entries) -> dict[str, list[str]]:
    return {"|".join(i): sorted(map(fieldset.text_of, fieldset.paths(e.fields))) for i, e in entries.items()}


def wanted_paths(case: dict[str, Any]) -> dict[str, list[str]]:
    """The library knows nothing of fields that nobody owns: they are taken out of the entry of the manager that wrote."""
    out = {}
    for name, found in case["answer"]["managers"].items():
        fields = fieldset.parse(found["fields"])
        if name == case["manager"]:
            fields = fieldset.difference(fields, UNOWNED)
        if fields:
            out[name] = sorted(map(fieldset.text_of, fieldset.paths(fields)))
    return out


@pytest.mark.parametrize("case", [c for c in CASES if c["op"] == "update"], ids=lambda c: c["manager"])
def test_updates(case: dict[str, Any]) -> None:
    entries = entries_of(case["managers"])
    after = managed_fields.record_update(
        entries, case["live"], case["new"], versions=ObjectVersions(apply_types.of(ROOT), "v1", None), manager="", subresource="", now="n"
    )
    found = paths(after)
    if (own := found.pop("unknown|Update|v1|", None)) is not None:
        found[CURRENT] = own
    assert found == wanted_paths(case)


@pytest.mark.parametrize("case", [c for c in CASES if c["op"] == "apply"], ids=lambda c: c["manager"])
def test_applies(case: dict[str, Any]) -> None:
    live = managed_fields.with_entries(case["live"], managed_fields.encode(entries_of(case["managers"]))) if case["live"] else None
    before = copy.deepcopy((live, case["new"]))
    answer = case["answer"]
    try:
        new = server_side_apply.apply(
            live,
            case["new"],
            type=ROOT,
            manager=identity(case["manager"]).manager,
            force=case["force"],
            api_version="v1",
            kind="K",
            now="later",
        )
    except StatusError as e:
        if "conflicts" in answer:
            found = [cause["field"] for cause in e.status["details"]["causes"]]
            assert sorted(found) == sorted(conflict.split(" ", 1)[1] for conflict in answer["conflicts"])
        else:
            assert e.message == f"failed to create typed patch object (/n; v1, Kind=K): {answer['error']}"
        return
    finally:
        assert (live, case["new"]) == before
    assert "managers" in answer
    assert paths(managed_fields.decode(managed_fields.of_object(new), trusted=True)) == wanted_paths(case)
    assert managed_fields.without_entries(new) == answer.get("object", case["live"])
