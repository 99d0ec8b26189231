"""How the real server is made to tell what it thinks of an expression.

A rule that is always false shows the value in its message expression; a rule that fails tells the evaluation error; a definition with a
wrong rule is refused with the compile error. Costs are told by how often a rule may stand in a list before it is refused.
"""

from __future__ import annotations

import json
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tests.cel_differential import compare, world

_GROUP = "celdiff.example.com"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULE_LIMIT = 10_000_000  # what the estimate of one rule may be, times how often its place may be in an object


@dataclass(frozen=True, slots=True)
class Server:
    """The server to ask."""

    url: str
    token: str

    def send(self, method: str, path: str, body: object | None = None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        )
        request.method = method
        try:
            with urllib.request.urlopen(request, context=_UNCHECKED, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else {}


_UNCHECKED = ssl.create_default_context()
_UNCHECKED.check_hostname = False
_UNCHECKED.verify_mode = ssl.CERT_NONE


def definition(plural: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A definition of one version with `spec` of this schema."""
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": kind + "List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
                }
            ],
        },
    }


def compile_answers(server: Server, expressions: list[str]) -> dict[int, str]:
    """The compile errors of rules, by index; what is not there compiles."""
    rules = [{"rule": expression, "message": "#"} for expression in expressions]
    schema = {**world.SCHEMA, "x-kubernetes-validations": rules}
    _, answer = server.send("POST", f"{_DEFINITIONS}?dryRun=All", definition("compiled", schema))
    return _causes(answer, expressions)


_PLACE = re.compile(r"x-kubernetes-validations\[(\d+)\]\.(rule|messageExpression)$")


def _causes(answer: dict[str, Any], expressions: list[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for cause in answer.get("details", {}).get("causes", ()):
        place = _PLACE.search(cause["field"])
        if place is not None and place[2] == "rule":
            message = cause["message"]
            for mark in (
                "compilation failed: ",
                "program instantiation failed: ",
                "cel expression must evaluate to a bool",
                "estimated rule cost",
            ):
                if mark in message:
                    found[int(place[1])] = message[message.index(mark) :]
    return found


def evaluation_answers(server: Server, expressions: list[str], plural: str) -> list[str]:
    """For expressions that compile: `value: …` or `error: …`."""
    rules = [
        {"rule": compare.rule(each), "messageExpression": f"'<<%s>>'.format([dyn({each}\n)])", "message": f"#{index}#"}
        for index, each in enumerate(expressions)
    ]
    status, answer = server.send("POST", _DEFINITIONS, definition(plural, {**world.SCHEMA, "x-kubernetes-validations": rules}))
    assert status == 201, answer["message"]
    path = f"/apis/{_GROUP}/v1/namespaces/default/{plural}"
    body = {"apiVersion": f"{_GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "one"}, "spec": world.OBJECT}
    try:
        for _ in range(200):
            status, answer = server.send("POST", path, body)
            if status == 422:
                break
            time.sleep(0.1)
        assert status == 422, answer
    finally:
        server.send("DELETE", f"{_DEFINITIONS}/{plural}.{_GROUP}")
    return [cause["message"] for cause in answer["details"]["causes"]]


def refused_for_cost(server: Server, expressions: list[str], counts: list[int]) -> list[bool]:
    """Whether a rule is refused for its estimated cost where its object may stand so often in a list."""
    properties = {
        f"p{n}": {
            "type": "array",
            "maxItems": count,
            "items": {**world.SCHEMA, "x-kubernetes-validations": [{"rule": expression, "message": "#"}]},
        }
        for n, (expression, count) in enumerate(zip(expressions, counts))
    }
    _, answer = server.send("POST", f"{_DEFINITIONS}?dryRun=All", definition("costly", {"type": "object", "properties": properties}))
    refused = [False] * len(expressions)
    for cause in answer.get("details", {}).get("causes", ()):
        place = re.search(r"\[p(\d+)\]|\.p(\d+)\.", cause["field"])
        if place is not None and "estimated rule cost exceeds budget" in cause["message"]:
            refused[int(place[1] or place[2])] = True
    return refused
