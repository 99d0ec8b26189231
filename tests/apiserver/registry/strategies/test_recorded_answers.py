"""Refusals of a real kube-apiserver 1.20, recorded: one field of a good object is changed, taken away or doubled, in a create or an update.

``recorded-1.20.json.gz`` has, by a name: the path of the collection, the good object, and for creates and updates what was changed
(``at``; no ``value`` if the field was taken away) with the causes of the refusal. A cause has no message where it shows Go's own form
of a value. Of equal causes one is kept: 1.20 repeats some in updates. Where an answer differs, ``later_rules`` has the rule of a newer
release that makes it so.
"""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.registry.service_allocators import MemoryServiceAllocators
from tests.apiserver.registry.strategies import later_rules
from tests.apiserver.registry.strategies.golden_steps import Server

RECORDED: dict[str, Any] = json.loads(gzip.decompress((Path(__file__).parent / "recorded-1.20.json.gz").read_bytes()))


def _server() -> Server:
    server = Server()
    server.allocators = MemoryServiceAllocators("10.0.0.0/24", "30000-32767", server.random)
    return server


def _changed(obj: Any, case: dict[str, Any]) -> Any:
    obj = copy.deepcopy(obj)
    *way, last = case["at"]
    at = obj
    for step in way:
        at = at[step]
    if "value" in case:
        at[last] = case["value"]
    else:
        del at[last]
    return obj


def _difference(case: dict[str, Any], answer: Any) -> str:
    found: list[list[str]] = []
    for cause in answer.body.get("details", {}).get("causes", []):
        if (told := [cause["field"], cause["reason"], cause["message"]]) not in found:
            found.append(told)
    shortened = [told[: len(said)] for told, said in zip(found, case["causes"], strict=False)] + found[len(case["causes"]) :]
    if shortened == case["causes"] or later_rules.explain(case["causes"], found):
        return ""
    return f"{case['at']} = {case.get('value', '<none>')!r}: {found} for {case['causes']}"


@pytest.mark.parametrize("name", RECORDED)
def test_creates_are_refused_as_by_a_real_server(name: str) -> None:
    recorded = RECORDED[name]
    answers = [(case, _server().request("POST", recorded["path"], _changed(recorded["object"], case), {})) for case in recorded["create"]]
    assert [said for case, answer in answers if (said := _difference(case, answer))] == []


@pytest.mark.parametrize("name", [name for name, recorded in RECORDED.items() if recorded["update"]])
def test_updates_are_refused_as_by_a_real_server(name: str) -> None:
    recorded = RECORDED[name]
    server = _server()
    server.request("POST", recorded["path"], copy.deepcopy(recorded["object"]), {})
    path = f"{recorded['path']}/{recorded['object']['metadata']['name']}"
    kept = copy.deepcopy(server.objects)
    wrong = []
    for case in recorded["update"]:
        server.objects = copy.deepcopy(kept)
        wrong.append(_difference(case, server.request("PUT", path, _changed(recorded["object"], case), {})))
    assert [said for said in wrong if said] == []
