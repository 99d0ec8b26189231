"""What is fuzzed of the API server: protobuf bodies and stored values, Accept headers, and requests through the whole server."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from apiserver.machinery.status import StatusError
from apiserver.objectstore import codec, stored_values
from apiserver.request import negotiation
from apiserver.schemas import protobuf
from tests.apiserver.api import Answer, Api, config_in, running
from tests.fakes.memory_kv import MemoryKV

#: A request that takes longer hangs.
REQUEST_SECONDS = 5.0

_POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": "2024-01-02T03:04:05Z"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10},
            }
        ],
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": -1}],
    },
    "status": {"phase": "Running"},
}
_META = {"name": "a", "managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}
_OBJECTS: Final[tuple[dict[str, Any], ...]] = (
    _POD,
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _META, "data": {"k": "v"}, "binaryData": {"b": "AAE="}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD["spec"]},
        },
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"a": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}},
                        }
                    },
                }
            ],
        },
    },
    {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": -1, "preconditions": {"uid": "u"}, "dryRun": ["All"]},
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"renewTime": "2024-01-02T03:04:05.000006Z"},
    },
)


def protobuf_bodies(data: bytes) -> None:
    """Decoded, or refused by ProtobufError; what was decoded is written, and reads the same."""
    try:
        obj = protobuf.decode(data)
    except protobuf.ProtobufError:
        return
    orjson.dumps(obj)
    try:
        written = protobuf.encode(obj)
    except protobuf.ProtobufError:  # a quantity that is none: types are checked by whoever takes the body
        return
    assert protobuf.encode(protobuf.decode(written)) == written


def stored_value(data: bytes) -> None:
    """An object in the stored form, or refused by UnreadableValueError."""
    try:
        form = stored_values.stored_form(data)
    except stored_values.UnreadableValueError:
        return
    assert codec.has_own_layout(form)


def accept_header(data: bytes) -> None:
    """A form, or 406; a refusal always has a form."""
    headers = {b"accept": data}
    assert negotiation.of_status(headers, {}).form is negotiation.Form.OBJECT
    for builtin in (True, False):
        with contextlib.suppress(StatusError):
            negotiation.negotiate(headers, {}, builtin=builtin, protobuf=builtin)


class _Server:
    """One server for the process, on a loop that runs while a request does."""

    def __init__(self) -> None:
        self._prepared: set[tuple[str, str]] = set()
        self._loop = asyncio.new_event_loop()
        self._directory = tempfile.TemporaryDirectory()
        self._running = running(config_in(Path(self._directory.name)), MemoryKV())
        self._api: Api = self._loop.run_until_complete(self._start())
        atexit.register(self._stop)

    async def _start(self) -> Api:
        api = await self._running.__aenter__()
        await api.post("/api/v1/namespaces/default/configmaps", _OBJECTS[1])
        return api

    def _stop(self) -> None:
        self._loop.run_until_complete(self._running.__aexit__(None, None, None))
        self._loop.close()
        self._directory.cleanup()

    def status(self, method: str, path: str, body: bytes) -> int:
        return self._loop.run_until_complete(self._request(method, path, body))

    def answer(self, method: str, path: str, query: str, content_type: str, body: bytes) -> Answer:
        return self._loop.run_until_complete(self._answer(method, path, query, content_type, body))

    def once(self, method: str, path: str, body: bytes) -> None:
        """A request that prepares; made the first time only."""
        if (method, path) not in self._prepared:
            self._prepared.add((method, path))
            assert self.answer(method, path, "", negotiation.JSON, body).status < 300

    async def _answer(self, method: str, path: str, query: str, content_type: str, body: bytes) -> Answer:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await self._api.request(method, path, body, query=query, content_type=content_type)

    async def _request(self, method: str, path: str, body: bytes) -> int:
        media_type = negotiation.PROTOBUF
        async with asyncio.timeout(REQUEST_SECONDS):
            answer = await self._api.request(
                method, path, body, query={"dryRun": "All"}, content_type=media_type, headers={"accept": media_type}
            )
        return answer.status


@lru_cache(maxsize=1)
def server() -> _Server:
    return _Server()


_REQUESTS: Final = (
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/api/v1/namespaces/default/configmaps"),
    ("PUT", "/api/v1/namespaces/default/configmaps/a"),
    ("DELETE", "/api/v1/namespaces/default/configmaps/a"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments"),
    ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
)


def protobuf_requests(data: bytes) -> None:
    """The first byte says which request, the rest is its body: an answer in time, and never a 500."""
    method, path = _REQUESTS[(data[0] if data else 0) % len(_REQUESTS)]
    status = server().status(method, path, data[1:])
    assert status < 500, (method, path, status)


BODIES: Final = tuple(protobuf.encode(obj) for obj in _OBJECTS)
REQUESTS: Final = tuple(bytes([number]) + body for number, body in enumerate((*BODIES[:2], BODIES[1], BODIES[4], *BODIES[2:4], BODIES[5])))
ACCEPTED: Final = (
    b"application/vnd.kubernetes.protobuf,application/json;q=0.9",
    b"application/json;as=Table;v=v1;g=meta.k8s.io,*/*;q=0.1",
    b"application/*; q=0.5 , application/yaml;stream=watch;pretty=1;sv=v1",
)
