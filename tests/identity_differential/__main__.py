"""Ask a real server, and write down what it says."""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import urllib.parse
from pathlib import Path
from typing import Any

from tests.identity_differential.answers import compared
from tests.identity_differential.questions import Question, questions

RECORDED = Path(__file__).with_name("recorded-1.20.json")
SECONDS_MAX = 30.0


def ask(server: str, question: Question, tokens: dict[str, str]) -> tuple[int, Any]:
    address = urllib.parse.urlsplit(server)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=SECONDS_MAX, context=context)
    try:
        connection.putrequest(question.method, question.path, skip_accept_encoding=True)
        names = {name.lower() for name, _ in question.headers}
        content = None if question.body is None else json.dumps(question.body).encode()
        if content is not None:
            if "content-type" not in names:
                connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(content)))
        if question.user in tokens and "authorization" not in names:
            connection.putheader("Authorization", f"Bearer {tokens[question.user]}")
        for name, value in question.headers:
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        if answer.status == 200 and "watch" in question.path:
            return answer.status, None
        said = answer.read()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(said)
    except ValueError:
        return answer.status, None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.identity_differential", description=__doc__)
    parser.add_argument("command", choices=("record",))
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--user-token", required=True)
    flags = parser.parse_args()
    tokens = {"admin": flags.token, "alice": flags.user_token}
    found = {question.name: compared(*ask(flags.server, question, tokens)) for question in questions()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True)}" for name, answer in found.items())
    RECORDED.write_text("{\n" + lines + "\n}\n")
    print(f"{len(found)} answers in {RECORDED}")


if __name__ == "__main__":
    main()
