"""A long run; see the package."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from tests.openapi_fuzz.run import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.openapi_fuzz")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--kubernetes-version", default="1.37")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        codes, wrong = asyncio.run(
            fuzz(Path(directory), options.seed, seconds=options.seconds, requests_max=sys.maxsize, version=options.kubernetes_version)
        )
    print(f"seed {options.seed}: {codes.total()} requests, {len(wrong)} wrong; " + ", ".join(f"{c}: {n}" for c, n in sorted(codes.items())))
    print("\n\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
