"""Requests to the store are told by what they do and to which kind of object, also where they fail."""

from __future__ import annotations

from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.metrics import Exposition, StoreRequestMetrics
from apiserver.objectstore.measured_kv import MeasuredKV
from storage import api
from storage.errors import UnavailableError

KEY = b"/registry/pods/ns/p"


class Store:
    """Takes ten milliseconds for each request; ``down`` refuses."""

    events_are_immediate = True

    def __init__(self) -> None:
        self.clock = 0.0
        self.down = False

    def __getattr__(self, name: str) -> Any:
        async def answer(*_: Any) -> str:
            self.clock += 0.01
            if self.down:
                raise UnavailableError
            return name

        return answer


def compare(revision: int) -> api.Compare:
    return api.Compare(key=KEY, target=api.CompareTarget.MOD, operand=revision)


NO_VERSION = api.Compare(key=KEY, target=api.CompareTarget.VERSION, operand=0)
REQUESTS = [
    ("get", "range", api.RangeRequest(key=KEY)),
    ("list", "range", api.RangeRequest(key=b"/registry/pods/", range_end=b"/registry/pods0")),
    ("create", "txn", api.TxnRequest(compare=(compare(0),), success=(api.PutRequest(key=KEY, value=b""),))),
    ("create", "txn", api.TxnRequest(compare=(NO_VERSION,), success=(api.PutRequest(key=KEY, value=b""),))),
    ("update", "txn", api.TxnRequest(compare=(compare(7),), success=(api.PutRequest(key=KEY, value=b""),))),
    ("delete", "txn", api.TxnRequest(compare=(compare(7),), success=(api.DeleteRangeRequest(key=KEY),))),
]


@pytest.mark.parametrize(("operation", "method", "request_"), REQUESTS)
async def test_requests_are_timed_by_operation_and_type(operation: str, method: str, request_: Any) -> None:
    store, counted = Store(), StoreRequestMetrics()
    measured = MeasuredKV(cast(api.KV, store), counted.observe, lambda: store.clock)
    assert await getattr(measured, method)(request_) == method
    store.down = True
    with pytest.raises(UnavailableError):
        await getattr(measured, method)(request_)
    out = Exposition()
    counted.expose(out)
    labels = {"operation": operation, "type": "pods"}
    found = {s.name: s.value for f in text_string_to_metric_families(out.text()) for s in f.samples if s.labels == labels}
    assert found["etcd_requests_total"] == found["etcd_request_duration_seconds_count"] == 2
    assert found["etcd_request_errors_total"] == 1
    assert found["etcd_request_duration_seconds_sum"] == pytest.approx(0.02)
