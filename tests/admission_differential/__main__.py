"""Ask a real server, and write down what it says."""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import ssl
import urllib.parse
from pathlib import Path
from typing import Any

from tests.admission_differential.answers import compared
from tests.admission_differential.groups import GROUPS
from tests.admission_differential.steps import Step

RECORDED = Path(__file__).with_name("recorded")
SECONDS_MAX = 30.0


def ask(connection: http.client.HTTPSConnection, step: Step, token: str) -> tuple[int, Any]:
    connection.putrequest(step.method, step.path, skip_accept_encoding=True)
    content = b"" if step.body is None else json.dumps(step.body).encode()
    connection.putheader("Authorization", f"Bearer {token}")
    connection.putheader("Content-Type", step.content_type or "application/json")
    connection.putheader("Content-Length", str(len(content)))
    for name, value in step.headers():
        connection.putheader(name, value)
    connection.endheaders(content)
    answer = connection.getresponse()
    said = answer.read()
    try:
        return answer.status, json.loads(said)
    except ValueError:
        return answer.status, None


def record(group: str, server: str, token: str) -> None:
    address = urllib.parse.urlsplit(server)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=SECONDS_MAX, context=context)
    found = {step.name: compared(*ask(connection, step, token)) for step in GROUPS[group].steps()}
    connection.close()
    text = json.dumps(found, sort_keys=True, indent=0)
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{group}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{group}: {len(found)} answers")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.admission_differential", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("group", choices=sorted(GROUPS))
    recording.add_argument("--server", required=True)
    recording.add_argument("--token", required=True)
    commands.add_parser("groups")
    flags = parser.parse_args()
    if flags.command == "groups":
        for name, group in GROUPS.items():
            print(name, *group.real_flags)
    else:
        record(flags.group, flags.server, flags.token)


if __name__ == "__main__":
    main()
