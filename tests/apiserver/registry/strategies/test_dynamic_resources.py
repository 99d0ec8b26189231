"""Devices, claims and slices: what is filled in, refused, and may change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from tests.apiserver.registry.strategies.golden_steps import NOW
from tests.apiserver.registry.strategies.kinds import context, create_errors, created, of, rules, update_errors

GROUP = "resource.k8s.io"
SEMVER = "must be a string compatible with semver.org spec 2.0.0"
WHICH = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def claim(*requests: Object, **devices: Any) -> Object:
    return of({"devices": {"requests": list(requests), **devices}}, api_version=f"{GROUP}/v1")


def wanting(name: str = "gpu", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu.example.com", **exactly}}


def slice_of(*devices: Object, **spec: Any) -> Object:
    pool = {"name": "p", "resourceSliceCount": 1}
    base = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": list(devices)}
    return of({**base, **spec}, api_version=f"{GROUP}/v1")


def test_a_request_wants_one_device_unless_it_says_more() -> None:
    stored = created(rules("ResourceClaim", GROUP), claim(wanting(), wanting("all", allocationMode="All", tolerations=[{"key": "a"}])))
    first, second = (request["exactly"] for request in stored["spec"]["devices"]["requests"])
    assert (first["allocationMode"], first["count"]) == ("ExactCount", 1)
    assert "count" not in second
    assert second["tolerations"] == [{"key": "a", "operator": "Equal"}]
    assert stored["status"] == {}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"name": "a"}, "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"),
        (
            {"name": "a", "exactly": {"deviceClassName": "c"}, "firstAvailable": [{"name": "b", "deviceClassName": "c"}]},
            "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields "
            "are set",
        ),
        ({"name": "a", "exactly": {}}, "spec.devices.requests[0].exactly.deviceClassName: Required value"),
        (wanting(count=-1), "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"),
        (
            wanting(allocationMode="All", count=2),
            "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
        ),
        (
            wanting(allocationMode="Some"),
            'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
        ),
        (wanting(selectors=[{}]), "spec.devices.requests[0].exactly.selectors[0].cel: Required value"),
        (
            wanting(tolerations=[{"operator": "Exists", "value": "v"}]),
            'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`',
        ),
    ],
)
def test_requests(request_: Object, error: str) -> None:
    assert create_errors(rules("ResourceClaim", GROUP), claim(request_)) == [error]


def test_constraints_and_configurations_name_requests() -> None:
    devices = {
        "constraints": [{"requests": ["other", "gpu"], "matchAttribute": "model"}, {}],
        "config": [{"requests": ["gpu", "gpu"], "opaque": {"driver": "d.example.com", "parameters": [1]}}],
    }
    assert create_errors(rules("ResourceClaim", GROUP), claim(wanting(), **devices)) == [
        f'spec.devices.constraints[0].requests[0]: Invalid value: "other": {WHICH}',
        'spec.devices.constraints[0].matchAttribute: Invalid value: "model": a fully qualified name must be a domain and a name separated '
        "by a slash",
        'spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
        "fields are set",
        'spec.devices.config[0].requests[1]: Duplicate value: "gpu"',
        'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
    ]
    alternatives = {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "c"}]}
    assert not create_errors(
        rules("ResourceClaim", GROUP), claim(alternatives, constraints=[{"requests": ["any/big"], "matchAttribute": "d.example.com/m"}])
    )


def test_too_many_requests_are_not_looked_at() -> None:
    many = [{"name": "!"}] * 33
    assert create_errors(rules("ResourceClaim", GROUP), claim(*many)) == ["spec.devices.requests: Too many: 33: must have at most 32 items"]


def test_the_specs_of_claims_and_templates_never_change() -> None:
    strategy = rules("ResourceClaim", GROUP)
    stored = created(strategy, claim(wanting()))
    new = copy.deepcopy(stored)
    assert not update_errors(strategy, new, stored)
    new["spec"]["devices"]["requests"][0]["name"] = "x"
    assert update_errors(strategy, new, stored)[0].endswith(": field is immutable")
    template = of({"spec": claim(wanting())["spec"]}, api_version=f"{GROUP}/v1")
    strategy = rules("ResourceClaimTemplate", GROUP)
    stored = created(strategy, template)
    assert stored["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    bad = copy.deepcopy(template)
    bad["spec"]["metadata"] = {"labels": {"a": "!"}}
    assert create_errors(strategy, bad)[0].startswith('spec.metadata.labels: Invalid value: "!"')


def test_an_allocation_is_made_once_and_reserved_for_consumers() -> None:
    strategy = rules("ResourceClaim", GROUP)
    stored = created(strategy, claim(wanting()))
    result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
    allocated = {**stored, "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": "a"}]}}
    assert [e.text() for e in strategy.validate_status_update(context(), allocated, stored)] == [
        "status.reservedFor[0].uid: Required value"
    ]
    allocated["status"]["reservedFor"][0]["uid"] = "u"
    assert not strategy.validate_status_update(context(), allocated, stored)
    moved = copy.deepcopy(allocated)
    moved["status"]["allocation"]["devices"]["results"][0]["device"] = "d1"
    assert [e.field for e in strategy.validate_status_update(context(), moved, allocated)] == ["status.allocation"]
    freed = {**allocated, "status": {"reservedFor": allocated["status"]["reservedFor"]}}
    assert [e.text() for e in strategy.validate_status_update(context(), freed, allocated)] == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]
    unknown = {**allocated, "status": {**allocated["status"], "devices": [{**result, "device": "d9"}]}}
    assert [e.text() for e in strategy.validate_status_update(context(), unknown, allocated)] == [
        'status.devices[0]: Invalid value: "d.example.com/p/d9": must be an allocated device in the claim'
    ]


def test_slices_say_where_their_devices_are() -> None:
    strategy = rules("ResourceSlice", GROUP)
    nodes = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    assert create_errors(strategy, slice_of(nodeName=None)) == [f"spec: Required value: {nodes}"]
    assert create_errors(strategy, slice_of(allNodes=True)) == [
        f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {nodes}, but multiple fields are set'
    ]
    assert create_errors(strategy, slice_of(nodeName="", allNodes=True))[0].endswith("must be either unset or set to a non-empty string")


@pytest.mark.parametrize(
    ("device", "errors"),
    [
        ({"attributes": {"a": {}}}, ['spec.devices[0].attributes[a]: Invalid value: "": exactly one value must be specified']),
        ({"attributes": {"a": {"version": "1.2"}}}, [f'spec.devices[0].attributes[a].version: Invalid value: "1.2": {SEMVER}']),
        ({"attributes": {"a": {"version": "1.2.3-rc.1+b"}}}, []),
        (
            {"attributes": {"/a": {"bool": True}}},
            ['spec.devices[0].attributes: Invalid value: "": the domain must not be empty'],
        ),
        ({"attributes": {"a": {"string": "x" * 65}}}, ["spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"]),
        (
            {"capacity": {"m": {"value": "1Gi", "requestPolicy": {"default": "1Gi"}}}},
            ["spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
        ),
        (
            {
                "allowMultipleAllocations": True,
                "capacity": {"m": {"value": "10", "requestPolicy": {"default": "3", "validRange": {"min": "1", "step": "3"}}}},
            },
            [
                'spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: "3": value is not a multiple of a given step '
                "(3) from (1)"
            ],
        ),
        ({"taints": [{"key": "a"}]}, ["spec.devices[0].taints[0].effect: Required value"]),
        (
            {"consumesCounters": [{"counterSet": "c"}]},
            ["spec.devices[0].consumesCounters[0].counters: Required value"],
        ),
        (
            {"nodeName": "x"},
            [
                "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            ],
        ),
        (
            {"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
            [
                'spec.devices[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with '
                "bindingConditions"
            ],
        ),
    ],
)
def test_devices(device: Object, errors: list[str]) -> None:
    assert create_errors(rules("ResourceSlice", GROUP), slice_of({"name": "d", **device})) == errors


def test_a_slice_keeps_its_driver_pool_and_node_and_stamps_taints() -> None:
    strategy = rules("ResourceSlice", GROUP)
    stored = created(strategy, slice_of({"name": "d", "taints": [{"key": "a", "effect": "NoExecute"}]}))
    assert stored["spec"]["devices"][0]["taints"][0]["timeAdded"] == NOW
    assert strategy.selectable_fields(stored) == {"spec.nodeName": "n", "spec.driver": "gpu.example.com"}
    new = copy.deepcopy(stored)
    new["spec"].update(driver="other.example.com", nodeName="m")
    assert update_errors(strategy, new, stored) == [
        'spec.driver: Invalid value: "other.example.com": field is immutable',
        'spec.nodeName: Invalid value: "m": field is immutable',
    ]


def test_classes_and_taint_rules() -> None:
    device_class = of({"extendedResourceName": "cpu", "config": [{}]}, api_version=f"{GROUP}/v1")
    assert create_errors(rules("DeviceClass", GROUP), device_class) == [
        "spec.config[0].opaque: Required value",
        'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name',
    ]
    rule = of({"deviceSelector": {"pool": ""}, "taint": {"key": "k", "effect": "Never"}}, api_version=f"{GROUP}/v1")
    assert create_errors(rules("DeviceTaintRule", GROUP), rule) == [
        "spec.deviceSelector.pool: Required value",
        'spec.taint.effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"',
    ]
