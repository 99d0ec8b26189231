"""A long run; see the package."""

from __future__ import annotations

import argparse
import secrets
import tempfile
from pathlib import Path

from tests.schemathesis_run.run import EXAMPLES, run, server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.schemathesis_run")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--kubernetes-version", default="1.37")
    parser.add_argument("--documents", nargs="*", default=(), metavar="NAME", help="api/v1, apis/apps/v1, …; all where none is named")
    parser.add_argument(
        "--examples", type=int, default=EXAMPLES, help="of each operation that fit it and that do not, before the next has its turn"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, server(Path(directory), options.kubernetes_version) as target:
        report = run(target, options.seed, seconds=options.seconds, documents=options.documents, examples=options.examples)
    print(f"seed {options.seed}: {report.text()}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
