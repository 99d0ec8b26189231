"""Three API servers on one cluster, clients through each of them: what they saw of ConfigMaps must be linearizable, with the log as
witness, over the leader's death and a pause."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from storage import api
from tests.e2e.cluster_process import CONFIG_MAPS, ClusterMember, ClusterProcesses
from tests.robustness import kv_model
from tests.robustness.history import UNKNOWN, Answered, Operation
from tests.robustness.linearizability import check_against_log, requests_of
from tests.robustness.log_archive import all_entries
from tests.robustness.traffic import guarded
from tests.robustness.watch_promises import Stream, Truth, check_watch

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.long]

PREFIX = b"/registry/configmaps/default/lin-"
PREFIX_END = PREFIX[:-1] + b"."
NAMES = 5
TAG = re.compile(rb'"tag": ?"([^"]*)"')
HURT_SECONDS = 2.0


def is_ours(key: bytes) -> bool:
    return key.startswith(PREFIX)


def tag_of(value: bytes) -> bytes:
    """What the client wrote, out of the whole object."""
    found = TAG.search(value)
    return found[1] if found else value


def header(revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=0, member_id=0, revision=revision, raft_term=0)


def seen(item: dict[str, Any]) -> api.KeyValue:
    """An API server shows when an object changed last, and neither its creation's revision nor its version."""
    metadata = item["metadata"]
    key = PREFIX + metadata["name"].removeprefix("lin-").encode()
    return api.KeyValue(key, 0, int(metadata["resourceVersion"]), 0, item["data"]["tag"].encode())


