"""This server, asked in process."""

from __future__ import annotations

from typing import Any

from tests.apiserver.api import Api
from tests.list_watch import outcomes
from tests.list_watch.outcomes import Ask


def over(api: Api) -> Ask:
    async def ask(method: str, path: str, query: dict[str, str], accept: str, body: Any) -> tuple[int, list[Any]]:
        answer = await api.request(method, path, body, query=query, headers={"accept": accept})
        return answer.status, outcomes.parsed(answer.body)

    return ask
