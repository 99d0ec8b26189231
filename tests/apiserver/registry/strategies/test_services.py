"""Services: addresses and ports are given, kept, changed with the type and given back."""

from __future__ import annotations

import copy
import ipaddress
import random

import pytest

from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.registry.service_allocators import MemoryServiceAllocators
from tests.apiserver.registry.strategies.kinds import changed, context, create_errors, created, of, rules, update_errors

SERVICES = rules("Service")
PORTS = [{"port": 80}]


def single() -> MemoryServiceAllocators:
    return MemoryServiceAllocators("10.96.0.0/24", "30000-30099", random.Random(1))


def dual() -> MemoryServiceAllocators:
    return MemoryServiceAllocators("10.96.0.0/24,fd00::/112", "30000-30099", random.Random(1))


def service(allocators: MemoryServiceAllocators, **spec: object) -> Object:
    return created(SERVICES, of({"ports": PORTS, **spec}), allocators)


def test_a_cluster_ip_service_gets_an_address() -> None:
    spec = service(single())["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in ipaddress.ip_network("10.96.0.0/24")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ipFamilies"] == ["IPv4"]
    assert spec["ipFamilyPolicy"] == "SingleStack"
    assert spec["internalTrafficPolicy"] == "Cluster"
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_addresses_differ_and_a_wanted_one_is_given_once() -> None:
    allocators = single()
    seen = {service(allocators)["spec"]["clusterIP"] for _ in range(50)}
    assert len(seen) == 50
    free = next(str(ip) for ip in ipaddress.ip_network("10.96.0.0/24").hosts() if str(ip) not in seen)
    assert service(allocators, clusterIP=free)["spec"]["clusterIPs"] == [free]
    with pytest.raises(StatusError) as refused:
        service(allocators, clusterIP=free)
    assert refused.value.code == 422
    why = f"failed to allocate IP {free}: provided IP is already allocated"
    words = f'Service "a" is invalid: spec.clusterIPs: Invalid value: ["{free}"]: {why}'
    assert refused.value.message == words
    with pytest.raises(StatusError, match=r"is not in the valid range\. The range of valid IPs is 10\.96\.0\.0/24"):
        service(allocators, clusterIP="10.1.1.1")


def test_a_full_range_is_told() -> None:
    allocators = MemoryServiceAllocators("10.96.0.0/29", "30000-30001", random.Random(1))
    for _ in range(6):
        service(allocators)
    with pytest.raises(StatusError, match="failed to allocate a serviceIP: range is full"):
        service(allocators)


def test_what_was_taken_is_given_back_when_the_write_fails() -> None:
    allocators = MemoryServiceAllocators("10.96.0.0/29", "30000-30001", random.Random(1))
    for _ in range(20):
        write = context(allocators)
        obj = of({"ports": PORTS, "type": "NodePort"})
        SERVICES.default(obj)
        SERVICES.prepare_for_create(write, obj)
        for undo in write.undo:
            undo()
    for _ in range(20):
        obj = of({"ports": PORTS, "type": "NodePort"})
        SERVICES.default(obj)
        SERVICES.prepare_for_create(context(allocators, dry_run=True), obj)
        assert obj["spec"]["clusterIP"], "a dry run is answered with an address too"
    # one of two ports cannot be had: the address and the other port are free again
    taken = service(allocators, type="NodePort", ports=[{"port": 1, "nodePort": 30000}])
    for _ in range(20):
        with pytest.raises(StatusError, match="provided port is already allocated"):
            service(allocators, type="NodePort", ports=[{"port": 2, "name": "x"}, {"port": 1, "name": "y", "nodePort": 30000}])
    allocators.release_service(taken)
    service(allocators, type="NodePort", ports=[{"port": 2, "name": "x"}, {"port": 1, "name": "y", "nodePort": 30000}])


