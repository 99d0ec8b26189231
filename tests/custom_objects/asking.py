"""The same steps on two servers, and where their answers differ."""

from __future__ import annotations

import json
import re
import time
from http.client import HTTPException
from typing import Any

from tests.custom_objects.definitions import GROUP, MARKER, Kind
from tests.differential_writes.client import Answer, Server, Step, differences

WAYS_ASKED = 6
#: of operations that are none: the library of patches in the server to ask is a later one than that of a release
_NEWER_LIBRARY = "invalid operation "
PANICKED = ".the other server panics"
STORED_AGAIN = ".stored again"
Form = dict[str, Any]

PANIC = "<connection closed>"
#: how often a refusal is asked for again, to see whether what it says is an accident
ASKED_MAX = 30


#: where the server was built, versions, what is random of several faults, and the text of a patched object, which upstream keeps as it
#: was written
_ACCIDENTAL = (
    (re.compile(r'in scheme ".*?"'), "in scheme <any>"),
    (re.compile(r"in record \(\d+\)"), "in record (<rv>)"),
    (re.compile(r"/registry-crd/"), "/registry/"),
    (re.compile(r"[^ ]*: field not declared in schema$"), "field not declared in schema"),
    (re.compile(r'(patch: Invalid value: |^Invalid value: )"\{.*\}"(: .*)$', re.DOTALL), r"\1<object>\2"),
)
_AGE = re.compile("[0-9]+[smh]").fullmatch
_VERSION = re.compile(r'(resourceVersion\\*":\\*")\d+')
_NO_UID = "123e4567-"
_UNKNOWN = "field not declared in schema"
_SEVERAL = "errors:\n  "


class Compared(Server):
    """A server whose answers are brought to a form in which what is an accident does not show."""

    def normal(self, value: Any, key: str = "") -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return float(value)  # Go writes large floats without an exponent
        if key == "cells" and isinstance(value, list):
            value = ["<age>" if isinstance(cell, str) and _AGE(cell) else cell for cell in value]
        found = super().normal(value, key)
        if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
            if "items" in found or "rows" in found:
                # of the whole store, in which others write as well
                found["metadata"] = {**found["metadata"], "resourceVersion": "<list>"}
            if found["metadata"].get("continue"):
                found["metadata"]["continue"] = "<token>"
        if key == "message" and isinstance(found, str) and _UNKNOWN in found and found.startswith("failed to create typed"):
            return "<unknown fields>"
        if key == "message" and isinstance(found, str) and _SEVERAL in found:
            start, _, errors = found.partition(_SEVERAL)
            return start + _SEVERAL + "\n".join(sorted(line.strip() for line in errors.split("\n")))  # in the order of a Go map
        return found

    def run(self, step: Step) -> Answer:
        """A real server that panics closes the connection."""
        try:
            return super().run(step)
        except HTTPException:
            self._connection = None
            return Answer(code=0, body=PANIC)

    def _text(self, text: str) -> str:
        text = text if _NO_UID in text else super()._text(text)
        for pattern, said in _ACCIDENTAL:
            text = pattern.sub(said, text)
        return _VERSION.sub(r"\1<rv>", text)


def causes(answer: Any) -> list[Any]:
    found: list[Any] = answer["details"]["causes"] if isinstance(answer, dict) and (answer.get("details") or {}).get("causes") else []
    return found


def compare(step: Step, ours: Compared, theirs: Compared, ways: list[Form] | None = None) -> list[str]:
    """The lines in which the answers differ. What the other server refuses now in one way and now in another, since it goes along a Go
    map, is no difference where one of the ways is ours; ``ways`` gets some of them."""
    before = dict(theirs.last)
    here, there = ours.run(step), theirs.run(step)
    if there.body == PANIC:
        return [PANICKED]
    found = _differences(here, there)
    if found and there.code == 400 and str(there.raw.get("message", "")).startswith(_NEWER_LIBRARY):
        return [PANICKED]
    if ways is not None:
        ways.append(form(there))
        for _ in range(WAYS_ASKED if there.code >= 400 else 0):
            theirs.last = dict(before)
            if (way := form(theirs.run(step))) not in ways:
                ways.append(way)
    if not found and (len(causes(there.raw)) < 2 or _in_form(here.raw) == _in_form(there.raw)):
        return []
    if there.code < 400:
        # an applied object is stored as it was applied there, and once more in its settled form by the next write
        return [STORED_AGAIN] if len(found) == 1 and found[0].startswith(".body.metadata.resourceVersion") else found
    for _ in range(ASKED_MAX):
        theirs.last = dict(before)
        again = theirs.run(step)
        theirs.last = dict(before)
        if found and not _differences(here, again):
            return []
        if not found and _in_form(again.raw) != _in_form(there.raw):
            return []
    return found or [f".order: here {_in_form(here.raw)}, there {_in_form(there.raw)}"]


def form(answer: Answer) -> Form:
    return {"code": answer.code, "body": answer.body, "warnings": answer.warnings}


def _differences(here: Answer, there: Answer) -> list[str]:
    return differences(form(here), form(there))


def _in_form(answer: Any) -> str:
    return json.dumps([[cause.get("reason"), cause.get("field"), cause.get("message")] for cause in causes(answer)])


def define(server: Server, kind: Kind) -> int:
    """The code of the answer; 201 when it is served."""
    code, body, _ = server.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind.definition())
    if code not in (201, 409):
        print(kind.plural, code, json.dumps(body)[:3000])
        return code
    until = time.monotonic() + 30
    versions = list(kind.schemas)
    while any(server.raw("GET", kind.path(version) + "?limit=1")[0] != 200 for version in versions):
        assert time.monotonic() < until, f"{kind.plural} is not served"
        time.sleep(0.1)
    return 201


def tighten(server: Server, kind: Kind) -> bool:
    """Whether the definition that is there became this one, which is in use then."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.plural}.{GROUP}"
    _, found, _ = server.raw("GET", path)
    found["spec"]["versions"] = kind.definition()["spec"]["versions"]
    code, body, _ = server.raw("PUT", path, found)
    if code != 200:
        print(kind.plural, code, json.dumps(body)[:300])
        return False
    until = time.monotonic() + 30
    while not is_tight(server.raw("POST", kind.path() + "?dryRun=All", probe(kind))[1]):
        assert time.monotonic() < until, f"{kind.plural} does not become strict"
        time.sleep(0.05)
    return True


def probe(kind: Kind) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind.kind, "metadata": {"name": "probe"}, MARKER: "loose"}


def is_tight(answer: Any) -> bool:
    return any(cause["field"] == MARKER for cause in causes(answer))
