"""What a real server answered to definitions, good and bad."""

from __future__ import annotations

from pathlib import Path

from tests.crd_definitions import exchange, outcomes, recording
from tests.crd_definitions.cases import recorded_cases
from tests.crd_definitions.update_cases import update_cases

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


#: changes that are answered otherwise, and why
UPDATES_ACCEPTED = {
    "update-merge-uid": "a cause that the real server says twice",
    "update-merge-resource-version-word": "an internal error of the real server; here a bad request",
    "update-merge-type": "the message holds the whole object, with its times and in the order of Go's fields",
    "update-status-condition": "a time that was not said is not shown as null",
    "update-patch-no-kind": "the words for a patch of an unknown type",
    "update-put-kind": "the name of the scheme is of the real server's source",
}


async def test_changes_of_definitions_are_answered_as_a_real_server_answers_them(tmp_path: Path) -> None:
    recorded, cases = recording.read(recording.UPDATES), list(update_cases())
    assert set(recorded) == {case.name for case in cases}
    async with exchange.in_process(tmp_path) as ask:
        ours = await exchange.outcomes_of(ask, cases)
    found = {case.name: outcomes.differ(recorded[case.name], ours[case.name]) for case in cases}
    differ = {name: steps for name, steps in found.items() if steps}
    assert set(differ) <= set(UPDATES_ACCEPTED), [(name, steps) for name, steps in differ.items() if name not in UPDATES_ACCEPTED][:5]