def test_a_node_port_service_has_one_port_for_both_protocols_of_a_number() -> None:
    ports = [{"name": "u", "port": 53, "protocol": "UDP"}, {"name": "t", "port": 53}, {"name": "w", "port": 80}]
    made = service(single(), type="NodePort", ports=ports)["spec"]["ports"]
    assert made[0]["nodePort"] == made[1]["nodePort"] != made[2]["nodePort"]
    assert all(30000 <= port["nodePort"] <= 30099 for port in made)


def test_a_node_port_outside_the_range_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        service(single(), type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    words = "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30099"
    assert refused.value.message.endswith(words)


def test_a_load_balancer_may_go_without_node_ports() -> None:
    spec = service(single(), type="LoadBalancer", allocateLoadBalancerNodePorts=False)["spec"]
    assert "nodePort" not in spec["ports"][0]
    spec = service(single(), type="LoadBalancer", externalTrafficPolicy="Local")["spec"]
    assert spec["ports"][0]["nodePort"]
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]


def test_headless_and_external_name_services_have_no_address() -> None:
    headless = service(single(), clusterIP="None", selector={"a": "b"})["spec"]
    assert headless["clusterIPs"] == ["None"]
    assert headless["ipFamilies"] == ["IPv4"]
    without_selector = service(single(), clusterIP="None")["spec"]
    assert without_selector["ipFamilies"] == ["IPv4", "IPv6"]
    assert without_selector["ipFamilyPolicy"] == "RequireDualStack"
    external = service(single(), type="ExternalName", externalName="db.example.com.", ports=[])["spec"]
    assert "clusterIP" not in external
    assert "ipFamilies" not in external


def test_families() -> None:
    spec = service(dual(), ipFamilyPolicy="RequireDualStack")["spec"]
    assert spec["ipFamilies"] == ["IPv4", "IPv6"]
    assert [":" in ip for ip in spec["clusterIPs"]] == [False, True]
    spec = service(dual(), ipFamilyPolicy="PreferDualStack", ipFamilies=["IPv6"])["spec"]
    assert spec["ipFamilies"] == ["IPv6", "IPv4"]
    spec = service(single(), ipFamilyPolicy="PreferDualStack")["spec"]
    assert spec["ipFamilies"] == ["IPv4"]
    with pytest.raises(StatusError, match="this cluster is not configured for dual-stack services"):
        service(single(), ipFamilyPolicy="RequireDualStack")
    with pytest.raises(StatusError, match="not configured on this cluster"):
        service(single(), ipFamilies=["IPv6"])


def test_an_update_that_leaves_out_what_was_given_keeps_it() -> None:
    allocators = single()
    old = service(allocators, type="NodePort", ports=[{"name": "w", "port": 80}])
    new = of({"type": "NodePort", "ports": [{"name": "w", "port": 8080}, {"name": "x", "port": 81}]})
    assert update_errors(SERVICES, new, old, allocators) == []
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ipFamilies"] == ["IPv4"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert new["spec"]["ports"][1]["nodePort"] not in (None, old["spec"]["ports"][0]["nodePort"])


def test_the_address_of_a_service_does_not_change() -> None:
    allocators = single()
    old = service(allocators, clusterIP="10.96.0.5")
    new = changed(old, clusterIP="10.96.0.6")
    errors = update_errors(SERVICES, new, old, allocators)
    assert errors == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.6"]: may not change once set']


