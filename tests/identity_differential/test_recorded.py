"""Our answers to the recorded questions are a real kube-apiserver's; where not, the reason is named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson

from tests.apiserver.api import Api, config_in, running
from tests.identity_differential.answers import compared
from tests.identity_differential.questions import Question, questions

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded-1.20.json").read_text())
TOKENS = {"admin": "admin-token", "alice": "alice-token"}


class Asking(Api):
    """Requests with headers that may stand there several times."""

    more: tuple[tuple[str, str], ...] = ()

    def scope(self, method: str, path: str, query: Any, headers: dict[str, str]) -> dict[str, Any]:
        from urllib.parse import unquote

        plain, _, text = path.partition("?")
        scope = super().scope(method, unquote(plain), text, headers)
        scope["raw_path"] = plain.encode()
        scope["headers"] += [(name.lower().encode(), value.encode()) for name, value in self.more]
        return scope


async def ours(api: Asking, question: Question) -> dict[str, Any]:
    api.more = tuple(header for header in question.headers if header[0] != "Content-Type")
    content_type = dict(question.headers).get("Content-Type", "")
    token = "" if any(name == "Authorization" for name, _ in question.headers) else TOKENS.get(question.user, "")
    if "watch" in question.path:
        return {}
    answer = await api.request(question.method, question.path, question.body, content_type=content_type, token=token)
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    return compared(answer.status, body)


async def differences(directory: Path) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    async with running(config_in(directory, api_audiences=("api",))) as made:
        api = Asking(made.server, made.kv)
        for question in questions():
            wanted = RECORDED[question.name]
            said = await ours(api, question)
            if said and said != wanted:
                found[question.name] = (wanted, said)
    return found


#: questions that a current Kubernetes answers otherwise than 1.20, and why
NEWER = {
    "token of another": "a name in the body that is not the account's is refused",
    "rules": "the role system:basic-user has selfsubjectreviews",
}
NEWER_KINDS = {
    "local access": "a review without a namespace is one of the path's",
}
#: how a value that is no text is shown: as a Go value in 1.20, as JSON since
_SHOWN = re.compile(r'Invalid value: (?:"?null"?|(?:\[\])?[\w.]*\{.*?\}|\[[^:]*?\])(?=: )')
#: which one of several bindings that all allow is named depends on the order of a Go map
_ALLOWED = re.compile("RBAC: allowed by .*")


def comparable(answer: Any) -> Any:
    found = {key: value for key, value in answer.items() if value is not None}
    if "message" in found:
        found["message"] = _SHOWN.sub("Invalid value: <value>", found["message"])
    if isinstance(found.get("answer"), dict) and found["answer"].get("allowed"):
        found["answer"] = {**found["answer"], "reason": _ALLOWED.sub("RBAC: allowed", found["answer"].get("reason", ""))}
    return found


def is_newer(name: str) -> bool:
    return name in NEWER or any(name.startswith(kind) for kind in NEWER_KINDS)


async def test_answers_are_a_real_servers(tmp_path: Path) -> None:
    found = await differences(tmp_path)
    told = {name: pair for name, pair in found.items() if not is_newer(name) and comparable(pair[0]) != comparable(pair[1])}
    assert not told, json.dumps(told, indent=1)[:4000]
    assert len(RECORDED) > 400 and not set(NEWER) - set(found), "what is no difference any more is not listed as one"
