"""``python -m tests.fuzz --seconds N``: fuzz every target in turn; inputs that break a promise are printed and kept."""

from __future__ import annotations

import argparse
import importlib
import random
import secrets
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.mutate import mutated

if TYPE_CHECKING:  # loaded late, so that it can be watched for coverage
    from tests.fuzz.targets import Target


def main() -> int:
    """0: every promise was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of all targets together")
    parser.add_argument("--target", action="append", help="only these")
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where inputs that break something are kept")
    parser.add_argument("--coverage", metavar="TARGET", help="one target, led by coverage (needs the package atheris)")
    arguments, rest = parser.parse_known_args()
    if arguments.coverage:
        return by_coverage(arguments.coverage, arguments.seconds, rest)
    known = importlib.import_module("tests.fuzz.targets").targets()
    seed = arguments.seed if arguments.seed is not None else secrets.randbits(32)
    chosen = [known[name] for name in arguments.target or sorted(known)]
    broken = 0
    for target in chosen:
        broken += fuzz(target, random.Random(f"{seed} {target.name}"), arguments.seconds / len(chosen), arguments.keep)
    print(f"{len(chosen)} targets, {broken} broken, seed {seed}")
    return 1 if broken else 0


def fuzz(target: Target, rng: random.Random, seconds: float, keep: Path) -> bool:
    """Whether a promise was broken. What does not break joins the seeds now and then, so that inputs drift further away."""
    seeds = list(target.seeds)
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline:
        count += 1
        data = mutated(rng, seeds)
        try:
            target.run(data)
        except Exception:
            keep.mkdir(exist_ok=True)
            path = keep / f"{target.name}-{secrets.token_hex(4)}"
            path.write_bytes(data)
            print(f"{target.name} broken by {data[:200]!r} ({path}):\n{traceback.format_exc()}", flush=True)
            return True
        if rng.random() < 0.01:
            seeds[len(target.seeds) + rng.randrange(100) :] = [data]
    print(f"{target.name}: {count} inputs", flush=True)
    return False


def by_coverage(name: str, seconds: float, rest: list[str]) -> int:
    """Runs until a promise breaks (then the process ends with the input printed) or time is over."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["storage"]):
        target = importlib.import_module("tests.fuzz.targets").targets()[name]
    atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}", *rest], target.run)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
