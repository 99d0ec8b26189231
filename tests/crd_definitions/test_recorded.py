"""What a real server answered to definitions, good and bad."""

from __future__ import annotations

from pathlib import Path

from tests.crd_definitions import exchange, outcomes, recording
from tests.crd_definitions.cases import recorded_cases

#: cases that are answered otherwise, and why
ACCEPTED = {
    "metadata-18": "a creation that is only tried keeps the resourceVersion that it came with",
    "metadata-25": "the name of the scheme is of the real server's source",
    "metadata-29": "the name of the scheme is of the real server's source",
    "request-table": "a Table of what was only tried has no resourceVersion",
}


async def test_definitions_are_answered_as_a_real_server_answers_them(tmp_path: Path) -> None:
    recorded, cases = recording.read(), recorded_cases()
    assert len(cases) > 1500
    async with exchange.in_process(tmp_path) as ask:
        ours = await exchange.outcomes_of(ask, cases)
    found = {case.name: outcomes.differ(recorded[case.name], ours[case.name]) for case in cases}
    differ = {name: steps for name, steps in found.items() if steps and name not in ACCEPTED}
    assert not differ, list(differ.items())[:5]
