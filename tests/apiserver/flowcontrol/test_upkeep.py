"""The flow control objects of a running server: made, put right, told whether they dangle, and taken along to another version."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.apiserver.api import Api, config_in, running
from tests.fakes.memory_kv import MemoryKV

GROUP = "/apis/flowcontrol.apiserver.k8s.io"


async def names(api: Api, path: str) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in (await api.get(path)).json["items"]}


async def until(api: Api, path: str, wanted: dict[str, str]) -> None:
    """Until the condition Dangling of a FlowSchema is so."""
    async with asyncio.timeout(20):
        while True:
            conditions = (await api.get(path)).json.get("status", {}).get("conditions", [])
            if any(wanted.items() <= condition.items() for condition in conditions):
                return
            await asyncio.sleep(0.02)


async def test_objects_of_an_earlier_version_are_brought_up_to_date(tmp_path: Path) -> None:
    kv = MemoryKV()
    async with running(config_in(tmp_path).model_copy(update={"kubernetes_version": "1.25"}), kv) as api:
        before = await names(api, f"{GROUP}/v1beta2/prioritylevelconfigurations")
        assert before["system"]["spec"]["limited"]["assuredConcurrencyShares"] == 30
        assert "endpoint-controller" in await names(api, f"{GROUP}/v1beta2/flowschemas")
    async with running(config_in(tmp_path), kv) as api:
        after = await names(api, f"{GROUP}/v1/prioritylevelconfigurations")
        limited = after["system"]["spec"]["limited"]
        assert (limited["nominalConcurrencyShares"], limited["lendablePercent"]) == (30, 33)
        assert "assuredConcurrencyShares" not in limited and after["system"]["metadata"]["generation"] == 2
        assert after["system"]["metadata"]["uid"] == before["system"]["metadata"]["uid"]
        assert len(await names(api, f"{GROUP}/v1/flowschemas")) == 11


async def test_a_schema_without_its_level_says_so_until_it_comes(tmp_path: Path) -> None:
    async with running(config_in(tmp_path)) as api:
        spec = {
            "priorityLevelConfiguration": {"name": "mine"},
            "matchingPrecedence": 50,
            "rules": [
                {
                    "subjects": [{"kind": "Group", "group": {"name": "system:authenticated"}}],
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}],
                }
            ],
        }
        await api.post(f"{GROUP}/v1/flowschemas", {"metadata": {"name": "mine"}, "spec": spec})
        path = f"{GROUP}/v1/flowschemas/mine"
        await until(api, path, {"status": "True", "reason": "NotFound"})
        level = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        await api.post(f"{GROUP}/v1/prioritylevelconfigurations", {"metadata": {"name": "mine"}, "spec": level})
        await until(api, path, {"status": "False", "reason": "Found"})
