"""The log file and its rotation; the webhook's batches; what is lost."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import threading
import time
from collections import deque
from pathlib import Path

import pytest

from apiserver.audit import log_file
from apiserver.audit.log_file import LogFile, Rotation
from apiserver.audit.sinks import Losses
from apiserver.audit.webhook import WebhookSink


def lines_of(directory: Path) -> list[bytes]:
    found: list[bytes] = []
    for path in directory.iterdir():
        found += (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).splitlines()
    return sorted(found)


@pytest.mark.parametrize("compress", [False, True])
def test_files_are_rotated_and_nothing_is_lost(tmp_path: Path, compress: bool) -> None:
    moment = iter(range(1_700_000_000, 1_800_000_000))
    log = LogFile(tmp_path / "audit.log", Rotation(max_bytes=100, compress=compress), Losses(), lambda: float(next(moment)))
    wanted = [b"%04d-%s" % (n, b"x" * 20) for n in range(40)]
    for line in wanted:
        log.put(line + b"\n")
    log.close()
    assert lines_of(tmp_path) == wanted
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 14 and names[0].startswith("audit-2023-11-14T22-13-2") and names[-1] == "audit.log"
    assert all(path.stat().st_size <= 130 for path in tmp_path.iterdir())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_old_files_go_by_number_and_by_age(tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text("kept")
    now = [1_700_000_000.0]
    log = LogFile(tmp_path / "a.log", Rotation(max_bytes=10, max_backups=3, max_age_days=2), Losses(), lambda: now[0])
    for _ in range(8):
        now[0] += 10
        log._write(deque([b"123456789\n"]))
    assert len(log.backups()) == 3
    now[0] += 3 * 86_400
    log._write(deque([b"123456789\n"]))
    assert len(log.backups()) == 1, "what is older than two days is gone"
    assert (tmp_path / "other.log").read_text() == "kept"
    log.close()


def test_blocking_the_line_is_there_when_it_was_put(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", Rotation(max_bytes=10), Losses(), blocking=True)
    for n in range(3):
        assert log.put(b"line-%d\n" % n)
        assert (tmp_path / "a.log").read_bytes() == b"line-%d\n" % n, "rotated as ever"
    log.close()


def test_when_the_disk_was_full_no_line_is_lost_but_those_of_that_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a line may have been written: the next one begins a line of its own."""
    losses = Losses()
    log = LogFile(tmp_path / "a.log", Rotation(), losses, blocking=True)
    assert log.put(b"first\n")
    write, room = os.write, [7]

    def limited(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, bytes(data)[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", limited)
    assert not log.put(b"second-is-torn\n") and not log.put(b"third\n")
    assert losses.by_plugin["log"] == 2
    room[0] = 10_000
    assert log.put(b"fourth\n") and log.put(b"fifth\n")
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"first\nsecond-\nfourth\nfifth\n"


def test_a_log_that_cannot_keep_up_loses_the_newest_and_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "EVENTS_MAX", 5)
    losses, gate, begun = Losses(), threading.Event(), threading.Event()
    log = LogFile(tmp_path / "a.log", Rotation(), losses)
    real = log._write

    def slow(batch: deque[bytes]) -> None:
        begun.set()
        gate.wait(10)
        real(batch)

    monkeypatch.setattr(log, "_write", slow)
    log.put(b"0\n")
    assert begun.wait(10)
    began = time.monotonic()
    for n in range(1, 20):
        log.put(b"%d\n" % n)
    assert time.monotonic() - began < 5, "nobody waits for the disk"
    gate.set()
    log.close()
    assert (tmp_path / "a.log").read_bytes() == b"0\n1\n2\n3\n4\n5\n" and losses.by_plugin["log"] == 14


class Receiver:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.failures = 0

    async def __call__(self, body: bytes) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("away")
        self.bodies.append(body)


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


async def test_events_go_in_batches_as_one_list() -> None:
    receiver = Receiver()
    sink = WebhookSink(receiver, Losses(), batch_events_max=3, batch_seconds_max=0.02)
    task = asyncio.create_task(sink.run())
    for n in range(4):
        sink.put(b'{"n":%d}\n' % n)
    await until(lambda: len(receiver.bodies) == 2)
    assert receiver.bodies[0] == b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"n":0},{"n":1},{"n":2}]}'
    assert b'[{"n":3}]' in receiver.bodies[1]
    sink.put(b'{"n":4}\n')
    task.cancel()
    await asyncio.wait([task])
    assert b'[{"n":4}]' in receiver.bodies[2], "the end waits for no batch to fill"


async def test_a_webhook_that_is_away_is_tried_again_and_a_queue_that_is_full_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.audit.webhook.EVENTS_MAX", 4)
    receiver, losses = Receiver(), Losses()
    receiver.failures = 2
    sink = WebhookSink(receiver, losses, batch_events_max=2, batch_seconds_max=0.01, initial_backoff_seconds=0.01)
    for n in range(6):
        sink.put(b"%d\n" % n)
    assert losses.by_plugin["webhook"] == 2
    task = asyncio.create_task(sink.run())
    await until(lambda: len(receiver.bodies) == 2)
    receiver.failures = 100
    sink.put(b"7\n")
    await until(lambda: losses.by_plugin["webhook"] == 3)
    task.cancel()
    await asyncio.wait([task])
