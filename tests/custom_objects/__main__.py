"""See the package."""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys

from tests.custom_objects.asking import STORED_AGAIN, Compared, compare, define
from tests.custom_objects.definitions import KINDS, Kind
from tests.custom_objects.requests import Requests
from tests.custom_objects.schemas import obj, random_schema


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.custom_objects", description=sys.modules["tests.custom_objects"].__doc__)
    parser.add_argument("--ours", required=True, help="URL")
    parser.add_argument("--theirs", required=True, help="URL")
    parser.add_argument("--token", default="admin-token")
    parser.add_argument("--kind", default="", help="only kinds whose plural contains this")
    parser.add_argument("--random", type=int, default=100, help="sequences of requests")
    parser.add_argument("--schemas", type=int, default=0, help="so many random schemas instead of the kinds made by hand")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--shown", type=int, default=5, help="of each sort of difference")
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    ours, theirs = Compared(arguments.ours, arguments.token), Compared(arguments.theirs, arguments.token)
    kinds = [kind for kind in KINDS if arguments.kind in kind.plural]
    if arguments.schemas:
        kinds = [_random_kind(arguments.seed + i) for i in range(arguments.schemas)]
    served = []
    for kind in kinds:
        codes = [define(server, kind) for server in (ours, theirs)]
        if codes[0] != codes[1]:
            print(f"{kind.plural}: definition {codes}")
        if codes == [201, 201]:
            served.append(kind)
    print(f"{len(served)} definitions")
    sorts: collections.Counter[str] = collections.Counter()
    count = failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        kind = served[seed % len(served)]
        name = f"o-{random.SystemRandom().randbytes(4).hex()}"
        for server in (ours, theirs):
            server.begin("default", make=False)
        for number, step in enumerate(Requests(random.Random(seed), kind, name).steps(arguments.steps)):
            count += 1
            lines = compare(step, ours, theirs)
            if arguments.v:
                print(f"-- seed {seed} #{number} {step.method} {step.path}?{step.query} {step.type} {step.body}")
            if not lines:
                continue
            if lines == [STORED_AGAIN]:
                break
            failed += 1
            sort = re.sub(r"\d+|<[^>]*>|o-\w+", "#", lines[0][:90])
            sorts[sort] += 1
            if sorts[sort] <= arguments.shown:
                print(f"-- seed {seed} #{number} {step.method} {step.path}?{step.query} {step.type} {step.accept} {str(step.body)[:1500]}")
                for line in lines[:14]:
                    print("  ", line[:1200])
            if not any(line.startswith(".order") for line in lines):
                break  # the objects may differ from now on
    print(f"{failed} of {count} differ")
    for sort, times in sorts.most_common():
        print(times, sort)
    return 1 if failed else 0


def _random_kind(seed: int) -> Kind:
    source = random.Random(f"schema {seed}")
    return Kind(plural=f"random{seed}s", schemas={"v1": obj({"spec": random_schema(source), "status": random_schema(source, 1)})})


if __name__ == "__main__":
    sys.exit(main())
