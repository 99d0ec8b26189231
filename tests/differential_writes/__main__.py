"""See the package."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.differential_writes import random_writes, scripts
from tests.differential_writes.client import Server, Step, differences

#: how long a definition may take to be served
ESTABLISHED_SECONDS = 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential_writes")
    parser.add_argument("--ours", required=True, help="URL")
    parser.add_argument("--theirs", required=True, help="URL")
    parser.add_argument("--token", default="admin-token")
    parser.add_argument("--script", default="", help="only scripts whose names contain this; 'custom' are those on custom resources")
    parser.add_argument("--random", type=int, default=0, help="instead of scripts, so many random sequences of writes to custom resources")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    ours, theirs = Server(arguments.ours, arguments.token), Server(arguments.theirs, arguments.token)
    failed = 0
    if arguments.random:
        for server in (ours, theirs):
            define(server)
        for seed in range(arguments.seed, arguments.seed + arguments.random):
            # a server of custom resources alone makes no namespaces
            for server in (ours, theirs):
                server.begin("default", make=False)
            writer = random_writes.Writer(random.Random(seed), f"o-{random.SystemRandom().randbytes(4).hex()}")
            failed += compare(f"seed {seed}", writer.steps(arguments.steps), ours, theirs, verbose=arguments.v, stop=True)
    else:
        for name, steps in scripts.ALL.items():
            if arguments.script in name:
                namespace = f"d-{random.SystemRandom().randbytes(4).hex()}"
                for server in (ours, theirs):
                    server.begin(namespace)
                failed += compare(name, steps, ours, theirs, verbose=arguments.v)
    print(f"{failed} steps differ")
    return 1 if failed else 0


def define(server: Server) -> None:
    """The definition of the random writes' resource, served."""
    server.raw("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", random_writes.DEFINITION)
    until = time.monotonic() + ESTABLISHED_SECONDS
    while server.raw("GET", random_writes.GADGETS.replace("{ns}", "default"))[0] != 200:
        assert time.monotonic() < until, "the definition is not served"
        time.sleep(0.1)


def compare(name: str, steps: list[Step], ours: Server, theirs: Server, *, verbose: bool, stop: bool = False) -> int:
    """Prints the steps whose answers differ; their number. ``stop``: at the first, after which the two objects may differ too."""
    failed = 0
    for number, step in enumerate(steps):
        here, there = ours.run(step), theirs.run(step)
        found = differences(
            {"code": here.code, "body": here.body, "warnings": here.warnings},
            {"code": there.code, "body": there.body, "warnings": there.warnings},
        )
        if found or verbose:
            print(f"-- {name} #{number} {step.method} {step.path}?{step.query} {step.type} {str(step.body)[:900]}  {step.note}")
            if verbose:
                print("   ours", here.code, str(here.body)[:2500])
            for line in found:
                print("  ", line)
        failed += bool(found)
        if found and stop:
            break
    return failed


if __name__ == "__main__":
    sys.exit(main())
