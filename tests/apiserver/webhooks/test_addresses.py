"""Where a Service that a webhook names is to be found."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apiserver.outbound.service_endpoints import Place, UnresolvedError
from apiserver.webhooks.addresses import ServiceAddresses, parse_given
from tests.fakes.object_getter import FakeObjects


def addresses(world: FakeObjects, *given: str) -> ServiceAddresses:
    return ServiceAddresses(world, parse_given(given), random.Random(1))


def service(world: FakeObjects, **spec: Any) -> None:
    world.add("", "services", "hook", "ns", spec={"ports": [{"name": "https", "port": 443, "targetPort": 9443}], **spec})


def endpoint_slice(world: FakeObjects, name: str, *hosts: str, ready: bool | None = True, port_name: str = "https") -> None:
    world.add(
        "discovery.k8s.io", "endpointslices", name, "ns",
        metadata={"labels": {"kubernetes.io/service-name": "hook"}},
        ports=[{"name": port_name, "port": 9443}],
        endpoints=[{"addresses": list(hosts), "conditions": {} if ready is None else {"ready": ready}}],
    )  # fmt: skip


def why(found: ServiceAddresses, port: int = 443) -> str:
    with pytest.raises(UnresolvedError) as caught:
        found.resolve("ns", "hook", port)
    return str(caught.value)


def test_an_address_by_flag_goes_before_all_else() -> None:
    assert addresses(FakeObjects(), "ns/hook=127.0.0.1:9443").resolve("ns", "hook", 443) == Place(host="127.0.0.1", port=9443)
    by_port = addresses(FakeObjects(), "ns/hook=a:1", "ns/hook:444=https://[::1]:2/")
    assert by_port.resolve("ns", "hook", 444) == Place(host="::1", port=2)
    assert by_port.resolve("ns", "hook", 443) == Place(host="a", port=1)


@pytest.mark.parametrize("text", ["hook=127.0.0.1:1", "ns/hook", "ns/hook=127.0.0.1", "ns/hook=a:0", "ns/hook=a:b", "/hook=a:1"])
def test_a_flag_that_says_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAMESPACE/NAME"):
        parse_given((text,))


def test_an_external_name_is_called_by_that_name() -> None:
    world = FakeObjects()
    service(world, type="ExternalName", externalName="localhost", ports=[])
    assert addresses(world).resolve("ns", "hook", 9443) == Place(host="localhost", port=9443)


def test_ready_endpoints_are_called_at_their_own_port() -> None:
    world = FakeObjects()
    service(world)
    endpoint_slice(world, "a", "10.0.0.1", ready=None)
    endpoint_slice(world, "b", "10.0.0.2", ready=False)
    endpoint_slice(world, "c", "10.0.0.3", port_name="other")
    assert addresses(world).resolve("ns", "hook", 443) == Place(host="10.0.0.1", port=9443)


def test_endpoints_that_somebody_wrote_count_too() -> None:
    world = FakeObjects()
    service(world)
    subset = {"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "https", "port": 8443}]}
    world.add("", "endpoints", "hook", "ns", subsets=[subset])
    assert addresses(world).resolve("ns", "hook", 443) == Place(host="10.0.0.9", port=8443)


def test_what_is_missing_is_told_in_kubernetes_words() -> None:
    world = FakeObjects()
    assert why(addresses(world)) == 'service "hook" not found'
    service(world)
    assert why(addresses(world), 444) == 'no service port 444 found for service "hook"'
    assert why(addresses(world)) == 'no endpoints available for service "hook"'
