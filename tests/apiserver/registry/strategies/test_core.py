"""The smaller kinds of the core group: what is fixed, what is decoded, what has a life of its own."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from tests.apiserver.registry.strategies.kinds import changed, context, create_errors, created, of, rules, update_errors

CONFIG_MAPS = rules("ConfigMap")
SECRETS = rules("Secret")
NAMESPACES = rules("Namespace")
NODES = rules("Node")
EVENTS = rules("Event")
NEW_EVENTS = rules("Event", "events.k8s.io")
LEASES = rules("Lease", "coordination.k8s.io")
QUOTAS = rules("ResourceQuota")
CLAIMS = rules("PersistentVolumeClaim")
VOLUMES = rules("PersistentVolume")
LIMITS = rules("LimitRange")

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(("strategy", "field"), [(CONFIG_MAPS, "data"), (CONFIG_MAPS, "binaryData"), (SECRETS, "data")])
def test_immutable_data_stays(strategy: Any, field: str) -> None:
    fields: dict[str, Any] = {field: {"a": "eA=="}}
    old = created(strategy, of(immutable=True, **fields))
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"x": "y"}
    assert update_errors(strategy, new, old) == []
    new[field] = {"a": "eQ=="}
    new["immutable"] = False
    words = "Forbidden: field is immutable when `immutable` is set"
    assert update_errors(strategy, new, old) == [f"immutable: {words}", f"{field}: {words}"]


def test_a_config_map_has_a_largest_size_and_no_key_twice() -> None:
    assert create_errors(CONFIG_MAPS, of(data={"a": "x" * 2**20})) == []
    (error,) = create_errors(CONFIG_MAPS, of(data={"a": "x" * 2**20, "b": "y"}))
    assert "Too long" in error
    half = base64.b64encode(b"x" * 2**19).decode()
    assert create_errors(CONFIG_MAPS, of(data={"a": "x" * 2**19}, binaryData={"b": half})) == []
    twice = create_errors(CONFIG_MAPS, of(data={"a": "x"}, binaryData={"a": "eA=="}))
    assert twice == ['data[a]: Invalid value: "a": duplicate of key present in binaryData']


def test_string_data_of_a_secret_is_encoded_over_its_data() -> None:
    made = created(SECRETS, of(data={"a": "eA==", "b": "eQ=="}, stringData={"a": "ü"}))
    assert made["data"] == {"a": base64.b64encode("ü".encode()).decode(), "b": "eQ=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"
    assert SECRETS.selectable_fields(made) == {"type": "Opaque"}


def test_a_docker_secret_holds_json() -> None:
    kind = "kubernetes.io/dockerconfigjson"
    assert create_errors(SECRETS, of(type=kind, stringData={".dockerconfigjson": "{}"})) == []
    (error,) = create_errors(SECRETS, of(type=kind, stringData={".dockerconfigjson": "no"}))
    assert error.startswith('data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": ')


def test_a_namespace_is_held_by_its_finalizers() -> None:
    made = created(NAMESPACES, {"apiVersion": "v1", "metadata": {"name": "a"}, "status": {"phase": "Terminating"}})
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    new = copy.deepcopy(made)
    new["spec"]["finalizers"] = []
    assert update_errors(NAMESPACES, new, made) == []
    assert new["spec"]["finalizers"] == ["kubernetes"], "only finalize changes them"
    finalize = NAMESPACES.subresource("finalize")
    assert finalize is not None
    new = copy.deepcopy(made)
    new["spec"]["finalizers"] = ["example.com/x"]
    assert update_errors(finalize, new, made) == []
    assert new["spec"]["finalizers"] == ["example.com/x"]
    new["spec"]["finalizers"] = ["mine"]
    assert update_errors(finalize, new, made) == [
        'spec.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'
    ]


def test_a_namespaces_phase_follows_its_deletion() -> None:
    old = created(NAMESPACES, {"apiVersion": "v1", "metadata": {"name": "a"}})
    new = copy.deepcopy(old)
    new["status"] = {"phase": "Terminating"}
    assert [e.text() for e in NAMESPACES.validate_status_update(context(), new, old)] == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    new["metadata"]["deletionTimestamp"] = "2024-01-02T03:04:05Z"
    assert NAMESPACES.validate_status_update(context(), new, old) == []


def test_a_node_registers_with_its_status_and_later_reports_it_apart() -> None:
    made = created(NODES, {"apiVersion": "v1", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}}})
    assert made["status"]["allocatable"] == {"cpu": "2"}
    assert NODES.selectable_fields(made) == {"spec.unschedulable": "false"}
    new = changed(made, unschedulable=True, taints=[{"key": "a", "effect": "NoSchedule"}], podCIDR="10.1.0.0/24", providerID="x://1")
    new["status"] = {"capacity": {"cpu": "4"}}
    assert update_errors(NODES, new, made) == []
    assert new["status"] == made["status"]
    assert new["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    assert update_errors(NODES, changed(new, podCIDRs=["10.2.0.0/24"], podCIDR="10.2.0.0/24", providerID="x://2"), new) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        "[]: Forbidden: node updates may only change labels, taints, or capacity",
    ]
    doubled = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]
    errors = update_errors(NODES, changed(new, taints=doubled), new)
    assert any(error.endswith("taints must be unique by key and effect pair") for error in errors)


@pytest.mark.parametrize(
    ("namespace", "about", "refused"),
    [("ns-a", "ns-b", True), ("ns-a", "", True), ("default", "", False), ("ns-a", "ns-a", False)],
)
def test_an_event_stands_in_the_namespace_of_what_it_is_about(namespace: str, about: str, refused: bool) -> None:
    obj = {"apiVersion": "v1", "metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"kind": "Pod", "namespace": about}}
    errors = create_errors(EVENTS, obj)
    wanted = f'involvedObject.namespace: Invalid value: "{about}": does not match event.namespace'
    assert errors == ([wanted] if refused else [])


def new_event(**fields: Any) -> Object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2024-01-02T03:04:05.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Do",
        "reason": "Done",
        "type": "Normal",
        "regarding": {"kind": "Node", "name": "n"},
        **fields,
    }


def test_the_newer_events_are_strict() -> None:
    assert create_errors(NEW_EVENTS, new_event()) == []
    missing = new_event()
    del missing["eventTime"]
    assert create_errors(NEW_EVENTS, missing) == ["eventTime: Required value"]
    assert create_errors(NEW_EVENTS, new_event(deprecatedCount=3)) == ['count: Invalid value: "": needs to be unset']
    assert create_errors(NEW_EVENTS, new_event(series={"count": 1})) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
    ]
    old = new_event(note="a")
    assert update_errors(NEW_EVENTS, new_event(note="b"), old) == ['message: Invalid value: "b": field is immutable']
    series = {"count": 2, "lastObservedTime": "2024-01-02T03:04:05.000000Z"}
    assert update_errors(NEW_EVENTS, new_event(note="a", series=series), old) == []


def test_events_are_found_by_what_they_are_about_in_both_versions() -> None:
    old = {"apiVersion": "v1", "involvedObject": {"kind": "Node", "name": "n"}, "source": {"component": "kubelet"}, "reason": "R"}
    for fields in (EVENTS.selectable_fields(old), NEW_EVENTS.selectable_fields(new_event(deprecatedSource={"component": "kubelet"}))):
        assert fields["involvedObject.kind"] == fields["regarding.kind"] == "Node"
        assert fields["source"] == "kubelet"
    assert NEW_EVENTS.selectable_fields(new_event())["source"] == "example.com/c"
    assert EVENTS.default_garbage_collection == "unsupported"


def test_leases() -> None:
    assert created(LEASES, of(api_version="coordination.k8s.io/v1"))["spec"] == {}
    spec = {"holderIdentity": "", "leaseDurationSeconds": 0, "leaseTransitions": -1}  # who gives a lease up empties its holder
    assert create_errors(LEASES, of(spec, api_version="coordination.k8s.io/v1")) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]
    assert LEASES.allow_create_on_update


def test_limits_of_containers_default_to_one_another() -> None:
    limit = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "default": {"memory": "1Gi"}}
    made = created(LIMITS, of({"limits": [limit]}))["spec"]["limits"][0]
    assert made["default"] == {"memory": "1Gi", "cpu": "2"}
    assert made["defaultRequest"] == {"memory": "1Gi", "cpu": "2"}


def test_limits_have_an_order() -> None:
    limits = [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}, "default": {"cpu": "1"}}, {"type": "Pod"}]
    assert create_errors(LIMITS, of({"limits": limits})) == [
        "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        'spec.limits[1].type: Duplicate value: "Pod"',
    ]
    ratio = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "3"}}
    errors = create_errors(LIMITS, of({"limits": [ratio]}))
    assert errors == ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000']


def test_quota_selectors() -> None:
    selector = {
        "matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In"},
            {"scopeName": "BestEffort", "operator": "In", "values": ["x"]},
        ]
    }
    errors = create_errors(QUOTAS, of({"hard": {"pods": "1"}, "scopeSelector": selector}))
    path = "spec.scopeSelector.matchExpressions"
    assert errors[0] == f"{path}.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
    assert errors[1].startswith(f'{path}.operator: Invalid value: "In": must be ')
    assert create_errors(QUOTAS, of({"hard": {"count/widgets.example.com": "3", "requests.nvidia.com/gpu": "1"}})) == []


def test_a_claim_is_fixed_until_it_is_bound_and_then_may_grow() -> None:
    old = created(CLAIMS, of(CLAIM))
    bigger = {"requests": {"storage": "2Gi"}}
    assert update_errors(CLAIMS, changed(old, resources=bigger), old)[0].startswith(
        "spec: Forbidden: spec is immutable after creation except"
    )
    assert update_errors(CLAIMS, changed(old, volumeName="v"), old) == []
    bound = changed(old, volumeName="v")
    bound["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert update_errors(CLAIMS, changed(bound, resources=bigger), bound) == []
    same = changed(bound, resources={"requests": {"storage": "1024Mi"}})
    assert update_errors(CLAIMS, same, bound) == []
    smaller = changed(bound, resources={"requests": {"storage": "512Mi"}})
    assert update_errors(CLAIMS, smaller, bound) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    expanding = changed(bound, resources={"requests": {"storage": "5Gi"}})
    recovering = changed(expanding, resources={"requests": {"storage": "2Gi"}})
    assert update_errors(CLAIMS, recovering, expanding) == [], "a failed expansion may be taken back"


def test_claims_data_sources_stand_for_each_other() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "other"}
    assert created(CLAIMS, of({**CLAIM, "dataSource": source}))["spec"]["dataSourceRef"] == source
    assert created(CLAIMS, of({**CLAIM, "dataSourceRef": source}))["spec"]["dataSource"] == source
    populator = {"apiGroup": "example.com", "kind": "Populator", "name": "p"}
    assert "dataSource" not in created(CLAIMS, of({**CLAIM, "dataSourceRef": populator}))["spec"]


def test_a_volume_keeps_its_source() -> None:
    spec: Object = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    assert create_errors(VOLUMES, of({**spec, "local": {"path": "/x"}})) == [
        "spec.nodeAffinity: Required value: Local volume requires node affinity"
    ]
    spec["csi"] = {"driver": "d.example.com", "volumeHandle": "h"}
    old = created(VOLUMES, of(spec))
    secret = {"name": "s", "namespace": "ns"}
    assert update_errors(VOLUMES, changed(old, csi={**spec["csi"], "controllerExpandSecretRef": secret}), old) == []
    (error,) = update_errors(VOLUMES, changed(old, csi={**spec["csi"], "volumeHandle": "other"}), old)
    assert error.startswith("spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n")
    moved = copy.deepcopy(old)
    moved["status"] = {"phase": "Available"}
    VOLUMES.prepare_for_status_update(context(), moved, {**old, "status": {"phase": "Pending"}})
    assert moved["status"]["lastPhaseTransitionTime"] == "2024-01-02T03:04:05Z"
