"""What this server answers to lists and watches in every combination is what a real one answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apiserver.api import config_in, running
from tests.list_watch import outcomes
from tests.list_watch.__main__ import DEFINITION, DEFINITIONS, GROUP
from tests.list_watch.in_process import over
from tests.list_watch.outcomes import Server

RECORDED = Path(__file__).parent / "recorded"

#: Where ours is meant to differ, and why.
DIFFERENT = {
    "forms/metadata list on one": "refused with 406, where kube-apiserver fails with 500",
    "forms/streaming metadata list": "refused with 406, where kube-apiserver begins a stream in which nothing can be encoded",
    "watch/watch=1&timeoutSeconds=-1": "a watch whose time is over ends behind its first events; kube-apiserver reports its deadline",
}


#: Watches of a second wait for their ends together.
AT_ONCE = 200


@pytest.mark.slow
async def test_a_custom_resource_is_listed_watched_and_deleted_as_by_kube_apiserver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiserver.objectstore.event_source.EventSource.wait_for.__defaults__", (0.1,))  # for what never comes
    expected = json.loads((RECORDED / "apiextensions-apiserver-1.36.json").read_text())
    async with running(config_in(tmp_path)) as api:
        await api.kv.compact(await api.kv.read_revision())  # as after some minutes; the first revision is gone
        assert (await api.post(DEFINITIONS, DEFINITION)).status == 201
        server = Server(over(api), GROUP, "gadgets", "Gadget", at_once=AT_ONCE)
        await outcomes.until_served(server)
        found = await outcomes.everything(server)
    differing = {
        f"{area}/{name}": (expected[area][name], outcome)
        for area in expected
        for name, outcome in found[area].items()
        if outcome != expected[area][name]
    }
    assert {name: found for name, found in differing.items() if name not in DIFFERENT} == {}
    assert set(differing) == set(DIFFERENT), "what differs no more belongs out of the list"
    assert {area: set(found[area]) for area in found} == {area: set(expected[area]) for area in expected}, "record anew"
