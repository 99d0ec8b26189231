"""A write that changes nothing is one where the object is stored otherwise than it would be now: that is how stored objects migrate."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from storage import api as storage_api
from tests.apiserver.api import APPLY, Api

CRON_JOB: dict[str, Any] = {
    "apiVersion": "batch/v1beta1",
    "kind": "CronJob",
    "metadata": {"name": "c", "namespace": "ns-a", "uid": "00000000-0000-0000-0000-000000000001"},
    "spec": {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "image": "i",
                                "terminationMessagePath": "/dev/termination-log",
                                "terminationMessagePolicy": "File",
                                "imagePullPolicy": "Always",
                                "resources": {},
                            }
                        ],
                        "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 30,
                        "dnsPolicy": "ClusterFirst",
                        "securityContext": {},
                        "schedulerName": "default-scheduler",
                    }
                }
            }
        },
    },
    "status": {},
}
#: as kube-apiserver writes JSON
CONFIG_MAP = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"ns-a","uid":"u"},"data":{"k":"v"}}\n'
CASES = [
    ("batch/v1", "cronjobs", orjson.dumps(CRON_JOB)),
    ("v1", "configmaps", CONFIG_MAP),
]


async def stored(api: Api, resource: str) -> bytes:
    answer = await api.kv.range(storage_api.RangeRequest(key=f"/registry/{resource}/ns-a/c".encode()))
    return answer.kvs[0].value


@pytest.mark.parametrize(("version", "resource", "value"), CASES, ids=["an older version", "another layout"])
async def test_an_update_that_changes_nothing_writes_what_is_stored_otherwise(api: Api, version: str, resource: str, value: bytes) -> None:
    await api.kv.put(storage_api.PutRequest(key=f"/registry/{resource}/ns-a/c".encode(), value=value))
    path = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/ns-a/{resource}/c"
    found = (await api.get(path)).json
    assert found["apiVersion"] == version
    written = await api.put(path, found)
    assert written.status == 200, written.body
    assert written.json["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"], "it is stored anew"
    assert (await stored(api, resource)).startswith(f'{{"apiVersion":"{version}","kind":'.encode())
    again = await api.put(path, written.json)
    assert again.json == written.json, "and only once"
    patched = await api.patch(path, {})
    assert patched.json == written.json


async def test_a_dry_run_stores_nothing_and_an_unchanged_apply_migrates(api: Api) -> None:
    path = "/api/v1/namespaces/ns-a/configmaps/c"
    key = b"/registry/configmaps/ns-a/c"
    await api.kv.put(storage_api.PutRequest(key=key, value=CONFIG_MAP))
    found = (await api.get(path)).json
    await api.put(path, found, query={"dryRun": "All"})
    assert await stored(api, "configmaps") == CONFIG_MAP
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    applied = (await api.patch(path, body, APPLY, query={"fieldManager": "m"})).json
    # another server of the same store writes what it would write
    raw = orjson.dumps({"kind": "ConfigMap", **{k: v for k, v in applied.items() if k != "kind"}})
    await api.kv.put(storage_api.PutRequest(key=key, value=raw))
    again = (await api.patch(path, body, APPLY, query={"fieldManager": "m"})).json
    assert again["metadata"]["resourceVersion"] != applied["metadata"]["resourceVersion"]
    assert (await stored(api, "configmaps")).startswith(b'{"apiVersion"')
