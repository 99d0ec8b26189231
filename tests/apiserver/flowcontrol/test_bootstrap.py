"""Which flow control objects a cluster has, and what becomes of changes to them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.flowcontrol import bootstrap
from apiserver.flowcontrol.configuration import configuration
from apiserver.request.request_context import RequestInfo

MANDATORY, SUGGESTED = bootstrap.mandatory_schemas(), bootstrap.suggested_schemas()


def stored(objs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    out = {}
    for obj in copy.deepcopy(objs):
        obj["metadata"] |= {"generation": 1, "resourceVersion": "7", "uid": f"uid-{obj['metadata']['name']}"}
        out[obj["metadata"]["name"]] = obj
    return out


def names(objs: Any) -> list[str]:
    return [obj["metadata"]["name"] for obj in objs]


def test_an_empty_cluster_gets_all_and_a_complete_one_nothing() -> None:
    found = bootstrap.plan(MANDATORY, SUGGESTED, {})
    assert len(found.create) == len(MANDATORY) + len(SUGGESTED) == 11 and not found.replace and not found.delete
    found = bootstrap.plan(MANDATORY, SUGGESTED, stored(MANDATORY + SUGGESTED))
    assert not found.create and not found.replace and not found.delete


def test_a_mandatory_object_is_put_right_whatever_its_annotation_says() -> None:
    current = stored(MANDATORY)
    current["catch-all"]["spec"]["rules"] = []
    current["catch-all"]["metadata"]["annotations"][bootstrap.AUTO_UPDATE] = "false"
    [changed] = bootstrap.plan(MANDATORY, [], current).replace
    assert changed["spec"] == MANDATORY[1]["spec"]
    assert changed["metadata"]["annotations"] == {bootstrap.AUTO_UPDATE: "true"}
    assert (changed["metadata"]["generation"], changed["metadata"]["resourceVersion"]) == (2, "7")


@pytest.mark.parametrize(
    ("annotation", "generation", "ours"), [("true", 5, True), ("false", 1, False), (None, 1, True), (None, 2, False), ("x", 2, False)]
)
def test_a_suggested_object_is_an_administrators_once_he_says_so(annotation: str | None, generation: int, ours: bool) -> None:
    current = stored(SUGGESTED)
    mine = current["service-accounts"]
    mine["spec"]["matchingPrecedence"] = 8000
    mine["metadata"]["generation"] = generation
    mine["metadata"]["annotations"] = {} if annotation is None else {bootstrap.AUTO_UPDATE: annotation}
    found = bootstrap.plan([], SUGGESTED, current).replace
    if annotation == "false":
        assert not found
        return
    [changed] = found
    assert changed["spec"]["matchingPrecedence"] == (9000 if ours else 8000)
    assert changed["metadata"]["annotations"][bootstrap.AUTO_UPDATE] == ("true" if ours else "false")


def test_what_an_earlier_release_made_goes_unless_it_was_taken_over() -> None:
    current = stored([*MANDATORY, *SUGGESTED, *bootstrap.suggested_schemas(minor=33)])
    current["endpoint-controller"]["metadata"]["annotations"][bootstrap.AUTO_UPDATE] = "false"
    current["mine"] = {"metadata": {"name": "mine"}, "spec": {}}
    assert bootstrap.plan(MANDATORY, SUGGESTED, current).delete == ("workload-leader-election",)


def test_older_versions_have_no_fields_that_came_later() -> None:
    oldest = str(bootstrap.suggested_levels(25))
    assert "lendablePercent" not in oldest and "assuredConcurrencyShares" in oldest
    assert "exempt" not in bootstrap.mandatory_levels(27)[0]["spec"] and "exempt" in bootstrap.mandatory_levels(28)[0]["spec"]


def resource(verb: str, resource: str, group: str = "", namespace: str = "", subresource: str = "") -> RequestInfo:
    return RequestInfo(
        is_resource_request=True, path="/", verb=verb, group=group, resource=resource, namespace=namespace, subresource=subresource
    )


def path(verb: str, path: str) -> RequestInfo:
    return RequestInfo(is_resource_request=False, path=path, verb=verb)


def user(name: str, *groups: str) -> UserInfo:
    return UserInfo(name=name, groups=(*groups, "system:authenticated"))


NODE = user("system:node:n", "system:nodes")
ACCOUNT = user("system:serviceaccount:apps:operator", "system:serviceaccounts", "system:serviceaccounts:apps")
SYSTEM_ACCOUNT = user("system:serviceaccount:kube-system:x", "system:serviceaccounts", "system:serviceaccounts:kube-system")
MANAGER = user("system:kube-controller-manager")
LEASE = "coordination.k8s.io"


@pytest.mark.parametrize(
    ("who", "what", "schema"),
    [
        (user("root", "system:masters"), resource("delete", "nodes"), "exempt"),
        (UserInfo(name="system:anonymous", groups=("system:unauthenticated",)), path("get", "/healthz"), "probes"),
        (user("bob"), path("get", "/livez/etcd"), "probes"),
        (user("bob"), path("get", "/healthzz"), "global-default"),
        (user("bob"), path("post", "/healthz"), "global-default"),
        (NODE, resource("update", "nodes", subresource="status"), "system-node-high"),
        (NODE, resource("update", "leases", LEASE, "kube-node-lease"), "system-node-high"),
        (NODE, resource("get", "nodes", subresource="proxy"), "system-nodes"),
        (NODE, resource("get", "secrets", namespace="a"), "system-nodes"),
        (MANAGER, resource("update", "leases", LEASE, "kube-system"), "system-leader-election"),
        (MANAGER, resource("delete", "leases", LEASE, "kube-system"), "kube-controller-manager"),
        (MANAGER, resource("list", "pods"), "kube-controller-manager"),
        (user("system:kube-scheduler"), resource("list", "pods"), "kube-scheduler"),
        (SYSTEM_ACCOUNT, resource("get", "leases", LEASE, "apps"), "system-leader-election"),
        (SYSTEM_ACCOUNT, resource("list", "pods"), "kube-system-service-accounts"),
        (ACCOUNT, resource("list", "pods", namespace="apps"), "service-accounts"),
        (user("system:serviceaccount:kube-systemx:y", "system:serviceaccounts"), resource("list", "pods"), "service-accounts"),
        (user("bob"), resource("list", "pods"), "global-default"),
        (user("bob"), path("get", "/version"), "global-default"),
    ],
)
def test_requests_are_classified_as_the_default_schemas_say(who: UserInfo, what: RequestInfo, schema: str) -> None:
    schemas = configuration(bootstrap.suggested_levels(), bootstrap.suggested_schemas()).schemas
    assert next(each for each in schemas if each.matches(who, what)).name == schema


def test_mandatory_objects_stand_in_and_dangling_schemas_are_passed_over() -> None:
    dangling = bootstrap.suggested_schemas()
    found = configuration([], dangling)
    assert [schema.name for schema in found.schemas] == ["exempt", "probes", "catch-all"] and set(found.levels) == {"exempt", "catch-all"}
