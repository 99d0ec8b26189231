"""``python -m tests.robustness --seconds N``: runs on real processes, one random fault each, and everything is checked after each."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from tests.robustness.run import FAULTS, run_once


def main() -> int:
    """0: all runs were clean. The directory of a failed run is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="start runs for so long")
    parser.add_argument("--count", type=int, default=0, help="at most so many runs")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="only this one")
    parser.add_argument("--seed", type=int, help="of the first run; the next ones count up")
    arguments = parser.parse_args()
    # One loop for all runs: gRPC's does not outlive it well.
    return asyncio.run(_runs(arguments))


async def _runs(arguments: argparse.Namespace) -> int:
    first = arguments.seed if arguments.seed is not None else secrets.randbits(32)
    deadline = time.monotonic() + arguments.seconds
    failed = clean = 0
    for seed in itertools.count(first):
        if time.monotonic() > deadline or (arguments.count and clean + failed >= arguments.count):
            break
        fault = arguments.fault or random.Random(seed).choice(sorted(FAULTS))
        directory = Path(tempfile.mkdtemp(prefix="robustness-"))
        report = await run_once(fault, seed, directory)
        print(f"seed {seed}: {report}", flush=True)
        if report.problems:
            failed += 1
            print("\n".join(report.problems), f"\nfiles: {directory}", flush=True)
        else:
            clean += 1
            shutil.rmtree(directory)
    print(f"{clean} runs clean, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
