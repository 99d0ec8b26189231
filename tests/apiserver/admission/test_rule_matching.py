"""Which requests a webhook or policy is about: rules, scope, selectors, equivalent versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from tests.fakes.admission import USER
from tests.fakes.object_getter import FakeObjects

TABLE = ResourceTable("1.34")


def info(group: str, version: str, resource: str) -> ResourceInfo:
    found = TABLE.lookup(group, version, resource)
    assert found is not None
    return found


PODS, DEPLOYMENTS = info("", "v1", "pods"), info("apps", "v1", "deployments")
EVENTS = info("", "v1", "events")
NAMESPACES, NODES = info("", "v1", "namespaces"), info("", "v1", "nodes")


def rule(
    groups: list[str], resources: list[str], *, versions: Sequence[str] = ("*",), operations: Sequence[str] = ("*",), **more: Any
) -> dict[str, Any]:
    return {"apiGroups": groups, "apiVersions": list(versions), "resources": resources, "operations": list(operations), **more}


def write(
    of: ResourceInfo,
    operation: Operation = Operation.CREATE,
    *,
    subresource: str = "",
    name: str = "a",
    labels: dict[str, str] | None = None,
    old_labels: dict[str, str] | None = None,
) -> AdmissionAttributes:
    return AdmissionAttributes(
        operation=operation,
        info=of,
        subresource=subresource,
        namespace="ns" if of.namespaced else "",
        name=name,
        user=USER,
        object=None if operation is Operation.DELETE else {"metadata": {"name": name, "labels": labels or {}}},
        old_object=None if operation is Operation.CREATE else {"metadata": {"name": name, "labels": old_labels or {}}},
    )


def world(**labels: str) -> FakeObjects:
    objects = FakeObjects()
    objects.add("", "namespaces", "ns", metadata={"labels": labels})
    return objects


def equivalents(of: ResourceInfo) -> list[ResourceInfo]:
    return [other for other in TABLE if other.storage_prefix == of.storage_prefix and other is not of]


def match(webhook: dict[str, Any], attributes: AdmissionAttributes, objects: FakeObjects | None = None) -> ResourceInfo | None:
    return rule_matching.matcher_of_webhook(webhook).match(attributes, objects or world(), equivalents)


@pytest.mark.parametrize(
    ("said", "attributes", "matches"),
    [
        (rule([""], ["pods"]), write(PODS), True),
        (rule([""], ["pods"]), write(DEPLOYMENTS), False),
        (rule(["apps"], ["pods"]), write(PODS), False),
        (rule(["*"], ["*"]), write(DEPLOYMENTS), True),
        (rule(["*"], ["*"]), write(PODS, subresource="status"), False),
        (rule(["*"], ["*/*"]), write(PODS, subresource="status"), True),
        (rule([""], ["pods/*"]), write(PODS), True),
        (rule([""], ["pods/*"]), write(PODS, subresource="exec"), True),
        (rule([""], ["*/status"]), write(PODS, subresource="status"), True),
        (rule([""], ["*/status"]), write(PODS), False),
        (rule([""], ["pods"], operations=["UPDATE", "DELETE"]), write(PODS), False),
        (rule([""], ["pods"], operations=["UPDATE", "DELETE"]), write(PODS, Operation.DELETE), True),
        (rule([""], ["pods"], versions=["v1beta1"]), write(PODS), False),
        (rule([""], ["*"], scope="Namespaced"), write(PODS), True),
        (rule([""], ["*"], scope="Namespaced"), write(NODES), False),
        (rule([""], ["*"], scope="Namespaced"), write(NAMESPACES), False),
        (rule([""], ["*"], scope="Cluster"), write(NAMESPACES), True),
        (rule([""], ["*"], scope="Cluster"), write(NODES), True),
        (rule([""], ["*"], scope="Cluster"), write(PODS), False),
        (rule([""], ["pods"], resourceNames=["b"]), write(PODS), False),
        (rule([""], ["pods"], resourceNames=["a", "b"]), write(PODS), True),
    ],
)
def test_rules(said: dict[str, Any], attributes: AdmissionAttributes, matches: bool) -> None:
    assert (match({"rules": [said]}, attributes) is not None) is matches


def test_an_equivalent_resource_matches_by_the_other_group_and_version() -> None:
    webhook = {"rules": [rule(["events.k8s.io"], ["events"], versions=["v1"])]}
    found = match(webhook, write(EVENTS))
    assert found is not None
    assert found.api_version == "events.k8s.io/v1"
    assert match({**webhook, "matchPolicy": "Exact"}, write(EVENTS)) is None


def test_the_requests_own_version_goes_before_an_equivalent_one() -> None:
    rules = [rule(["events.k8s.io"], ["events"]), rule([""], ["events"])]
    assert match({"rules": rules}, write(EVENTS)) is EVENTS


def test_an_object_is_selected_by_what_it_was_or_becomes() -> None:
    webhook = {"rules": [rule([""], ["pods"])], "objectSelector": {"matchLabels": {"a": "1"}}}
    assert match(webhook, write(PODS, labels={"a": "1"})) is PODS
    assert match(webhook, write(PODS)) is None
    assert match(webhook, write(PODS, Operation.UPDATE, old_labels={"a": "1"})) is PODS
    assert match(webhook, write(PODS, Operation.DELETE, old_labels={"a": "1"})) is PODS


def test_the_namespace_selector_looks_at_the_objects_namespace() -> None:
    webhook = {"rules": [rule(["*"], ["*"])], "namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    assert match(webhook, write(PODS), world(x="1")) is PODS
    assert match(webhook, write(PODS), world()) is None
    assert match(webhook, write(NODES), world()) is NODES, "what is in no namespace is never left out by a namespace selector"


def test_a_namespace_is_selected_by_its_new_labels_and_at_its_end_by_those_it_has() -> None:
    webhook = {"rules": [rule(["*"], ["*"])], "namespaceSelector": {"matchLabels": {"x": "1"}}}
    assert match(webhook, write(NAMESPACES, name="new", labels={"x": "1"})) is NAMESPACES
    assert match(webhook, write(NAMESPACES, name="new")) is None
    assert match(webhook, write(NAMESPACES, Operation.DELETE, name="ns"), world(x="1")) is NAMESPACES
    assert match(webhook, write(NAMESPACES, Operation.DELETE, name="ns"), world()) is None


def test_a_namespace_that_is_not_there_is_said_only_where_the_rules_match() -> None:
    webhook = {"rules": [rule([""], ["pods"])], "namespaceSelector": {"matchLabels": {"x": "1"}}}
    with pytest.raises(StatusError) as caught:
        match(webhook, write(PODS), FakeObjects())
    assert (caught.value.code, caught.value.message) == (404, 'namespaces "ns" not found')
    assert match(webhook, write(DEPLOYMENTS), FakeObjects()) is None


def test_excluded_rules_take_out_of_a_policys_constraints() -> None:
    matcher = rule_matching.matcher_of_constraints(
        {"resourceRules": [rule(["*"], ["*"])], "excludeResourceRules": [rule([""], ["pods"], resourceNames=["a"])]}
    )
    assert matcher.match(write(PODS, name="a"), world(), equivalents) is None
    assert matcher.match(write(PODS, name="b"), world(), equivalents) is PODS


@pytest.mark.parametrize("kind", ["validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies"])
def test_what_says_who_admits_is_exempt(kind: str) -> None:
    assert rule_matching.is_exempt(info("admissionregistration.k8s.io", "v1", kind))
    assert rule_matching.is_exempt(info("authorization.k8s.io", "v1", "selfsubjectaccessreviews"))
    assert not rule_matching.is_exempt(PODS)


def test_a_subresource_with_a_kind_of_its_own_is_told_by_it() -> None:
    assert rule_matching.kind_of(DEPLOYMENTS, "scale") == ("autoscaling", "v1", "Scale")
    assert rule_matching.kind_of(DEPLOYMENTS, "status") == ("apps", "v1", "Deployment")
    assert rule_matching.kind_of(PODS, "eviction") == ("policy", "v1", "Eviction")
    assert rule_matching.kind_of(PODS, "") == ("", "v1", "Pod")


@pytest.mark.parametrize(
    ("constraints", "always", "ever"),
    [
        ({"resourceRules": [rule([""], ["pods"])]}, True, True),
        ({"resourceRules": [rule([""], ["configmaps"]), rule(["*"], ["*"])]}, True, True),
        ({}, True, True),
        ({"resourceRules": [rule([""], ["pods"], scope="Namespaced")]}, False, True),
        ({"resourceRules": [rule([""], ["pods"], resourceNames=["a"])]}, False, True),
        ({"resourceRules": [rule([""], ["pods"])], "objectSelector": {"matchLabels": {"a": "b"}}}, False, True),
        ({"resourceRules": [rule([""], ["pods"])], "namespaceSelector": {"matchLabels": {"a": "b"}}}, False, True),
        ({"resourceRules": [rule([""], ["pods"])], "excludeResourceRules": [rule([""], ["pods"], resourceNames=["b"])]}, False, True),
        ({"resourceRules": [rule(["apps"], ["deployments"])]}, False, False),
        ({"resourceRules": [rule([""], ["pods/status"])]}, False, False),
        ({"resourceRules": [rule([""], ["pods"], operations=["DELETE"])]}, False, False),
    ],
)
def test_what_a_matcher_says_of_a_resource_before_any_object(constraints: dict[str, Any], always: bool, ever: bool) -> None:
    matcher = rule_matching.matcher_of_constraints(constraints)
    assert matcher.always_concerns(Operation.CREATE, PODS, "") is always
    assert matcher.may_concern(Operation.CREATE, PODS, "", equivalents(PODS)) is ever
    if always:
        assert matcher.match(write(PODS), world(), equivalents) is PODS
    if not ever:
        assert matcher.match(write(PODS), world(), equivalents) is None
