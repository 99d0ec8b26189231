"""Lets schemathesis make requests from the documents, sends them to a server in this process and judges the answers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import hypothesis
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.result import Err

from tests.apiserver.api import Api, config_in, running
from tests.openapi_fuzz.run import ANSWER_SECONDS_MAX, fault

#: requests of one operation in one mode, before the next operation has its turn
EXAMPLES = 5
#: watches, and whatever else goes on, end after this many seconds
TIMEOUT_SECONDS = "1"
#: an object of this name is wanted again and again, so that there is something to read, change and delete
NAME = "a"
NAMESPACE = "default"
#: optional properties that a schema keeps in one round: with all of them the tool takes seconds to fill in one pod
PROPERTIES_MAX = 3


@dataclass(slots=True)
class Report:
    requests: int = 0
    operations: int = 0
    rounds: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    #: operations of which the tool could make nothing, with its words
    unmade: list[str] = field(default_factory=list)

    def text(self) -> str:
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        made = f"{self.requests} requests of {self.operations} operations, {self.rounds} whole rounds, {len(self.wrong)} wrong; {codes}"
        return "\n\n".join([made, *self.unmade[:5], *self.wrong[:20]])


class Server:
    """A server on a loop of its own thread, called from this one."""

    def __init__(self, directory: Path, version: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="server of schemathesis")
        self._thread.start()
        self._running = running(config_in(directory, kubernetes_version=version))
        self._api: Api = self._do(self._running.__aenter__())

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        try:
            self._do(self._running.__aexit__(None, None, None))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def documents(self) -> dict[str, Any]:
        """The OpenAPI 3 documents by their names (``api/v1``, ``apis/apps/v1``)."""
        index = self._do(self._api.get("/openapi/v3")).json["paths"]
        return {name: self._do(self._api.get(f"/openapi/v3/{name}")).json for name in sorted(index)}

    def send(self, method: str, path: str, query: str, headers: dict[str, str], body: bytes | None) -> tuple[int, str]:
        """The answer's status, and what is wrong with it; status 0 where none came."""

        async def work() -> tuple[int, str]:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                answer = await self._api.request(method, path, body, query=query, headers=headers)
            told = fault(answer)
            return answer.status, f"{told}: {answer.body[:600].decode('utf-8', 'replace')}" if told else ""

        try:
            status, told = self._do(work())
        except (TimeoutError, concurrent.futures.TimeoutError):
            return 0, f"no answer within {ANSWER_SECONDS_MAX} s"
        return int(status), str(told)


@contextlib.contextmanager
def server(directory: Path, version: str) -> Iterator[Server]:
    found = Server(directory, version)
    try:
        yield found
    finally:
        found.close()


def run(
    target: Server, seed: int, *, seconds: float, documents: Sequence[str] = (), operations_max: int | None = None, examples: int = EXAMPLES
) -> Report:
    """Rounds over every operation until the time is over; one round of ``operations_max`` where that is given."""
    report, source, end = Report(), random.Random(seed), time.monotonic() + seconds
    found = target.documents()
    while True:
        operations = [made for name in documents or found for made in _operations(_thinned(found[name], source), name)]
        source.shuffle(operations)
        operations = operations[:operations_max]
        report.operations = len(operations)
        for operation, kind in operations:
            for mode in GenerationMode:
                if time.monotonic() > end:
                    return report
                _examples(target, report, operation, kind, mode, source.randrange(2**32), examples, end)
        report.rounds += 1
        if operations_max is not None:
            return report


def _thinned(document: Any, source: random.Random) -> Any:
    """The document with few of the optional properties of each schema, other ones in each round."""
    schemas = {}
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        properties, required = schema.get("properties", {}), set(schema.get("required", ()))
        optional = sorted(set(properties) - required)
        kept = required.union(source.sample(optional, min(len(optional), PROPERTIES_MAX)))
        schemas[name] = {**schema, "properties": {key: properties[key] for key in properties if key in kept}} if properties else schema
    return {**document, "components": {**document.get("components", {}), "schemas": schemas}}


