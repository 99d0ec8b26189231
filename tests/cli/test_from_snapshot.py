"""What ``--from-snapshot`` and ``--read-only`` imply, and what they refuse."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from apiserver.cli import from_snapshot, main
from apiserver.cli.errors import CommandError, UsageError


def parsed(*flags: str) -> argparse.Namespace:
    found = main._parser().parse_args(["up", *flags])
    from_snapshot.settle(found)
    return found


def test_nodes_run_unless_a_snapshot_brings_its_own() -> None:
    assert parsed().nodes == from_snapshot.NODES
    assert parsed("--from-snapshot", "b.db").nodes == 0
    assert parsed("--from-snapshot", "b.db", "--nodes", "3").nodes == 3
    assert not parsed("--from-snapshot", "b.db").no_controllers


def test_whoever_only_looks_leaves_nothing_behind_and_runs_nothing() -> None:
    looking = parsed("--from-snapshot", "b.db", "--read-only")
    assert looking.ephemeral
    assert looking.no_controllers
    assert looking.nodes == 0
    assert looking.listen_client_urls == ()
    assert not parsed("--from-snapshot", "b.db", "--read-only", "--data-dir", "kept").ephemeral
    assert not parsed("--from-snapshot", "b.db").ephemeral


@pytest.mark.parametrize(
    "flags",
    [
        ("--skip-hash-check",),
        ("--from-snapshot", "b.db", "--etcd-servers", "http://127.0.0.1:2379"),
        ("--from-snapshot", "b.db", "--initial-cluster", "a=https://127.0.0.1:1", "--initial-cluster-state", "existing"),
        ("--read-only", "--initial-cluster", "a=https://127.0.0.1:1"),
        ("--read-only", "--listen-client-urls", "http://127.0.0.1:1"),
        ("--read-only", "--nodes", "1"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(flags: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parsed(*flags)


def test_only_a_new_directory_takes_a_snapshot(tmp_path: Path) -> None:
    from_snapshot.check_new(tmp_path / "none")
    (tmp_path / "pki").mkdir()
    from_snapshot.check_new(tmp_path)
    (tmp_path / "member").mkdir()
    with pytest.raises(CommandError, match="holds member"):
        from_snapshot.check_new(tmp_path)
