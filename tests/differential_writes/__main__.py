"""See the package."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.differential_writes import scripts
from tests.differential_writes.client import Server, Step, differences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential_writes")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--token", default="admin-token")
    parser.add_argument("--script", default="")
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    ours, theirs = Server(arguments.ours, arguments.token), Server(arguments.theirs, arguments.token)
    failed = 0
    for name, steps in scripts.ALL.items():
        if arguments.script in name:
            failed += compare(name, steps, ours, theirs, verbose=arguments.v)
    print(f"{failed} steps differ")
    return 1 if failed else 0


def compare(name: str, steps: list[Step], ours: Server, theirs: Server, *, verbose: bool) -> int:
    namespace = f"d-{secrets.token_hex(4)}"
    ours.begin(namespace)
    theirs.begin(namespace)
    failed = 0
    for number, step in enumerate(steps):
        here, there = ours.run(step), theirs.run(step)
        found = differences(
            {"code": here.code, "body": here.body, "warnings": here.warnings},
            {"code": there.code, "body": there.body, "warnings": there.warnings},
        )
        if found or verbose:
            print(f"-- {name} #{number} {step.method} {step.path}?{step.query} {step.type} {str(step.body)[:300]}  {step.note}")
            if verbose:
                print("   ours", here.code, str(here.body)[:1500])
            for line in found:
                print("  ", line)
        failed += bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main())