class Client(threading.Thread):
    """One connection, one request at a time."""

    def __init__(self, number: int, member: ClusterMember, history: list[Operation], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._member = member
        self._history = history
        self._stop_event = stop
        self._rng = random.Random(number)
        self._connection = member.connection(timeout=15)
        self._count = 0

    def run(self) -> None:
        known: dict[str, str] = {}
        while not self._stop_event.is_set():
            self._step(known)
            time.sleep(0.02)
        self._connection.close()

    def _step(self, known: dict[str, str]) -> None:
        rng = self._rng
        name = f"lin-{rng.randrange(NAMES)}"
        key = b"/registry/configmaps/default/" + name.encode()
        self._count += 1
        tag = f"{self._number}-{self._count}"
        path = f"{CONFIG_MAPS}/{name}"
        body = {"metadata": {"name": name}, "data": {"tag": tag}}
        put = api.PutRequest(key=key, value=tag.encode())
        match rng.choices(("get", "list", "create", "update", "delete"), (25, 25, 15, 30, 5))[0]:
            case "get":
                answer = self._send("GET", path, None, api.RangeRequest(key=key))
                if answer and answer[0] == 200:
                    known[name] = answer[1]["metadata"]["resourceVersion"]
            case "list":
                self._send("GET", CONFIG_MAPS, None, api.RangeRequest(key=PREFIX, range_end=PREFIX_END))
            case "create":
                self._send("POST", CONFIG_MAPS, body, guarded(put, 0))
            case "update":
                version = known.get(name)
                if version is not None:
                    body["metadata"]["resourceVersion"] = version
                    answer = self._send("PUT", path, body, guarded(put, int(version)))
                    if answer and answer[0] == 200:
                        known[name] = answer[1]["metadata"]["resourceVersion"]
            case "delete":
                self._send("DELETE", path, None, api.DeleteRangeRequest(key=key))

    def _send(self, verb: str, path: str, body: Any, request: kv_model.Request) -> tuple[int, Any] | None:
        called = time.monotonic()
        try:
            answer = self._member.request(verb, path, body, connection=self._connection)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            self._connection.close()
            self._connection = self._member.connection(timeout=15)
            answer = None
            time.sleep(0.05)
        response = None if answer is None else self._response(request, *answer)
        if response is not None:
            self._history.append(Operation(self._number, request, called, time.monotonic(), Answered(response)))
        elif not isinstance(request, api.RangeRequest) and (answer is None or answer[0] >= 500):
            self._history.append(Operation(self._number, request, called, time.monotonic(), UNKNOWN))
        return answer

    def _response(self, request: kv_model.Request, status: int, answer: Any) -> kv_model.Response | None:
        """What the answer says of the store; None: nothing certain."""
        match request:
            case api.RangeRequest(range_end=b"") if status in (200, 404):
                kvs: tuple[api.KeyValue, ...] = (seen(answer),) if status == 200 else ()
                return api.RangeResponse(header=header(0), kvs=kvs, more=False, count=len(kvs))
            case api.RangeRequest() if status == 200:
                kvs = tuple(seen(item) for item in answer["items"] if item["metadata"]["name"].startswith("lin-"))
                return api.RangeResponse(header=header(int(answer["metadata"]["resourceVersion"])), kvs=kvs, more=False, count=len(kvs))
            case api.TxnRequest() if status in (200, 201):
                revision = int(answer["metadata"]["resourceVersion"])
                return api.TxnResponse(header=header(revision), succeeded=True, responses=(api.PutResponse(header=header(revision)),))
            case api.DeleteRangeRequest() if status in (200, 404):
                return api.DeleteRangeResponse(header=header(0), deleted=int(status == 200))
        return None


class Informer(threading.Thread):
    """Lists and watches through one member; where the stream breaks it goes on from the last version seen."""

    def __init__(self, member: ClusterMember, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.member = member
        self.streams: list[Stream] = []
        self._stop_event = stop

    def run(self) -> None:
        version = 0
        while not self._stop_event.is_set():
            try:
                if not version:
                    _, listed = self.member.request("GET", CONFIG_MAPS)
                    version = int(listed["metadata"]["resourceVersion"])
                version = self._watch(version)
            except (OSError, http.client.HTTPException, json.JSONDecodeError, AssertionError, KeyError):
                time.sleep(0.1)

    def _watch(self, version: int) -> int:
        items: list[api.WatchBatch] = []
        request = api.WatchRequest(key=PREFIX, range_end=PREFIX_END, start_revision=version + 1)
        self.streams.append(Stream(request, items))
        for event in self.member.watch(f"{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={version}"):
            if event["type"] == "ERROR":
                return 0
            metadata = event["object"]["metadata"]
            revision = int(metadata["resourceVersion"])
            if event["type"] == "BOOKMARK":
                items.append(api.WatchBatch(revision=revision, events=()))
            elif metadata["name"].startswith("lin-"):
                kv = seen(event["object"])
                kind = api.EventType.DELETE if event["type"] == "DELETED" else api.EventType.PUT
                kv = api.KeyValue(kv.key, 0, revision, 0, b"" if kind is api.EventType.DELETE else kv.value)
                items.append(api.WatchBatch(revision=revision, events=(api.Event(kind, kv),)))
            version = max(version, revision)
        return version


def test_what_clients_of_three_api_servers_see_is_linearizable(tmp_path: Path) -> None:
    cluster = ClusterProcesses(tmp_path, 3)
    history: list[Operation] = []
    stop = threading.Event()
    try:
        cluster.start()
        clients = [Client(number, member, history, stop) for number, member in enumerate([*cluster.members, *cluster.members])]
        informers = [Informer(member, stop) for member in cluster.members]
        for thread in (*clients, *informers):
            thread.start()
        time.sleep(HURT_SECONDS / 2)
        leader = cluster.leader()
        leader.kill()
        time.sleep(HURT_SECONDS)
        leader.launch()
        other = cluster.others(leader)[0]
        other.pause()
        time.sleep(HURT_SECONDS)
        other.resume()
        cluster.heal()
        time.sleep(HURT_SECONDS)
        stop.set()
        for thread in (*clients, *informers):
            thread.join(30)
            assert not thread.is_alive()
        for member in cluster.members:
            assert member.process is not None
            member.process.terminate()
            member.process.wait(30)
    finally:
        stop.set()
        cluster.end()
    logs = [all_entries(member.data_dir / "member" / "wal") for member in cluster.members]
    longest = max(logs, key=lambda entries: int(entries[-1].index))
    log = requests_of(longest, value_of=tag_of)
    assert len(history) > 30
    verdict = check_against_log(history, log, is_ours=is_ours)
    assert verdict.ok, "\n".join(verdict.problems[:5])
    truth = Truth.of(log)
    for informer in informers:
        assert informer.streams
        for stream in informer.streams:
            assert check_watch([stream], truth, atomic=False, name=informer.member.name) == []
