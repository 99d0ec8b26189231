"""See the package."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.crd_definitions import exchange, outcomes, recording
from tests.crd_definitions.cases import all_cases, recorded_cases
from tests.crd_definitions.exchange import Case

TIMES_ASKED = 3


def shown(name: str, case: Case, found: list[tuple[int, Any, Any]]) -> None:
    asked = [step for step in case.steps if not step.quiet]
    for position, theirs, ours in found:
        step = asked[position]
        print(f"{name}[{position}] {step.method} {step.path} {json.dumps(step.body) if not isinstance(step.body, bytes) else step.body!r}")
        for path, one, other in _unlike(theirs, ours, ""):
            print(f"    {path}\n      theirs {json.dumps(one, ensure_ascii=False)}\n      ours   {json.dumps(other, ensure_ascii=False)}")


def _unlike(one: Any, other: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        absent = "<absent>"
        return [found for name in names for found in _unlike(one.get(name, absent), other.get(name, absent), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [found for i, (a, b) in enumerate(zip(one, other, strict=True)) for found in _unlike(a, b, f"{path}[{i}]")]
    return [] if one == other and type(one) is type(other) else [(path, one, other)]


async def record(url: str, token: str, file: Path, names: list[str]) -> int:
    known = recorded_cases() if file == recording.RECORDED else all_cases()
    cases = [case for case in known if not names or any(name in case.name for name in names)]
    async with exchange.over_http(url, token) as ask:
        recording.write(file, await exchange.outcomes_of(ask, cases, times=TIMES_ASKED))
    print(f"{len(cases)} cases")
    return 0


async def compare(file: Path, names: list[str]) -> int:
    recorded = recording.read(file)
    cases = [case for case in all_cases() if case.name in recorded and (not names or any(name in case.name for name in names))]
    with tempfile.TemporaryDirectory() as directory:
        async with exchange.in_process(Path(directory)) as ask:
            ours = await exchange.outcomes_of(ask, cases)
    count = 0
    for case in cases:
        found = outcomes.differ(recorded[case.name], ours[case.name])
        count += bool(found)
        shown(case.name, case, found)
    print(f"{count} of {len(cases)} differ")
    return 1 if count else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crd_definitions", description=sys.modules["tests.crd_definitions"].__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "compare"):
        command = commands.add_parser(name)
        if name == "record":
            command.add_argument("url")
            command.add_argument("token")
        command.add_argument("names", nargs="*")
        command.add_argument("--file", type=Path, default=recording.RECORDED)
    flags = parser.parse_args()
    if flags.command == "record":
        return asyncio.run(record(flags.url, flags.token, flags.file, flags.names))
    return asyncio.run(compare(flags.file, flags.names))


if __name__ == "__main__":
    sys.exit(main())
