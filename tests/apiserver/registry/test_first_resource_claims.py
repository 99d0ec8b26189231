"""The first designs of dynamic resource allocation, as releases 1.26 to 1.31 had them behind ``--runtime-config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.api import Answer, config_in, running

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def answers(tmp_path: Path, minor: int, version: str, *steps: tuple[str, str, object]) -> list[Answer]:
    config = config_in(tmp_path, kubernetes_version=f"1.{minor}", runtime_config=f"resource.k8s.io/{version}=true")
    async with running(config) as api:
        found = []
        for method, path, body in steps:
            headers = TABLE if method == "TABLE" else None
            verb = "GET" if method == "TABLE" else method
            place, _, query = path.partition("?")
            found.append(await api.request(verb, f"/apis/resource.k8s.io/{version}{place}", body, headers=headers, query=query))
        return found


CLAIMS = "/namespaces/default/resourceclaims"


@pytest.mark.parametrize(("minor", "version"), [(26, "v1alpha1"), (27, "v1alpha2"), (30, "v1alpha2")])
async def test_a_claim_of_a_class(tmp_path: Path, minor: int, version: str) -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"resourceClassName": "gpu"}}
    wrong = {
        "metadata": {"name": "w"},
        "spec": {"resourceClassName": "-", "allocationMode": "Now", "parametersRef": {"kind": "", "name": "p"}},
    }
    made_class, made, refused, moved, table = await answers(
        tmp_path, minor, version,
        ("POST", "/resourceclasses", {"metadata": {"name": "gpu"}, "driverName": "gpu.example.com"}),
        ("POST", CLAIMS, claim),
        ("POST", CLAIMS, wrong),
        ("PUT", f"{CLAIMS}/c", {**claim, "spec": {"resourceClassName": "other", "allocationMode": "Immediate"}}),
        ("TABLE", CLAIMS, None),
    )  # fmt: skip
    assert made_class.status == made.status == 201, (made_class.body, made.body)
    assert made.json["spec"] == {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"}
    assert made.json["status"] == {}
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("spec.resourceClassName", "FieldValueInvalid"),
        ("spec.parametersRef.kind", "FieldValueRequired"),
        ("spec.allocationMode", "FieldValueNotSupported"),
    ]
    assert [(cause["field"], cause["reason"]) for cause in moved.causes] == [("spec", "FieldValueInvalid")]
    assert [c["name"] for c in table.json["columnDefinitions"]] == ["Name", "ResourceClassName", "AllocationMode", "State", "Age"]
    assert table.json["rows"][0]["cells"][:4] == ["c", "gpu", "WaitForFirstConsumer", "pending"]


async def test_the_status_of_a_claim(tmp_path: Path) -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"resourceClassName": "gpu"}}
    users = [{"resource": "pods", "name": n, "uid": n} for n in ("a", "b")]
    status = f"{CLAIMS}/c/status"
    allocated = {"driverName": "gpu.example.com", "allocation": {"shareable": False}}
    _, early, given, twice = await answers(
        tmp_path, 29, "v1alpha2",
        ("POST", CLAIMS, claim),
        ("PUT", status, {**claim, "status": {"reservedFor": users[:1]}}),
        ("PUT", status, {**claim, "status": allocated}),
        ("PUT", status, {**claim, "status": {**allocated, "reservedFor": users}}),
    )  # fmt: skip
    assert (early.status, given.status, twice.status) == (422, 200, 422), (early.body, given.body)
    assert "status.reservedFor: Forbidden: may not be specified when `allocated` is not set" in early.message
    assert "status.reservedFor: Forbidden: may not be reserved more than once" in twice.message


@pytest.mark.parametrize(
    ("minor", "version", "plural"),
    [(26, "v1alpha1", "podschedulings"), (28, "v1alpha2", "podschedulingcontexts"), (31, "v1alpha3", "podschedulingcontexts")],
)
async def test_where_a_pod_may_go(tmp_path: Path, minor: int, version: str, plural: str) -> None:
    path = f"/namespaces/default/{plural}"
    made, twice, gone = await answers(
        tmp_path, minor, version,
        ("POST", path, {"metadata": {"name": "p"}, "spec": {"selectedNode": "n", "potentialNodes": ["n", "m"]}}),
        ("POST", path, {"metadata": {"name": "q"}, "spec": {"potentialNodes": ["n", "n"]}}),
        ("GET", "/resourceclassparameters", None),
    )  # fmt: skip
    assert made.status == 201, made.body
    assert [cause["field"] for cause in twice.causes] == ["spec.potentialNodes[1]"]
    assert gone.status == 404


async def test_what_1_30_had_beside_them(tmp_path: Path) -> None:
    model = {"instances": [{"name": "one"}]}
    parameters = {"metadata": {"name": "p"}, "driverRequests": [{"driverName": "-", "requests": [{}]}]}
    made, empty, found, named = await answers(
        tmp_path, 30, "v1alpha2",
        ("POST", "/resourceslices", {"metadata": {"name": "s"}, "nodeName": "n", "driverName": "gpu.example.com", "namedResources": model}),
        ("POST", "/resourceslices", {"metadata": {"name": "t"}, "driverName": "gpu.example.com"}),
        ("GET", "/resourceslices?fieldSelector=nodeName%3Dn", None),
        ("POST", "/namespaces/default/resourceclaimparameters", parameters),
    )  # fmt: skip
    assert made.status == 201, made.body
    assert empty.status == 422 and "exactly one structured model field must be set" in empty.message
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["s"]
    assert [cause["field"] for cause in named.causes] == ["driverRequests[0].driverName", "driverRequests[0].requests[0]"]
