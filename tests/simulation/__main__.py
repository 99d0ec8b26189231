"""``python -m tests.simulation``: run seeds, print any failing one with how to replay it."""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.simulation.run import Report, run_seed


def main() -> int:
    """0: all seeds were clean."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.0, help="run fresh seeds for so long (real time)")
    parser.add_argument("--seed", type=int, help="run this seed (with --seconds or --count: and those after it)")
    parser.add_argument("--count", type=int, default=0, help="run so many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failing seed")
    arguments = parser.parse_args()
    if arguments.seed is not None and not arguments.seconds and not arguments.count:
        return _run_one(arguments.seed, trace=arguments.trace)
    return _run_many(arguments)


def _run_one(seed: int, *, trace: bool) -> int:
    started = time.perf_counter()
    report = run_seed(seed, keep_trace=trace)
    print("\n".join(report.trace))
    print(report.options)
    print(f"{report.virtual_seconds:.1f} virtual seconds in {time.perf_counter() - started:.2f} s, trace {report.trace_hash}")
    print(", ".join(f"{name} {count}" for name, count in report.counts.items()))
    if report.failure is not None:
        print(report.stack)
        print(f"seed {seed} FAILED: {report.failure}")
    return 0 if report.ok else 1


def _run_many(arguments: argparse.Namespace) -> int:
    first = arguments.seed if arguments.seed is not None else secrets.randbits(40)
    started = time.monotonic()
    deadline = started + arguments.seconds if arguments.seconds else float("inf")
    totals: Counter[str] = Counter()
    clean = failed = 0
    for report in _reports(first, arguments.count, arguments.jobs, deadline):
        totals.update(report.counts)
        if report.ok:
            clean += 1
            continue
        failed += 1
        print(f"seed {report.seed} FAILED: {report.failure}\n  python -m tests.simulation --seed {report.seed} --trace", flush=True)
        if not arguments.keep_going:
            break
    print(f"{clean} seeds clean, {failed} failed, from seed {first}, in {time.monotonic() - started:.0f} s")
    print(", ".join(f"{name} {count}" for name, count in sorted(totals.items())))
    return 1 if failed else 0


def _reports(first: int, count: int, jobs: int, deadline: float) -> Iterator[Report]:
    seeds = _seeds(first, count, deadline)
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run_seed, seeds)


def _seeds(first: int, count: int, deadline: float) -> Iterator[int]:
    seed = first
    while time.monotonic() < deadline and (not count or seed < first + count):
        yield seed
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