def test_a_change_of_type_takes_and_gives() -> None:
    allocators = single()
    old = service(allocators, type="NodePort")
    ip, node_port = old["spec"]["clusterIP"], old["spec"]["ports"][0]["nodePort"]
    plain = changed(old, type="ClusterIP")
    assert update_errors(SERVICES, plain, old, allocators) == []
    assert "nodePort" not in plain["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in plain["spec"]
    allocators.release_unused(old, plain)
    assert allocators.allocate_port(node_port) == node_port
    external = changed(plain, type="ExternalName", externalName="db.example.com")
    assert update_errors(SERVICES, external, plain, allocators) == []
    assert "clusterIP" not in external["spec"]
    allocators.release_unused(plain, external)
    assert allocators.allocate_ip("IPv4", ip) == ip
    back = changed(external, type="ClusterIP")
    assert update_errors(SERVICES, back, external, allocators) == []
    assert back["spec"]["clusterIP"]
    assert back["spec"]["externalName"] == "db.example.com", "as on a real server: it is not of a kind that was given"


def test_restoring_forgets_all_but_what_services_have() -> None:
    allocators = single()
    allocators.allocate_ip("IPv4", "10.96.0.9")
    kept = service(allocators, clusterIP="10.96.0.8", type="NodePort", ports=[{"port": 1, "nodePort": 30001}])
    allocators.restore([kept])
    assert allocators.allocate_ip("IPv4", "10.96.0.9") == "10.96.0.9"
    with pytest.raises(ValueError, match="already allocated"):
        allocators.allocate_ip("IPv4", "10.96.0.8")
    with pytest.raises(ValueError, match="already allocated"):
        allocators.allocate_port(30001)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort"),
        (
            {"externalTrafficPolicy": "Local"},
            'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible',
        ),
        ({"internalTrafficPolicy": "Far"}, 'spec.internalTrafficPolicy: Unsupported value: "Far": supported values: "Cluster", "Local"'),
        ({"ports": [{"port": 80, "nodePort": 30000}]}, "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"),
        ({"externalIPs": ["127.0.0.1"]}, 'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range'),
        ({"loadBalancerSourceRanges": ["10.0.0.0/8"]}, "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is"),
        ({"loadBalancerClass": "example.com/x"}, "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"),
        ({"clusterIP": "None", "clusterIPs": ["None", "10.1.1.1"]}, "spec.clusterIPs: Invalid value: "),
        ({"trafficDistribution": "Nearby"}, "spec.trafficDistribution: Unsupported value: "),
    ],
)
def test_refusals(spec: Object, wanted: str) -> None:
    errors = create_errors(SERVICES, of({"ports": PORTS, **spec}))
    assert any(error.startswith(wanted) for error in errors), errors


def test_the_status_endpoint_checks_addresses() -> None:
    old = service(single())
    new = copy.deepcopy(old)
    new["status"] = {"loadBalancer": {"ingress": [{"ip": "x"}, {"ip": "1.2.3.4", "ipMode": "Odd"}, {"hostname": "1.2.3.4"}]}}
    errors = [error.text() for error in SERVICES.validate_status_update(context(), new, old)]
    assert errors[0].startswith('status.loadBalancer.ingress[0].ip: Invalid value: "x"')
    assert errors[1] == 'status.loadBalancer.ingress[1].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"'
    assert errors[2].endswith("must be a DNS name, not an IP address")


def test_endpoint_slices() -> None:
    slices = rules("EndpointSlice", "discovery.k8s.io")
    obj = of(api_version="discovery.k8s.io/v1", addressType="IPv4", endpoints=[{"addresses": ["10.1.1.1"]}], ports=[{"port": 80}])
    made = created(slices, obj)
    assert made["ports"] == [{"port": 80, "name": "", "protocol": "TCP"}]
    bad = of(api_version="discovery.k8s.io/v1", addressType="IPv6", endpoints=[{"addresses": ["10.1.1.1"]}, {"addresses": []}])
    assert create_errors(slices, bad) == [
        'endpoints[0].addresses[0]: Invalid value: "10.1.1.1": must be a valid IPv6 address',
        "endpoints[1].addresses: Required value: must contain at least 1 address",
    ]
    new = copy.deepcopy(made)
    new["addressType"] = "FQDN"
    assert 'addressType: Invalid value: "FQDN": field is immutable' in update_errors(slices, new, made)
    relabelled = copy.deepcopy(made)
    relabelled["metadata"]["labels"] = {"service.kubernetes.io/headless": ""}
    assert not slices.spec_changed(relabelled, made)
    relabelled["metadata"]["labels"] = {"x": "y"}
    assert slices.spec_changed(relabelled, made)


