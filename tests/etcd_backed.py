"""``SAMPAN_TEST_ETCD=1``: every server that the tests start has its objects in a real etcd, instead of in the embedded store.

Each data directory gets an etcd of its own, which outlives the restarts of its server. What is about the embedded store itself is left
out: whole files by ``tests/conftest.py``, single tests by asking ``ENABLED``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from apiserver import pytest_plugin
from tests.storage.etcd_process import EtcdProcess

ENABLED = bool(os.environ.get("SAMPAN_TEST_ETCD"))

_start = pytest_plugin.start
_etcds: dict[str, EtcdProcess] = {}
_directory = tempfile.TemporaryDirectory(prefix="sampan-test-etcd-", ignore_cleanup_errors=True) if ENABLED else None


def start(flags: list[str], log: Path) -> subprocess.Popen[bytes]:
    """As ``pytest_plugin.start``, with ``--etcd-servers``."""
    assert _directory is not None
    key = flags[flags.index("--data-dir") + 1] if "--data-dir" in flags else str(log)
    etcd = _etcds.get(key)
    if etcd is None:
        etcd = _etcds[key] = EtcdProcess(Path(_directory.name) / str(len(_etcds)))
        etcd.wait_until_ready()
    return _start([*flags, "--etcd-servers", f"http://{etcd.target}"], log)


def install() -> None:
    pytest_plugin.start = start


def end() -> None:
    for etcd in _etcds.values():
        etcd.kill()
