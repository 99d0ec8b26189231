"""Which rule of an audit policy decides, and which policies are none."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apiserver.audit.policy import Level, Policy, PolicyError, Stage, parse
from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestInfo

ALICE = UserInfo(name="alice", groups=("devs", "system:authenticated"))


def policy(*rules: dict[str, Any], **more: Any) -> bytes:
    return yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}).encode()


def parsed(*rules: dict[str, Any], **more: Any) -> Policy:
    return parse(policy(*rules, **more), "p.yaml")


def pods(verb: str = "get", **fields: str) -> RequestInfo:
    info = {"resource": "pods", "namespace": "ns", "name": "p", "version": "v1"} | fields
    return RequestInfo(is_resource_request=True, path="/api/v1/x", verb=verb, **info)  # type: ignore[arg-type]


def path(text: str) -> RequestInfo:
    return RequestInfo(is_resource_request=False, path=text, verb="get")


def of(*resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"resources": [{"group": group, "resources": list(resources), **more}]}


@pytest.mark.parametrize(
    ("rule", "info", "matches"),
    [
        ({}, pods(), True),
        ({"users": ["alice"]}, pods(), True),
        ({"users": ["bob"]}, pods(), False),
        ({"userGroups": ["ops", "devs"]}, pods(), True),
        ({"userGroups": ["ops"]}, pods(), False),
        ({"verbs": ["create"]}, pods(), False),
        ({"namespaces": ["ns"]}, pods(), True),
        ({"namespaces": [""]}, pods(), False),
        ({"namespaces": [""]}, pods(namespace=""), True),
        ({"namespaces": ["ns"]}, path("/healthz"), False),
        (of(), pods(), True),
        (of("pods", group="*"), pods(group="x"), True),
        (of("pods", group="apps"), pods(), False),
        (of("pods"), pods(subresource="log"), False),
        (of("pods/log"), pods(subresource="log"), True),
        (of("pods/*"), pods(subresource="log"), True),
        (of("pods/*"), pods(), True),
        (of("*/log"), pods(subresource="log"), True),
        (of("*"), pods(subresource="log"), True),
        (of("pods", resourceNames=["q"]), pods(), False),
        (of("pods", resourceNames=["p"]), pods(), True),
        ({"nonResourceURLs": ["/healthz*"]}, path("/healthz/etcd"), True),
        ({"nonResourceURLs": ["/healthz"]}, path("/healthz/etcd"), False),
        ({"nonResourceURLs": ["*"]}, path("/x"), True),
        ({"nonResourceURLs": ["*"]}, pods(), False),
    ],
)
def test_a_rule_matches(rule: dict[str, Any], info: RequestInfo, matches: bool) -> None:
    assert (parsed({"level": "Metadata"} | rule).decide(ALICE, info).level is Level.METADATA) is matches


def test_the_first_rule_decides_and_stages_add_up() -> None:
    found = parsed(
        {"level": "Request", "verbs": ["get"], "omitStages": ["ResponseStarted"], "omitManagedFields": False},
        {"level": "RequestResponse"},
        omitStages=["RequestReceived"],
        omitManagedFields=True,
    )
    first, second = found.decide(ALICE, pods()), found.decide(ALICE, pods("list"))
    assert (first.level, second.level) == (Level.REQUEST, Level.REQUEST_RESPONSE)
    assert first.omit_stages == {Stage.REQUEST_RECEIVED, Stage.RESPONSE_STARTED} and second.omit_stages == {Stage.REQUEST_RECEIVED}
    assert (first.omit_managed_fields, second.omit_managed_fields) == (False, True)
    assert parsed({"level": "Metadata", "users": ["x"]}).decide(None, pods()).level is Level.NONE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (policy({"level": "All"}), 'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestR'),
        (policy({}), "rules[0].level: Required value"),
        (policy(), "loaded illegal policy with 0 rules from file p.yaml"),
        (policy({"level": "None", "nonResourceURLs": ["x"]}), "non-resource URL rules must begin with a '/' character"),
        (policy({"level": "None", "nonResourceURLs": ["/x*y"]}), "wildcards '*' must be the final character"),
        (policy({"level": "None", "omitStages": ["Later"]}), "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"),
        (policy({"level": "None", "resources": [{"resourceNames": ["a"]}]}), "using resourceNames requires at least one resource"),
        (policy({"level": "None", "nonResourceURLs": ["/x"], "namespaces": ["a"]}), "cannot apply to both regular resources and non-res"),
        (policy({"level": "None", "user": ["a"]}), 'unknown field "rules[0].user"'),
        (policy({"level": "None", "users": [1]}), "rules[0].users is not a list of strings"),
        (policy({"level": "None"}, kind="Other"), 'no kind "Other" is registered'),
        (b"[", "failed decoding file p.yaml"),
        (b'{"a":' * 3000, "failed decoding file p.yaml"),
        (b"kind: 2001-99-99", "failed decoding file p.yaml"),
    ],
)
def test_refusals(text: bytes, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(text, "p.yaml")
    assert words in str(caught.value) and "\n" not in str(caught.value)
