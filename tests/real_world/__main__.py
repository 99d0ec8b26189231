"""See the package."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.apiserver.api import config_in, running
from tests.real_world import objects
from tests.real_world.checks import check, definitions_in


async def main(directories: list[Path], samples: Path | None) -> int:
    found = await check_definitions(directories)
    if samples is not None:
        found |= await check_objects(directories, samples)
    return found


async def check_objects(directories: list[Path], samples: Path) -> int:
    definitions = [definition for _, definition in definitions_in(directories)]
    with tempfile.TemporaryDirectory() as directory:
        async with running(config_in(Path(directory))) as api:
            await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
            projects = await objects.run(api, definitions, samples)
    print(objects.table(projects))
    return int(any(project.problems for project in projects))


async def check_definitions(directories: list[Path]) -> int:
    total = bad = rules = 0
    with tempfile.TemporaryDirectory() as directory:
        async with running(config_in(Path(directory))) as api:
            await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
            for path, definition in definitions_in(directories):
                outcome = await check(api, definition)
                total, bad, rules = total + 1, bad + bool(outcome.problems), rules + outcome.rules
                if outcome.problems or outcome.refused:
                    print(f"{outcome.name} ({path.name})")
                    for line in outcome.problems:
                        print(f"    PROBLEM {line}")
                    for line in outcome.refused:
                        print(f"    refused by its own rules: {line[:300]}")
                elif outcome.seconds > 2:
                    print(f"{outcome.name}: {outcome.seconds:.1f} s")
    print(f"{total} definitions, {rules} rules, {bad} with problems")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--objects", type=Path, help="a directory with a directory of sample objects for each project")
    args = parser.parse_args()
    raise SystemExit(asyncio.run(main(args.directories, args.objects)))
