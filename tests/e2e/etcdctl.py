"""The real etcdctl with what a server says on its output."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.storage.etcd_process import BINARIES

ETCDCTL_SECONDS_MAX = 30.0


def environment(log: Path) -> dict[str, str]:
    """What the line to be pasted into a shell sets."""
    found = re.search(r"export (ETCDCTL_API=.*)", log.read_text())
    assert found is not None, log.read_text()
    return dict(part.split("=", 1) for part in found[1].split())


def etcdctl(log: Path, *arguments: str) -> Any:
    command = [str(BINARIES / "etcdctl"), *arguments, "-w", "json", "--command-timeout", "20s", "--dial-timeout", "10s"]
    done = subprocess.run(command, env=environment(log), capture_output=True, timeout=ETCDCTL_SECONDS_MAX)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
