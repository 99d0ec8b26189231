"""What the server relies on cannot be changed (each answer but the words of the exempt level as a real 1.20 gives it)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.flowcontrol import bootstrap
from tests.apiserver.api import Api

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "change", "words"),
    [
        ("flowschemas/exempt", {"matchingPrecedence": 5}, "spec of 'exempt' must equal the fixed value"),
        ("flowschemas/catch-all", {"distinguisherMethod": None}, "spec of 'catch-all' must equal the fixed value"),
        ("flowschemas/catch-all", {"rules": []}, "spec of 'catch-all' must equal the fixed value"),
        (
            "prioritylevelconfigurations/catch-all",
            {"limited": {"nominalConcurrencyShares": 6}},
            "spec of 'catch-all' must equal the fixed value",
        ),
        (
            "prioritylevelconfigurations/exempt",
            {"type": "Limited", "exempt": None, "limited": {"limitResponse": {"type": "Reject"}}},
            "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
        ),
    ],
)
async def test_a_change_of_a_mandatory_object_is_refused(api: Api, path: str, change: dict[str, Any], words: str) -> None:
    answer = await api.patch(f"{FLOWS}/{path}", {"spec": change})
    assert answer.status == 422
    cause = answer.json["details"]["causes"][-1]
    assert cause["field"] == "spec" and cause["message"].endswith(words)


@pytest.mark.parametrize("path", ["flowschemas/exempt", "flowschemas/catch-all", "prioritylevelconfigurations/catch-all"])
async def test_it_can_be_written_as_it_is(api: Api, path: str) -> None:
    found = (await api.get(f"{FLOWS}/{path}")).json
    found["metadata"]["labels"] = {"a": "b"}
    answer = await api.put(f"{FLOWS}/{path}", found)
    assert answer.status == 200 and answer.json["spec"] == found["spec"]


async def test_what_the_exempt_level_lends_is_an_administrators(api: Api) -> None:
    spec = {"exempt": {"nominalConcurrencyShares": 10, "lendablePercent": 50}}
    assert (await api.patch(f"{FLOWS}/prioritylevelconfigurations/exempt", {"spec": spec})).status == 200
    found = (await api.get(f"{FLOWS}/prioritylevelconfigurations/exempt")).json
    plan = bootstrap.plan(bootstrap.mandatory_levels(), [], {"exempt": found})
    assert not plan.replace, "and is not put back"
