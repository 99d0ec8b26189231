"""See the package."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import aiohttp

from tests.apiserver.api import config_in, running
from tests.webhook_differential import comparing
from tests.webhook_differential.world import OwnServer, RealServer, tell


async def _record(area: str, url: str, token: str, names: list[str]) -> None:
    found = comparing.recorded(area) if names else {}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=connector) as session:
        for story in comparing.STORIES[area]:
            if names and story.__name__ not in names:
                continue
            found[story.__name__] = await tell(story, RealServer(session, url, token))
            print(story.__name__, len(found[story.__name__]), "steps")
    comparing.file_of(area).write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


async def _compare(areas: list[str], names: list[str]) -> int:
    differ = count = 0
    for area in areas:
        recorded = comparing.recorded(area)
        for story in comparing.STORIES[area]:
            if names and story.__name__ not in names:
                continue
            with tempfile.TemporaryDirectory() as directory:
                async with running(config_in(Path(directory), kubernetes_version=comparing.RELEASES[area])) as api:
                    ours = await tell(story, OwnServer(api))
            count += len(ours)
            for line in comparing.differences(recorded[story.__name__], ours):
                differ += 1
                print(f"{story.__name__} {line}")
    print(f"{count} steps, {differ} differences")
    return 1 if differ else 0


def main() -> int:
    match sys.argv[1:]:
        case ["record", area, url, token, *names]:
            asyncio.run(_record(area, url, token, names))
            return 0
        case ["compare", *words]:
            areas = [word for word in words if word in comparing.STORIES] or list(comparing.STORIES)
            return asyncio.run(_compare(areas, [word for word in words if word not in comparing.STORIES]))
    print(sys.modules["tests.webhook_differential"].__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
