"""Replay every area against a fresh server, print the counts and raise ``ratchet.json`` where they grew.

python -m tests.golden.ratchet [AREA …]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.server_process import ServerProcess
from tests.golden.test_golden import CUSTOM_FLAGS, FLAGS, HERE, OLDEST_FLAGS, RATCHET, flags_of, replay


def main() -> None:
    areas = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.json") if path.stem != "ratchet")
    numbers = dict(RATCHET)
    for flags in (CUSTOM_FLAGS, FLAGS, OLDEST_FLAGS):
        chosen = [area for area in areas if flags_of(area) == flags]
        if chosen:
            with tempfile.TemporaryDirectory() as directory:
                raise_numbers(numbers, chosen, ServerProcess(Path(directory), *flags, users={"alice": ("devs",)}))
    (HERE / "ratchet.json").write_text(json.dumps({k: v for k, v in numbers.items() if v}, indent=1, sort_keys=True) + "\n")


def raise_numbers(numbers: dict[str, int], areas: list[str], server: ServerProcess) -> None:
    server.start()
    try:
        for area in areas:
            passed, output = replay(server, area)
            total = len(json.loads((HERE / f"{area}.json").read_text())["scenarios"])
            print(f"{output}\n{area}: {passed} of {total}", flush=True)
            numbers[area] = max(passed, numbers.get(area, 0))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
