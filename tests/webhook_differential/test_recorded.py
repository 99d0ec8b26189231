"""Every recorded story, told to this server in process."""

from __future__ import annotations

import pytest

from apiserver.config import ServerConfig
from tests.apiserver.api import config_in, running
from tests.webhook_differential import comparing
from tests.webhook_differential.world import OwnServer, Story, tell

CASES = [(area, story) for area, stories in comparing.STORIES.items() for story in stories]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    return config_in(tmp_path_factory.mktemp("server"))


@pytest.mark.parametrize(("area", "story"), CASES, ids=lambda value: value if isinstance(value, str) else value.__name__)
async def test_a_story_goes_as_with_the_real_server(area: str, story: Story, config: ServerConfig) -> None:
    async with running(config.model_copy(update={"kubernetes_version": comparing.RELEASES[area]})) as api:
        ours = await tell(story, OwnServer(api))
    found = list(comparing.differences(comparing.recorded(area)[story.__name__], ours))
    assert not found, "\n".join(found)
