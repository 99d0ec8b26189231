"""How a real server is asked: each case has a group of its own, so that definitions do not meet."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.crd_rules.cases import Case

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ESTABLISHED_SECONDS = 60
ASKED_AT_ONCE = 8


class Server:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._tls = ssl._create_unverified_context()  # a server on this machine, with a certificate of its own

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, list[str]]:
        """Status, body and warnings."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=60) as answer:
                return answer.status, json.load(answer), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                return error.code, json.loads(text), error.headers.get_all("Warning") or []
            except ValueError:
                return error.code, {}, []


def definition(case: Case, group: str) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": case.schema()}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": f"widgets.{group}"}, "spec": spec}


def group_of(case: Case) -> str:
    return f"{case.name.lower()}.rules.test"


def widget(spec: Any, group: str) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "default"}, "spec": spec}


def record_all(server: Server, cases: list[Case]) -> dict[str, Any]:
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return dict(zip((case.name for case in cases), pool.map(lambda case: record(server, case), cases), strict=True))


def record(server: Server, case: Case) -> dict[str, Any]:
    group = group_of(case)
    body = definition(case, group)
    asked = case.objects or case.updates
    path = f"{DEFINITIONS}/widgets.{group}"
    server.ask("DELETE", path)
    found: dict[str, Any] = {"definition": _outcome(server.ask("POST", DEFINITIONS if asked else f"{DEFINITIONS}?dryRun=All", body))}
    if not asked or found["definition"]["code"] != 201:
        return found
    try:
        widgets = f"/apis/{group}/v1/namespaces/default/widgets"
        until = time.monotonic() + ESTABLISHED_SECONDS
        while server.ask("GET", widgets)[0] != 200:
            assert time.monotonic() < until, case.name
            time.sleep(0.2)
        found["objects"] = [_outcome(server.ask("POST", f"{widgets}?dryRun=All", widget(spec, group))) for spec in case.objects]
        found["updates"] = [_update(server, widgets, group, old, new) for old, new in case.updates]
    finally:
        server.ask("DELETE", path)
    return found


def _update(server: Server, widgets: str, group: str, old: Any, new: Any) -> dict[str, Any]:
    answer = server.ask("POST", widgets, widget(old, group))
    if answer[0] != 201:
        return {"before": _outcome(answer)}
    try:
        body = widget(new, group)
        body["metadata"]["resourceVersion"] = answer[1]["metadata"]["resourceVersion"]
        return _outcome(server.ask("PUT", f"{widgets}/one?dryRun=All", body))
    finally:
        server.ask("DELETE", f"{widgets}/one")


def _outcome(answer: tuple[int, Any, list[str]]) -> dict[str, Any]:
    code, body, warnings = answer
    found: dict[str, Any] = {"code": code}
    if code >= 400:
        causes = (body.get("details") or {}).get("causes") or []
        found["causes"] = [[cause.get("reason", ""), cause.get("field", ""), cause.get("message", "")] for cause in causes]
        if not causes:
            found["message"] = body.get("message", "")
    if warnings:
        found["warnings"] = [warning.partition('"')[2].rpartition('"')[0].replace('\\"', '"') for warning in warnings]
    return found
