"""See the package."""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
from dataclasses import dataclass, field

from tests.custom_objects import recording
from tests.custom_objects.asking import PANICKED, STORED_AGAIN, Compared, compare, define, tighten
from tests.custom_objects.definitions import KINDS, Kind, kind_to_tighten, random_kind
from tests.custom_objects.requests import Requests
from tests.differential_writes.client import Step

#: of each definition that becomes strict
OBJECTS_TO_RATCHET = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.custom_objects", description=sys.modules["tests.custom_objects"].__doc__)
    parser.add_argument("--ours", required=True, help="URL")
    parser.add_argument("--theirs", required=True, help="URL")
    parser.add_argument("--token", default="admin-token")
    parser.add_argument("--kind", default="", help="only kinds whose plural contains this")
    parser.add_argument("--random", type=int, default=100, help="sequences of requests")
    parser.add_argument("--schemas", type=int, default=0, help="so many random schemas instead of the kinds made by hand")
    parser.add_argument("--ratchet", type=int, default=0, help="so many definitions that become strict when objects are there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--shown", type=int, default=5, help="of each sort of difference")
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--record", action="store_true", help="write recorded.json.gz anew from what both servers agree about")
    arguments = parser.parse_args()
    ours, theirs = Compared(arguments.ours, arguments.token), Compared(arguments.theirs, arguments.token)
    if arguments.record:
        return recording.record(ours, theirs)
    found = Found(arguments.shown, arguments.v)
    if arguments.ratchet:
        for seed in range(arguments.seed, arguments.seed + arguments.ratchet):
            ratchet(seed, ours, theirs, arguments.steps, found)
    else:
        kinds = [kind for kind in KINDS if arguments.kind in kind.plural]
        if arguments.schemas:
            kinds = [random_kind(arguments.seed + i) for i in range(arguments.schemas)]
        served = [kind for kind in kinds if served_by_both(kind, ours, theirs)]
        print(f"{len(served)} definitions")
        for seed in range(arguments.seed, arguments.seed + arguments.random):
            kind = served[seed % len(served)]
            name = f"o-{random.SystemRandom().randbytes(4).hex()}"
            follow(f"seed {seed}", Requests(random.Random(seed), kind, name).steps(arguments.steps), ours, theirs, found)
    print(f"{found.failed} of {found.count} differ")
    for sort, times in found.sorts.most_common():
        print(times, sort)
    return 1 if found.failed else 0


@dataclass(slots=True)
class Found:
    """What differed so far; ``shown`` of each sort are printed."""

    shown: int
    verbose: bool
    count: int = 0
    failed: int = 0
    sorts: collections.Counter[str] = field(default_factory=collections.Counter)

    def add(self, name: str, step: Step, lines: list[str]) -> None:
        self.failed += 1
        sort = re.sub(r"\d+|<[^>]*>|o-\w+", "#", lines[0][:90])
        self.sorts[sort] += 1
        if self.sorts[sort] <= self.shown:
            print(f"-- {name} {step.method} {step.path}?{step.query} {step.type} {step.accept} {str(step.body)[:1500]}")
            for line in lines[:14]:
                print("  ", line[:1200])


def served_by_both(kind: Kind, ours: Compared, theirs: Compared) -> bool:
    codes = [define(server, kind) for server in (ours, theirs)]
    if codes[0] != codes[1]:
        print(f"{kind.plural}: definition {codes}")
    return codes == [201, 201]


def follow(name: str, steps: list[Step], ours: Compared, theirs: Compared, found: Found) -> None:
    """Until the objects may differ."""
    for server in (ours, theirs):
        server.begin("default", make=False)
    for number, step in enumerate(steps):
        found.count += 1
        lines = compare(step, ours, theirs)
        if found.verbose:
            print(f"-- {name} #{number} {step.method} {step.path}?{step.query} {step.type} {step.body}")
        if lines in ([STORED_AGAIN], [PANICKED]):
            return
        if lines:
            found.add(f"{name} #{number}", step, lines)
            if not any(line.startswith(".order") for line in lines):
                return


def ratchet(seed: int, ours: Compared, theirs: Compared, steps: int, found: Found) -> None:
    """Objects that are made while nothing is said of their values, and changed when much is."""
    loose, tight = kind_to_tighten(seed)
    if not served_by_both(loose, ours, theirs):
        return
    source = random.Random(seed)
    for number in range(OBJECTS_TO_RATCHET):
        requests = Requests(source, tight, f"o-{number}")
        requests.values.wrong = source.choice((0.02, 0.1))
        for step in (requests.create(), requests.status()):
            for server in (ours, theirs):
                server.begin("default", make=False)
                server.run(step)
    if not tighten(ours, tight) or not tighten(theirs, tight):
        return
    for number in range(OBJECTS_TO_RATCHET):
        path = f"{tight.path()}/o-{number}"
        requests = Requests(source, tight, f"o-{number}")
        requests.values.wrong = 0.01
        look = Step(method="GET", path=path)
        follow(f"ratchet {seed} o-{number}", [look, *requests.updates(steps)], ours, theirs, found)


if __name__ == "__main__":
    sys.exit(main())
