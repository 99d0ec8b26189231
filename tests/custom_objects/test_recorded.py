"""What a real server answered to requests about custom objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.api import config_in, running
from tests.custom_objects import recording


@pytest.mark.slow
async def test_requests_about_custom_objects_are_answered_as_a_real_server_answers_them(tmp_path: Path) -> None:
    async with running(config_in(tmp_path, kubernetes_version="1.36")) as api:
        count, differing = await recording.replay(api)
    assert not differing, "\n".join(differing[:10])
    assert count > 1000, "the recording is of fewer requests than it should be"
