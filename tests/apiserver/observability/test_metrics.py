"""Metrics: what is counted under which labels, and that Prometheus can read it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from apiserver import metrics
from apiserver.filters.flow_control import FlowControl
from apiserver.metrics import Exposition, RequestMetrics
from apiserver.request.request_context import RequestContext, RequestInfo
from storage.member.metrics import MemberMetrics


def context(path: str = "/x", method: str = "GET", status: int = 200, **info: Any) -> RequestContext:
    verb = info.pop("verb", method.lower())
    facts = RequestInfo(is_resource_request="resource" in info, path=path, verb=verb, **info)
    made = RequestContext(info=facts, method=method, query={}, headers={}, audit_id="", received_at=0.0)
    made.response_status = status
    return made


def samples(requests: RequestMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    out = Exposition()
    requests.expose(out)
    found = {}
    for family in text_string_to_metric_families(out.text()):
        for sample in family.samples:
            labels = tuple(sorted((k, v) for k, v in sample.labels.items() if v and k != "component"))
            found[(sample.name, labels)] = sample.value
    return found


def test_requests_are_counted_by_kind_and_code() -> None:
    requests = RequestMetrics()
    pods: dict[str, Any] = {"version": "v1", "resource": "pods", "namespace": "ns"}
    requests.request_done(context(verb="list", **pods), 0.03, 5000)
    requests.request_done(context(verb="list", status=403, **pods), 0.7, 100)
    requests.request_done(context(verb="get", name="p", **pods), 0.001, 100)
    found = samples(requests)
    of_list = (("resource", "pods"), ("scope", "namespace"), ("verb", "LIST"), ("version", "v1"))
    assert found[("apiserver_request_total", (("code", "200"), *of_list))] == 1
    assert found[("apiserver_request_total", (("code", "403"), *of_list))] == 1
    assert found[("apiserver_request_duration_seconds_count", of_list)] == 2
    assert found[("apiserver_request_duration_seconds_sum", of_list)] == 0.73

    def bucket(le: str) -> float:
        return found[("apiserver_request_duration_seconds_bucket", (("le", le), *of_list))]

    assert [bucket(le) for le in ("0.025", "0.05", "0.6", "0.8", "60", "+Inf")] == [0, 1, 1, 2, 2, 2]
    assert found[("apiserver_response_sizes_bucket", (("le", "10000"), *of_list))] == 2


def test_paths_of_clients_do_not_make_series_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SERIES_MAX", 20)
    requests = RequestMetrics()
    for n in range(3):
        requests.request_done(context(f"/nothing/{n}", status=404), 0.001, 0)
    assert samples(requests)[("apiserver_request_total", (("code", "404"), ("verb", "GET")))] == 3
    for n in range(20 + 50):
        requests.request_done(context(verb="list", resource=f"r{n}"), 0.001, 0)
    total = samples(requests)
    assert total[("apiserver_request_total", (("code", "200"), ("verb", "other")))] == 51


def test_requests_of_one_path_are_counted_together_and_patches_by_their_kind() -> None:
    requests = RequestMetrics()
    shared = context(verb="list", resource="pods")
    for _ in range(3):
        requests.request_done(shared, 0.001, 0)
    patch = context(verb="patch", resource="pods", name="p")
    requests.request_done(patch, 0.001, 0)
    patch.headers = {b"content-type": b"application/apply-patch+yaml"}
    requests.request_done(patch, 0.001, 0)
    found = {dict(labels)["verb"]: value for (name, labels), value in samples(requests).items() if name == "apiserver_request_total"}
    assert found == {"LIST": 3, "PATCH": 1, "APPLY": 1}


def test_labels_are_escaped() -> None:
    requests = RequestMetrics()
    requests.request_done(context(verb="list", resource='a"b\\c\nd'), 0.001, 0)
    assert any(("resource", 'a"b\\c\nd') in labels for _, labels in samples(requests))


def test_requests_in_flight() -> None:
    flow = FlowControl(10, 10)
    flow.acquire(context(verb="get", resource="pods"))
    assert samples(RequestMetrics(flow))[("apiserver_current_inflight_requests", (("request_kind", "readOnly"),))] == 1


async def test_the_endpoint_tells_of_store_and_process() -> None:
    store = MemberMetrics(db_total_size_bytes=4096, current_revision=77, leader_changes_seen=1, has_leader=True)
    for seconds in (0.0005, 0.1, 0.1):
        store.wal_fsync_seconds.observe(seconds)
    app = FastAPI()
    app.include_router(metrics.router([RequestMetrics().expose, lambda out: metrics.expose_families(store.families(), out)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    found = {s.name: s.value for f in text_string_to_metric_families(answer.text) for s in f.samples}
    assert found["etcd_debugging_mvcc_current_revision"] == 77
    assert found["etcd_mvcc_db_total_size_in_bytes"] == found["etcd_debugging_mvcc_db_total_size_in_bytes"] == 4096
    assert found["etcd_disk_wal_fsync_duration_seconds_count"] == 3
    assert found["etcd_server_leader_changes_seen_total"] == 1 and found["etcd_server_has_leader"] == 1
    assert found["process_resident_memory_bytes"] > 0
