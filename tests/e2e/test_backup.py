"""A backup restored under clients that have seen what came after it (ST-B1)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli.main import main
from tests.e2e.server_process import ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path, "--no-controllers")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def create(server: ServerProcess, name: str) -> int:
    status, created = server.request("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"of": name}})
    assert status == 201, created
    return int(created["metadata"]["resourceVersion"])


def names(server: ServerProcess) -> tuple[set[str], int]:
    status, listed = server.request("GET", CONFIGMAPS)
    assert status == 200
    return {item["metadata"]["name"] for item in listed["items"]}, int(listed["metadata"]["resourceVersion"])


def snapshot(*arguments: object) -> None:
    assert main(["snapshot", *map(str, arguments)]) == 0


def restore_in_place(server: ServerProcess, file: Path, *flags: str) -> None:
    """The store is replaced, keys and certificates stay."""
    shutil.rmtree(server.data_dir / "member")
    snapshot("restore", file, "--data-dir", server.data_dir, *flags)


def first_event(server: ServerProcess, resource_version: int, *, seconds: int = 30) -> dict[str, Any] | None:
    """Of a watch from there, None if there is none for so long."""
    return next(server.watch(f"{CONFIGMAPS}?watch=1&resourceVersion={resource_version}&timeoutSeconds={seconds}"), None)


def test_st_b1_clients_that_have_seen_more_than_the_backup_has(server: ServerProcess, tmp_path: Path) -> None:
    server.start()
    create(server, "before")
    server.kill()
    file = tmp_path / "backup.db"
    snapshot("save", file, "--data-dir", server.data_dir)
    server.start()
    _, at_backup = names(server)
    seen = [create(server, f"after-{number}") for number in range(30)][-1]
    server.kill()

    # Without a bump a list from a revision that is to come is refused, and a watch delivers nothing of the revisions that its client has
    # seen under another meaning. Once the store has got there again nothing can tell the two apart.
    restore_in_place(server, file)
    server.start()
    status, answer = server.request("GET", f"{CONFIGMAPS}?resourceVersion={seen}&resourceVersionMatch=NotOlderThan")
    assert (status, answer["reason"]) == (504, "Timeout")
    assert "Too large resource version" in answer["message"]
    assert create(server, "again") < seen
    assert first_event(server, seen, seconds=1) is None
    server.kill()

    # With it the informer is told that its history is gone …
    restore_in_place(server, file, "--bump-revision", "1000", "--mark-compacted")
    server.start()
    event = first_event(server, seen)
    assert event is not None
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    # … so it lists, and watches from there.
    found, revision = names(server)
    assert "before" in found
    assert not {name for name in found if name.startswith(("after", "again"))}
    assert revision >= at_backup + 1000 > seen
    assert create(server, "new") > revision
    event = first_event(server, revision)
    assert event is not None
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "new")
    assert server.stop() == 0
