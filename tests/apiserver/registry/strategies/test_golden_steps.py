"""The transcripts of a real API server's defaulting and refusals, replayed in process: a ratchet that only rises."""

from __future__ import annotations

import pytest

from apiserver.machinery import release
from tests.apiserver.registry.strategies.golden_steps import Case, cases, differences

CASES = list(cases("defaulting", "validation-core", "validation-apps-batch"))

#: of the rules that changed, the first that are known are the nearest to those of the recorded 1.20
OLDEST_MINOR = 25
#: what is refused otherwise by the newest: dots in labels, owner references, names of services
NEWER = {"validation-core/namespaces", "validation-core/owner-references", "validation-core/several-causes-in-one-answer"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_strategies_answer_as_the_recorded_server(case: Case) -> None:
    with release.serving(OLDEST_MINOR):
        compared, found = differences(case)
    assert compared > 0
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_newest_rules_answer_otherwise_where_they_are_known_to(case: Case) -> None:
    _, found = differences(case)
    assert bool(found) is (case.id in NEWER), "\n".join(found)