def refusals(new: Object, old: Object, allocators: MemoryServiceAllocators) -> list[str]:
    try:
        return update_errors(SERVICES, new, old, allocators)
    except StatusError as error:
        return [f"{cause['field']}: {cause['message']}" for cause in error.status["details"]["causes"]]


def test_a_service_gets_and_gives_up_its_second_family() -> None:
    allocators = dual()
    old = service(allocators)
    both = changed(old, ipFamilyPolicy="PreferDualStack")
    assert update_errors(SERVICES, both, old, allocators) == []
    assert both["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert both["spec"]["clusterIPs"][0] == old["spec"]["clusterIP"]
    assert ":" in both["spec"]["clusterIPs"][1]
    one = changed(both, ipFamilyPolicy="SingleStack")
    assert update_errors(SERVICES, one, both, allocators) == []
    assert one["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    assert one["spec"]["ipFamilies"] == ["IPv4"]
    fewer = changed(both, clusterIPs=both["spec"]["clusterIPs"][:1])
    assert refusals(fewer, both, allocators) == [
        "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the secondary cluster IP"
    ]
    turned = changed(
        both, ipFamilies=["IPv6", "IPv4"], clusterIPs=both["spec"]["clusterIPs"][::-1], clusterIP=both["spec"]["clusterIPs"][1]
    )
    assert [words.split(":")[0] for words in refusals(turned, both, allocators)] == [
        "spec.clusterIPs[0]",
        "spec.clusterIPs[1]",
        "spec.ipFamilies[0]",
        "spec.ipFamilies[0]",
    ]


def test_one_family_with_two_addresses_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        service(dual(), ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"])
    assert refused.value.message.endswith("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
    with pytest.raises(StatusError, match="IPv6 is not configured on this cluster"):
        service(single(), clusterIP="fd00::5")


def test_an_update_to_an_unknown_type_speaks_of_the_type_alone() -> None:
    allocators = single()
    old = service(allocators)
    assert refusals(changed(old, type="Other"), old, allocators) == [
        'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
    ]


def test_a_node_port_is_given_to_one_number_of_a_new_service() -> None:
    ports = [{"name": "t", "port": 80, "nodePort": 30001}, {"name": "u", "port": 81, "protocol": "UDP", "nodePort": 30001}]
    with pytest.raises(StatusError, match=r"spec\.ports\[1\]\.nodePort: Invalid value: 30001: provided port is already allocated"):
        service(single(), type="NodePort", ports=ports)
    ports[1]["port"] = 80
    assert [port["nodePort"] for port in service(single(), type="NodePort", ports=ports)["spec"]["ports"]] == [30001, 30001]


def test_what_is_of_a_balancer_alone_goes_with_it() -> None:
    allocators = single()
    old = service(allocators, type="LoadBalancer", externalTrafficPolicy="Local")
    old["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    moved = changed(old, healthCheckNodePort=30099)
    assert refusals(moved, old, allocators) == ["spec.healthCheckNodePort: Forbidden: field is immutable"]
    plain = changed(old, type="ClusterIP")
    assert update_errors(SERVICES, plain, old, allocators) == []
    assert plain["status"] == {"loadBalancer": {}}
    assert old["status"]["loadBalancer"]["ingress"]
    assert not {"healthCheckNodePort", "allocateLoadBalancerNodePorts", "externalTrafficPolicy"} & set(plain["spec"])


def test_both_names_of_the_topology_annotation_say_the_same() -> None:
    obj = of({"ports": PORTS})
    obj["metadata"]["annotations"] = {
        "service.kubernetes.io/topology-mode": "Auto",
        "service.kubernetes.io/topology-aware-hints": "x",
    }
    assert [words.split(": ")[-1] for words in create_errors(SERVICES, obj)] == [
        "must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified"
    ]
