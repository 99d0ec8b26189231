"""See the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.differential.differences import ACCEPTED, LOOSE
from tests.differential.exchange import Server, send
from tests.differential.requests import REQUESTS

HERE = Path(__file__).parent


def answers(server: Server) -> dict[str, Any]:
    """By the requests' names. Those that only prepare are made, and left out."""
    found = {}
    for ask in REQUESTS:
        answer = send(server, ask)
        if not ask.quiet:
            found[ask.name] = without_body(answer) if ask.name in LOOSE else answer
    return found


def without_body(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "body": "<not compared>"}


def expected() -> dict[str, Any]:
    """A real server's answers, with ours where they are meant to differ."""
    recorded, accepted = (json.loads((HERE / name).read_text()) for name in ("recorded-1.20.json", "accepted.json"))
    return {**recorded, **accepted}


def write(name: str, found: dict[str, Any]) -> None:
    (HERE / name).write_text(json.dumps(found, indent=0, sort_keys=True, ensure_ascii=False) + "\n")


def main() -> None:
    command, url, token, *more = sys.argv[1:]
    parts = urlsplit(url)
    found = answers(Server(host=parts.hostname or "127.0.0.1", port=parts.port or 443, token=token))
    if command == "record":
        write(more[0], found)
    elif command == "accept":
        write("accepted.json", {name: answer for name, answer in found.items() if name in ACCEPTED})
    else:
        compare(found)


def compare(found: dict[str, Any]) -> None:
    wanted = expected()
    for name, answer in found.items():
        if answer != wanted[name]:
            print(name)
            for key in ("code", "headers", "body"):
                if answer[key] != wanted[name][key]:
                    print(f"   {key}\n     wanted {json.dumps(wanted[name][key])[:600]}\n     ours   {json.dumps(answer[key])[:600]}")


if __name__ == "__main__":
    main()
