"""Replay every area against a fresh server, print the counts and raise ``ratchet.json`` where they grew.

python -m tests.golden.ratchet [AREA …]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.server_process import ServerProcess
from tests.golden.test_golden import FLAGS, HERE, RATCHET, replay


def main() -> None:
    areas = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.json") if path.stem != "ratchet")
    numbers = dict(RATCHET)
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), *FLAGS, users={"alice": ("devs",)})
        server.start()
        try:
            for area in areas:
                passed, output = replay(server, area)
                total = len(json.loads((HERE / f"{area}.json").read_text())["scenarios"])
                print(f"{output}\n{area}: {passed} of {total}", flush=True)
                numbers[area] = max(passed, numbers.get(area, 0))
        finally:
            server.stop()
    (HERE / "ratchet.json").write_text(json.dumps({k: v for k, v in numbers.items() if v}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