def _operations(document: Any, name: str) -> list[tuple[Any, dict[str, str]]]:
    """Each operation of a document with the kind it is about, {} where it is about none."""
    schema = schemathesis.openapi.from_dict(document)
    found = []
    for made in schema.get_all_operations():
        assert not isinstance(made, Err), f"{name}: {made.err()}"
        operation = made.ok()
        raw = document["paths"][operation.path][operation.method.lower()]
        found.append((operation, raw.get("x-kubernetes-group-version-kind") or {}))
    assert found or not document["paths"], f"{name} has operations"
    return found


def _examples(
    target: Server, report: Report, operation: Any, kind: dict[str, str], mode: GenerationMode, seed: int, examples: int, end: float
) -> None:
    """Some requests of one operation: each as the tool made it and, where it fits the document, once more of the objects of one name. The
    answers are judged here: a wrong one does not end the run, and is not made smaller."""

    def send(case: Any) -> None:
        if time.monotonic() > end:
            return
        _send(target, report, case)
        if mode is GenerationMode.POSITIVE and _aim(case, kind):
            _send(target, report, case)

    checks = list(hypothesis.HealthCheck)
    settings = hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=checks, phases=[hypothesis.Phase.generate]
    )
    try:
        hypothesis.seed(seed)(settings(hypothesis.given(case=operation.as_strategy(generation_mode=mode))(send)))()
    except (hypothesis.errors.Unsatisfiable, schemathesis.errors.SchemathesisError) as error:
        report.unmade.append(f"{operation.label}, {mode.value}: {type(error).__name__}: {error}"[:300])


def _send(target: Server, report: Report, case: Any) -> None:
    sent = requests.Request(**_known(case.as_transport_kwargs(base_url="https://127.0.0.1"))).prepare()
    url = urlsplit(str(sent.url))
    method, path = str(sent.method), unquote(url.path)
    query = _ending(url.query)
    body = sent.body.encode() if isinstance(sent.body, str) else sent.body
    headers = {name: _text(value) for name, value in sent.headers.items() if name.lower() not in ("content-length", "authorization")}
    status, told = target.send(method, path, query, headers, body if isinstance(body, bytes) else None)
    report.requests += 1
    report.codes[status] += 1
    if told:
        shown = (body or b"")[:4000].decode("utf-8", "replace") if isinstance(body, bytes) else ""
        report.wrong.append(f"{told}\n{method} {path}?{query}\n{headers}\n{shown}")


def _aim(case: Any, kind: dict[str, str]) -> bool:
    """Have the request be about the object that other aimed requests are about too, and the body say its own kind. Answers whether the
    path names anything."""
    named = {"namespace": NAMESPACE, "name": NAME}
    parameters = {parameter: value for parameter, value in named.items() if f"{{{parameter}}}" in case.operation.path}
    case.path_parameters = {**(case.path_parameters or {}), **parameters}
    body = case.body
    if isinstance(body, dict) and kind:
        metadata = body.get("metadata")
        metadata = {**(metadata if isinstance(metadata, dict) else {}), **named}
        for unwanted in ("resourceVersion", "uid", "generateName") + (() if "namespace" in parameters else ("namespace",)):
            metadata.pop(unwanted, None)
        group = f"{kind['group']}/" if kind["group"] else ""
        case.body = {**body, "kind": kind["kind"], "apiVersion": group + kind["version"], "metadata": metadata}
    return bool(parameters) or isinstance(body, dict)


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    names = ("method", "url", "headers", "files", "data", "params", "cookies", "json")
    return {name: value for name, value in arguments.items() if name in names}


def _ending(query: str) -> str:
    """The query of a request that ends soon, also where it is a watch."""
    found = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "timeoutSeconds"]
    if any(name == "watch" for name, _ in found):
        found.append(("timeoutSeconds", TIMEOUT_SECONDS))
    return urlencode(found)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
