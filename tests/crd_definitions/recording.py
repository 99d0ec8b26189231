"""What a real server answered, kept small: bodies that come often are written once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded.json.gz"
#: changes to definitions that are established
UPDATES = Path(__file__).parent / "updates.json.gz"


def write(file: Path, found: dict[str, list[Any]]) -> None:
    with file.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write(json.dumps(found, indent=0, sort_keys=True, ensure_ascii=False).encode())


def read(file: Path = RECORDED) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return found
