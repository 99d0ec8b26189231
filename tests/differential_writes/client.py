"""One server that is asked, and answers brought to a form in which two servers can be compared."""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from typing import Any

JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``body`` is sent as it is where it is text, else as JSON. ``{rv}`` and ``{uid}`` in path, query and texts of the body stand for
    those of the object that the last successful answer showed, ``{ns}`` for the namespace."""

    method: str
    path: str
    body: Any = None
    type: str = JSON
    query: str = ""
    agent: str = "probe/1"
    note: str = ""
    accept: str = JSON


@dataclass(slots=True)
class Answer:
    code: int
    body: Any
    warnings: list[str] = field(default_factory=list)
    raw: Any = None


class Server:
    """Keep-alive, one request at a time."""

    def __init__(self, url: str, token: str) -> None:
        self._host = url.removeprefix("https://").rstrip("/")
        self._token = token
        self._connection: HTTPSConnection | None = None
        self.namespace = ""
        self.revisions: dict[str, int] = {}
        self.uids: dict[str, str] = {}
        self.last: dict[str, str] = {"rv": "0", "uid": ""}

    def begin(self, namespace: str, *, make: bool = True) -> None:
        """Forget what was seen; ``make`` a namespace, in which pods may be made."""
        self.namespace = namespace
        self.revisions, self.uids = {}, {}
        self.last = {"rv": "0", "uid": ""}
        if not make:
            return
        self.raw("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.raw("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})

    def raw(
        self, method: str, path: str, body: Any = None, type_: str = JSON, agent: str = "probe/1", accept: str = JSON
    ) -> tuple[int, Any, list[str]]:
        data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "User-Agent": agent}
        if data is not None:
            headers["Content-Type"] = type_
        for attempt in (0, 1):
            try:
                if self._connection is None:
                    self._connection = HTTPSConnection(self._host, context=ssl._create_unverified_context(), timeout=60)
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                text = response.read()
                break
            except OSError:
                self._connection = None
                if attempt:
                    raise
        warnings = response.headers.get_all("Warning") or []
        try:
            return response.status, json.loads(text), warnings
        except ValueError:
            return response.status, text.decode(errors="replace"), warnings

    def run(self, step: Step) -> Answer:
        path, body = self.filled(step)
        return self.answer(*self.raw(step.method, path, body, step.type, step.agent, step.accept))

    def filled(self, step: Step) -> tuple[str, str | None]:
        """The path with the query, and the body."""
        path = self._filled(step.path)
        if step.query:
            path += "?" + self._filled(step.query)
        body = step.body
        if body is not None:
            body = self._filled(body if isinstance(body, str) else json.dumps(body))
        return path, body

    def answer(self, code: int, found: Any, warnings: list[str]) -> Answer:
        """In normal form; what it shows of an object is what the next step speaks of."""
        if isinstance(found, dict) and isinstance(found.get("metadata"), dict) and found["metadata"].get("uid"):
            self.last = {"rv": found["metadata"].get("resourceVersion") or self.last["rv"], "uid": found["metadata"]["uid"]}
        return Answer(code, self.normal(found), [self._text(w) for w in warnings], found)

    def _filled(self, text: str) -> str:
        text = text.replace("{ns}", self.namespace).replace("%7Bns%7D", self.namespace)
        return text.replace("{rv}", self.last["rv"]).replace("{uid}", self.last["uid"])

    # -- normal form

    def normal(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if "manager" in value and "operation" in value and value.get("time"):
                value = {**value, "time": "<time>"}
            out = {k: self.normal(v, k) for k, v in value.items()}
            if out.get("kind") == "Status" and isinstance(value.get("details"), dict) and value["details"].get("causes"):
                if len(out["details"]["causes"]) > 1:
                    out["message"] = "<causes>"  # in an order that is accidental with custom resources
                out["details"]["causes"] = sorted(out["details"]["causes"], key=lambda c: json.dumps(c, sort_keys=True))
            return {k: v for k, v in out.items() if v is not None and k != "selfLink"}
        if key == "managedFields" and isinstance(value, list):
            # their order is that of their times, to the second
            entries = [self.normal(v, key) for v in value]
            return sorted(entries, key=lambda e: [str(e.get(k, "")) for k in ("operation", "manager", "subresource", "apiVersion")])
        if isinstance(value, list):
            return [self.normal(v, key) for v in value]
        if isinstance(value, str):
            if key == "resourceVersion":
                return f"<rv {self.revisions.setdefault(value, len(self.revisions))}>" if value else ""
            return self._text(value)
        return value

    def _text(self, text: str) -> str:
        text = _UID.sub(lambda m: f"<uid {self.uids.setdefault(m.group(), str(len(self.uids)))}>", text)
        return _TIME.sub("<time>", text).replace(self.namespace, "<ns>") if self.namespace else _TIME.sub("<time>", text)


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two normal forms differ, one line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        out = []
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours:
                out.append(f"{path}.{key}: missing here, there {_short(theirs[key])}")
            elif key not in theirs:
                out.append(f"{path}.{key}: here {_short(ours[key])}, missing there")
            else:
                out += differences(ours[key], theirs[key], f"{path}.{key}")
        return out
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [line for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) for line in differences(a, b, f"{path}.{i}")]
    if ours == theirs and type(ours) is type(theirs):
        return []
    if isinstance(ours, str) and isinstance(theirs, str):
        # long texts from where they part
        same = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
        start = max(0, same - 80)
        ours, theirs = ours[start:], theirs[start:]
    return [f"{path}: here {_short(ours)}, there {_short(theirs)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 400 else text[:400] + " …"
