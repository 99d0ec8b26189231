"""Send generated requests to a server in this process and judge the answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import orjson

from apiserver.schemas.openapi import swagger2
from tests.apiserver.api import Answer, Api, config_in, running
from tests.openapi_fuzz.generate import Generator, Request

ANSWER_SECONDS_MAX = 30.0
#: what a server without kubelets says of logs and proxies, what it cannot reach, and resource versions that have not come yet
MEANT = frozenset((501, 503, 504))


def fault(answer: Answer) -> str:
    """What is wrong with an answer, "" if nothing is."""
    if answer.status >= 500 and answer.status not in MEANT and not _is_upstreams(answer):
        return f"{answer.status}"
    if answer.status >= 400 and answer.headers["content-type"][0] == "application/json":
        status = orjson.loads(answer.body)
        if "paths" not in status and (status.get("kind"), status.get("code")) != ("Status", answer.status):
            return "a refusal that is no Status"
        if "Traceback" in str(status):
            return "a traceback"
    return ""


def _is_upstreams(answer: Answer) -> bool:
    """The one refusal that is a 500 in Kubernetes, whose text clients look for."""
    return answer.status == 500 and answer.message == "resourceVersion should not be set on objects to be created"


async def fuzz(directory: Path, seed: int, *, seconds: float, requests_max: int, version: str = "1.37") -> tuple[Counter[int], list[str]]:
    """How often each status was answered, and the requests that went wrong, with what."""
    codes: Counter[int] = Counter()
    wrong: list[str] = []
    async with running(config_in(directory, kubernetes_version=version)) as api:
        document = swagger2.document(api.server.table.snapshot(), api.server.schemas.definitions)
        end = time.monotonic() + seconds
        for request in Generator(document, random.Random(seed)).requests():
            if time.monotonic() > end or codes.total() >= requests_max:
                return codes, wrong
            told, code = await judged(api, request)
            codes[code] += 1
            if told:
                wrong.append(f"{told}\n{request}")
    raise AssertionError("requests have no end")


async def judged(api: Api, request: Request) -> tuple[str, int]:
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            answer = await api.request(request.method, request.path, request.body, query=request.query, content_type=request.content_type)
    except TimeoutError:
        return "no answer", 0
    told = fault(answer)
    return (f"{told}: {answer.body[:600].decode('utf-8', 'replace')}" if told else ""), answer.status
