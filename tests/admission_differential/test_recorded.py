"""Our admission answers what a real kube-apiserver does, step by step; where not, a rule of ``newer`` says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.admission_differential.groups import GROUPS
from tests.admission_differential.newer import RULES, explained_by, unexplained
from tests.admission_differential.replay import answers, differences, recorded

#: the oldest that is served: nearest to the one that was asked
MINOR = "1.25"

_used: set[int] = set()


@pytest.mark.parametrize("group", GROUPS)
async def test_answers_are_a_real_servers(group: str, tmp_path: Path) -> None:
    real = recorded(group)
    told: dict[str, list[str]] = {}
    for name, ours in (await answers(group, tmp_path, kubernetes_version=MINOR)).items():
        found = differences(ours, real[name])
        for one in found:
            _used.update(explained_by(name, one))
        if left := unexplained(name, found):
            told[name] = left
    assert not told, json.dumps(told, indent=1)[:6000]
    assert set(real) == {step.name for step in GROUPS[group].steps()}, "what is not asked any more is not recorded"


def test_every_rule_explains_something() -> None:
    assert not _used or _used == RULES, sorted(RULES - _used)
