"""Sequences of writes to one ConfigMap, on the server and on a model of a dozen rules: they agree on every answer's code, on the object,
and on whether its version moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apiserver.api import APPLY, MERGE, STRATEGIC, Api, config_in, running
from tests.fakes.memory_kv import MemoryKV

CM = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of the object while there is one."""

    data: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``data`` of a merge may hold nulls. ``finalizers`` None: not said. ``version`` is "", "stale" or "current"; ``uid`` "", "wrong" or
    "right"."""

    kind: str
    data: dict[str, str | None]
    finalizers: tuple[str, ...] | None
    version: str
    uid: str
    dry_run: bool


OPERATIONS = st.builds(
    Operation,
    kind=st.sampled_from(("post", "put", "merge", "strategic", "delete", "apply")),
    data=st.dictionaries(st.sampled_from("kl"), st.sampled_from(("1", "2", None)), max_size=2),
    finalizers=st.none() | st.lists(st.sampled_from(("x/a", "x/b")), unique=True, max_size=2).map(tuple),
    version=st.sampled_from(("", "", "", "current", "stale")),
    uid=st.sampled_from(("", "", "", "right", "wrong")),
    dry_run=st.sampled_from((False, False, False, True)),
)


def after(model: Model | None, op: Operation) -> tuple[int, Model | None]:
    """The code and the model after an operation; the rules, in the order in which the server has them."""
    plain = {key: value for key, value in op.data.items() if value is not None}
    if op.kind == "post":
        if op.version and not op.dry_run:
            return 500, model
        if model is not None:
            return 409, model
        return (201, Model(data=plain, finalizers=op.finalizers or ()))
    if model is None:
        return (
            (201, Model(data=plain, finalizers=op.finalizers or ()))
            if op.kind == "apply" and not op.uid
            else (409 if op.kind == "apply" else 404, None)
        )
    wrong = 409 if op.version == "stale" or op.uid == "wrong" else 0
    if op.kind == "delete":
        if wrong:
            return wrong, model
        return 200, replace(model, deleting=True) if model.finalizers else None
    if wrong and (op.version == "stale" or op.kind == "put"):
        return 409, model
    if op.kind == "put":
        new = replace(model, data=plain, finalizers=op.finalizers or ())
    else:
        changed = {**model.data, **(plain if op.kind == "apply" else op.data)}
        finalizers = model.finalizers
        if op.finalizers is not None:
            # a strategic merge patch adds to the list, in the order of the patch and before what it does not name
            finalizers = op.finalizers if op.kind == "merge" else (*op.finalizers, *(f for f in finalizers if f not in op.finalizers))
        new = replace(model, data={key: value for key, value in changed.items() if value is not None}, finalizers=finalizers)
    if op.uid == "wrong" or (model.deleting and set(new.finalizers) - set(model.finalizers)):
        return 422, model
    return 200, None if model.deleting and not new.finalizers else new


class World:
    """One server; every example has an object of its own."""

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._running = running(config_in(directory), MemoryKV())
        self.api: Api = self.loop.run_until_complete(self._running.__aenter__())
        self.count = 0

    def stop(self) -> None:
        self.loop.run_until_complete(self._running.__aexit__(None, None, None))
        self.loop.close()

    async def write(self, name: str, op: Operation, live: Any) -> Any:
        metadata: dict[str, Any] = {"name": name}
        version = {"": "", "stale": "1", "current": live["metadata"]["resourceVersion"] if live else "1"}[op.version]
        uid = {"": "", "wrong": "other", "right": live["metadata"]["uid"] if live else "other"}[op.uid]
        query: dict[str, str] = {"dryRun": "All"} if op.dry_run else {}
        if op.kind == "delete":
            wanted = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
            return await self.api.delete(f"{CM}/{name}", {"preconditions": wanted, **({"dryRun": ["All"]} if op.dry_run else {})})
        if version:
            metadata["resourceVersion"] = version
        if uid:
            metadata["uid"] = uid
        if op.finalizers is not None:
            metadata["finalizers"] = list(op.finalizers)
        nulls = op.kind in ("merge", "strategic")
        body = {"metadata": metadata, "data": op.data if nulls else {k: v for k, v in op.data.items() if v is not None}}
        if op.kind == "post":
            return await self.api.post(CM, body, query=query)
        if op.kind == "put":
            return await self.api.put(f"{CM}/{name}", body, query=query)
        if op.kind == "apply":
            # a manager of its own that takes what it wants: nothing of what it said before is pruned, since it says each thing once
            self.count += 1
            query |= {"fieldManager": f"m{self.count}", "force": "true"}
            return await self.api.patch(f"{CM}/{name}", {"apiVersion": "v1", "kind": "ConfigMap", **body}, APPLY, query=query)
        return await self.api.patch(f"{CM}/{name}", body, MERGE if op.kind == "merge" else STRATEGIC, query=query)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("model"))
    yield made
    made.stop()


async def play(world: World, operations: list[Operation]) -> None:
    world.count += 1
    name = f"m-{world.count}"
    model: Model | None = None
    live: Any = None
    for op in operations:
        code, new = after(model, op)
        answer = await world.write(name, op, live)
        assert answer.status == code, (op, model, answer.body)
        if not op.dry_run:
            model, before = new, model
        read = await world.api.get(f"{CM}/{name}")
        assert (read.status == 200) == (model is not None), (op, model, read.body)
        if model is None:
            live = None
            continue
        found = read.json
        assert found.get("data", {}) == model.data
        assert sorted(found["metadata"].get("finalizers", [])) == sorted(model.finalizers)
        assert ("deletionTimestamp" in found["metadata"]) == model.deleting
        same = live is not None and found["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
        if op.dry_run or code >= 400 or (live is not None and model == before and op.kind != "apply" and not _reordered(live, found)):
            assert same or live is None, (op, live, found)
        live = found


def _reordered(live: Any, found: Any) -> bool:
    return bool(live["metadata"].get("finalizers") != found["metadata"].get("finalizers"))


@settings(max_examples=150, deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=9))
def test_the_server_does_what_the_model_does(world: World, operations: list[Operation]) -> None:
    world.loop.run_until_complete(play(world, operations))
