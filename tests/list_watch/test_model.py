"""Programs of writes, compactions, lists in pieces and watches, against the model: list at R + watch from R = list later, whatever comes
in between, for every selector, from every kept revision, with or without a streaming list."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.api import Api, Watch, config_in, running
from tests.list_watch.model import Event, Model, Selects, Version

NAMES = ("a", "a-b", "a.b", "b", "b0")
NODES = "/api/v1/nodes"
END = "k8s.io/initial-events-end"

#: query parameters, and what they mean
SELECTORS: tuple[tuple[dict[str, str], Selects], ...] = (
    ({}, lambda version: True),
    ({"labelSelector": "x=1"}, lambda version: ("x", "1") in version.labels),
    ({"labelSelector": "x!=1"}, lambda version: ("x", "1") not in version.labels),
    ({"labelSelector": "x"}, lambda version: any(key == "x" for key, _ in version.labels)),
    (
        {"labelSelector": "x in (1,2),!y"},
        lambda version: any(k == "x" for k, _ in version.labels) and all(k != "y" for k, _ in version.labels),
    ),
    ({"fieldSelector": "metadata.name=a"}, lambda version: version.name == "a"),
    ({"fieldSelector": "metadata.name!=a"}, lambda version: version.name != "a"),
    ({"fieldSelector": "spec.unschedulable=true"}, lambda version: version.flag),
    ({"fieldSelector": "spec.unschedulable=false,metadata.name!=b"}, lambda version: not version.flag and version.name != "b"),
    (
        {"fieldSelector": "spec.unschedulable=true", "labelSelector": "x"},
        lambda version: version.flag and any(key == "x" for key, _ in version.labels),
    ),
)

selectors = st.integers(0, len(SELECTORS) - 1)
labels = st.sampled_from(((), (("x", "1"),), (("x", "2"),), (("x", "1"), ("y", "1"))))
#: how far back from the newest revision of the model, in its writes
ages = st.integers(0, 12)
write = st.tuples(st.just("write"), st.sampled_from(NAMES), labels, st.booleans())
delete = st.tuples(st.just("delete"), st.sampled_from(NAMES))
watch = st.tuples(st.just("watch"), selectors, ages)
stream = st.tuples(st.just("stream"), selectors, st.sampled_from(("newest", "cached", "NotOlderThan", "old way")), ages)
page = st.tuples(st.just("page"), selectors, st.integers(1, 3), st.one_of(st.none(), ages))
state = st.tuples(st.just("list"), selectors, st.sampled_from(("", "Exact", "NotOlderThan", "cached")), ages)
compact = st.tuples(st.just("compact"), ages)
#: a few objects, then readers between ever more writes
programs = st.tuples(
    st.lists(write, min_size=2, max_size=6),
    st.lists(st.one_of(write, delete, write, delete, watch, stream, page, state, compact), min_size=5, max_size=30),
).map(lambda parts: [*parts[0], *parts[1]])


def version_of(obj: dict[str, Any]) -> Version:
    metadata = obj["metadata"]
    shown = tuple(sorted((metadata.get("labels") or {}).items()))
    return Version(metadata["name"], int(metadata["resourceVersion"]), shown, bool(obj["spec"].get("unschedulable")))


@dataclass(slots=True)
class Pager:
    query: dict[str, Any]
    selects: Selects
    revision: int = 0
    token: str = ""
    found: list[Version] = field(default_factory=list)
    done: bool = False


@dataclass(slots=True)
class Opened:
    """``after``: the revision that a plain watch goes on from; None for one that begins with what is there, which is then told by
    ``state_at``, the revision of the moment that it was opened at (the oldest state it may show)."""

    watch: Watch
    selects: Selects
    after: int | None
    marked: bool = False


class Run:
    """One program. Nodes, since a field of theirs can be selected and changed; of all namespaces' worth, so that none is left over."""

    def __init__(self, api: Api, stack: AsyncExitStack) -> None:
        self.api, self.stack = api, stack
        self.model = Model()
        self.pagers: list[Pager] = []
        self.watches: list[Opened] = []

    async def run(self, program: list[tuple[Any, ...]]) -> None:
        # a first write, so that there is a revision to talk about
        for step in [("write", "b", (), False), *program]:
            await getattr(self, f"_{step[0]}")(*step[1:])
            for pager in self.pagers:
                await self._next_page(pager)
        for pager in self.pagers:
            while not pager.done:
                await self._next_page(pager)
        await self._check_watches()
        for name in self.model.state(self.model.newest):
            await self._delete(name)

    def _back(self, age: int) -> int:
        """The revision of the write ``age`` writes ago."""
        revisions = [revision for revision, _, _ in self.model.log]
        return revisions[max(0, len(revisions) - 1 - age)]

    async def _write(self, name: str, labels: tuple[tuple[str, str], ...], flag: bool) -> None:
        body = {"metadata": {"name": name, "labels": dict(labels)}, "spec": {"unschedulable": flag}}
        known = self.model.state(self.model.newest).get(name)
        if known is None:
            answer = await self.api.post(NODES, body)
        else:
            answer = await self.api.put(f"{NODES}/{name}", body)
        assert answer.status in (200, 201), answer.body
        written = version_of(answer.json)
        assert (written.labels, written.flag) == (labels, flag)
        if written != known:  # one that changes nothing is none (the first after a create does: it takes a taint away)
            assert known is None or written.revision > self.model.newest
            self.model.write(written)

    async def _delete(self, name: str) -> None:
        answer = await self.api.delete(f"{NODES}/{name}")
        if name not in self.model.state(self.model.newest):
            assert answer.status == 404
            return
        assert answer.status == 200
        revision = (await self.api.get(NODES)).json["metadata"]["resourceVersion"]
        self.model.delete(name, int(revision))

    async def _compact(self, age: int) -> None:
        revision = self._back(age)
        if revision > self.model.compacted:
            await self.api.kv.compact(revision)
            self.model.compacted = revision

    async def _list(self, selector: int, match: str, age: int) -> None:
        query, selects = SELECTORS[selector]
        revision = self._back(age)
        asked: dict[str, Any] = {**query}
        if match == "cached":
            asked |= {"resourceVersion": "0", "limit": "1"}
        elif match:
            asked |= {"resourceVersion": str(revision), "resourceVersionMatch": match}
        answer = await self.api.get(NODES, query=asked)
        if answer.status == 410:
            assert match == "Exact" and revision < self.model.compacted
            return
        assert answer.status == 200, answer.body
        shown_at = int(answer.json["metadata"]["resourceVersion"])
        if match == "Exact":
            assert shown_at == revision
        else:
            assert shown_at >= self.model.newest
        assert "continue" not in answer.json["metadata"]
        assert [version_of(item) for item in answer.json["items"]] == self.model.select(selects, shown_at)

    async def _page(self, selector: int, limit: int, age: int | None) -> None:
        query, selects = SELECTORS[selector]
        asked: dict[str, Any] = {**query, "limit": limit}
        if age is not None:
            asked["resourceVersion"] = str(self._back(age))  # with a limit that is that very state
        self.pagers.append(Pager(asked, selects))

    async def _next_page(self, pager: Pager) -> None:
        if pager.done:
            return
        asked = dict(pager.query)
        if pager.token:
            asked["continue"] = pager.token
            asked.pop("resourceVersion", None)
        answer = await self.api.get(NODES, query=asked)
        if answer.status == 410:
            assert answer.reason == "Expired"
            oldest = pager.revision if pager.token else int(asked["resourceVersion"])
            assert oldest < self.model.compacted
            if not pager.token:
                pager.done = True
                return
            # go on with what is there now: another list from there
            pager.token = answer.json["metadata"]["continue"]
            last = pager.found[-1].name if pager.found else ""
            answer = await self.api.get(NODES, query={**asked, "continue": pager.token})
            now = int(answer.json["metadata"]["resourceVersion"])
            pager.revision = now
            pager.found = [version for version in self.model.select(pager.selects, now) if version.name <= last]
        assert answer.status == 200, answer.body
        metadata = answer.json["metadata"]
        revision = int(metadata["resourceVersion"])
        assert pager.revision in (0, revision), "all pages are of one moment"
        pager.revision = revision
        pager.found += [version_of(item) for item in answer.json["items"]]
        whole = self.model.select(pager.selects, revision)
        assert pager.found == whole[: len(pager.found)]
        if not (set(pager.query) & {"labelSelector", "fieldSelector"}):
            assert metadata.get("remainingItemCount", 0) == len(whole) - len(pager.found)
            assert ("continue" in metadata) == (len(pager.found) < len(whole))
        else:
            assert "remainingItemCount" not in metadata
        pager.token = metadata.get("continue", "")
        if not pager.token:
            assert pager.found == whole
            pager.done = True

    async def _watch(self, selector: int, age: int) -> None:
        query, selects = SELECTORS[selector]
        after = self._back(age)
        asked: dict[str, Any] = {"resourceVersion": str(after), **query}
        watch = await self.stack.enter_async_context(self.api.watch(NODES, **asked))
        self.watches.append(Opened(watch, selects, after))

    async def _stream(self, selector: int, state: str, age: int) -> None:
        query, selects = SELECTORS[selector]
        asked: dict[str, Any] = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            **query,
        }
        if state == "old way":
            asked = dict(query)
        elif state == "cached":
            asked["resourceVersion"] = "0"
        elif state == "NotOlderThan":
            asked["resourceVersion"] = str(self._back(age))
        watch = await self.stack.enter_async_context(self.api.watch(NODES, **asked))
        opened = Opened(watch, selects, None, marked=state != "old way")
        whole = self.model.select(selects, self.model.newest)
        assert [(event["type"], version_of(event["object"])) for event in await watch.take(len(whole))] == [("ADDED", v) for v in whole]
        at = self.model.newest
        if opened.marked:
            # list + watch: the mark is what the list's resourceVersion would be
            bookmark = await watch.next()
            assert bookmark["type"] == "BOOKMARK" and bookmark["object"]["metadata"]["annotations"] == {END: "true"}
            at = int(bookmark["object"]["metadata"]["resourceVersion"])
            assert at >= self.model.newest
        opened.after = at
        self.watches.append(opened)

    async def _check_watches(self) -> None:
        await self.api.get(NODES)
        self.api.server.objects.end_watches()
        for opened in self.watches:
            assert opened.after is not None
            seen: list[Event] = []
            gone = False
            while (event := await opened.watch.next()) is not None:
                if event["type"] == "ERROR":
                    assert event["object"]["reason"] == "Expired" and opened.after < self.model.compacted
                    gone = True
                    continue
                assert event["type"] != "BOOKMARK", "nobody asked for more"
                seen.append((event["type"], version_of(event["object"])))
            assert opened.watch.ended
            if not gone:
                assert seen == self.model.events(opened.selects, opened.after)


@pytest.fixture(scope="module")
def runner() -> Iterator[tuple[asyncio.Runner, Api]]:
    """One server for all programs."""
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        api = runner.run(stack.enter_async_context(running(config_in(Path(directory)))))
        yield runner, api
        runner.run(stack.aclose())


_numbers = itertools.count()


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_lists_and_watches_tell_the_same_story(runner: tuple[asyncio.Runner, Api], program: list[tuple[Any, ...]]) -> None:
    loop, api = runner

    async def once() -> None:
        async with AsyncExitStack() as stack:
            run = Run(api, stack)
            try:
                await run.run(program)
            finally:
                for item in (await api.get(NODES)).json["items"]:
                    await api.delete(f"{NODES}/{item['metadata']['name']}")

    loop.run(once())
