"""Deprecated kinds say so in every answer, in kube-apiserver's words."""

from __future__ import annotations

import pytest

from apiserver.resources.deprecation import warnings_of
from apiserver.resources.table import ResourceTable
from tests.apiserver.api import Api

ENDPOINTS = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'


async def test_endpoints_warn_whatever_is_done_with_them(api: Api) -> None:
    path = "/api/v1/namespaces/ns-a/endpoints"
    made = await api.post(path, {"metadata": {"name": "e"}})
    for answer in (made, await api.get(path), await api.get(f"{path}/e"), await api.get(f"{path}/absent"), await api.delete(f"{path}/e")):
        assert answer.headers["warning"] == [ENDPOINTS]
    assert "warning" not in (await api.get("/api/v1/namespaces/ns-a/services")).headers


@pytest.mark.parametrize(
    ("minor", "key", "text"),
    [
        (32, ("", "v1", "endpoints"), None),
        (25, ("", "v1", "componentstatuses"), "v1 ComponentStatus is deprecated in v1.19+"),
        (
            25,
            ("autoscaling", "v2beta2", "horizontalpodautoscalers"),
            "autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated in v1.23+, unavailable in v1.26+; "
            "use autoscaling/v2 HorizontalPodAutoscaler",
        ),
        (
            28,
            ("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas"),
            "flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema is deprecated in v1.26+, unavailable in v1.29+; "
            "use flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema",
        ),
    ],
)
def test_what_is_deprecated_depends_on_the_version(minor: int, key: tuple[str, str, str], text: str | None) -> None:
    table = ResourceTable(f"1.{minor}")
    assert warnings_of(table, minor).get(key) == text


def test_a_version_is_not_served_past_the_one_that_its_warning_names() -> None:
    for minor in range(25, 38):
        for text in warnings_of(ResourceTable(f"1.{minor}"), minor).values():
            if "unavailable in v1." in text:
                assert minor < int(text.partition("unavailable in v1.")[2].partition("+")[0]), text
