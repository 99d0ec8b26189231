"""See the package."""

from __future__ import annotations

import gzip
import json
import sys

from tests.crd_rules import asking, recording
from tests.crd_rules.asking import RECORDED
from tests.crd_rules.cases import cases


def main() -> int:
    match sys.argv[1:]:
        case ["record", url, token]:
            found = recording.record_all(recording.Server(url, token), cases())
            with RECORDED.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                packed.write(json.dumps(found, indent=0, sort_keys=True).encode())
            print(f"{len(found)} cases")
            return 0
        case ["compare", *names]:
            recorded, differ, count = asking.recorded(), 0, 0
            for case in cases():
                if names and not any(name in case.name for name in names):
                    continue
                for what, theirs, ours in asking.compared(case, recorded[case.name]):
                    count += 1
                    if theirs != ours:
                        differ += 1
                        shown = [json.dumps(one, ensure_ascii=False) for one in (theirs, ours)]
                        print(f"{case.name} {what}\n  theirs {shown[0]}\n  ours   {shown[1]}")
            print(f"{differ} of {count} differ")
            return 1 if differ else 0
    print(sys.modules["tests.crd_rules"].__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
