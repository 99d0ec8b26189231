"""The matrix: in generated RBAC worlds, every identity × verb × resource × name × scope gets the answer of a slow and obvious evaluator,
from cold, from memory, and after every change."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.static import PrivilegedGroupAuthorizer
from apiserver.authorization.union import UnionAuthorizer
from apiserver.machinery.objects import Object

NAMESPACES = ("a", "b")
VERBS = ("get", "list", "create", "escalate")
GROUPS = ("", "apps")
RESOURCES = ("pods", "pods/log", "deployments", "deployments/scale")
NAMES = ("", "one", "two")
PATHS = ("/healthz", "/healthz/etcd", "/healthzy", "/metrics", "/")
USERS = (
    UserInfo(name="ann", groups=("devs", "system:authenticated")),
    UserInfo(name="bob", groups=("system:authenticated",)),
    UserInfo(name="system:serviceaccount:a:robot", groups=("system:serviceaccounts", "system:serviceaccounts:a")),
    UserInfo(name="root", groups=("system:masters",)),
    UserInfo(name="system:anonymous", groups=("system:unauthenticated",)),
)

Store = dict[tuple[str, str, str], Object]
"""(resource, namespace, name) → object"""


def some(values: tuple[str, ...], most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True)


rules = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": some((*VERBS, "*")),
            "apiGroups": some((*GROUPS, "*"), 2),
            "resources": some((*RESOURCES, "*", "*/log", "*/scale", "pods/*")),
        },
        optional={"resourceNames": some(("one", "two"), 2)},
    ),
    st.fixed_dictionaries({"verbs": some(("get", "*"), 1), "nonResourceURLs": some(("/healthz", "/healthz*", "/healthz/*", "*", "/"), 2)}),
)
subjects = st.one_of(
    st.sampled_from(("ann", "bob", "system:serviceaccount:a:robot")).map(lambda name: {"kind": "User", "name": name}),
    st.sampled_from(("devs", "system:authenticated", "system:serviceaccounts:a", "system:unauthenticated")).map(
        lambda name: {"kind": "Group", "name": name}
    ),
    st.sampled_from(("a", "b", "")).map(lambda namespace: {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}),
)


def roles(resource: str, namespace: str) -> st.SearchStrategy[tuple[tuple[str, str, str], Object]]:
    return st.tuples(st.sampled_from(("r1", "r2", "r3")), st.lists(rules, max_size=3)).map(
        lambda made: ((resource, namespace, made[0]), {"rules": made[1]})
    )


def bindings(resource: str, namespace: str) -> st.SearchStrategy[tuple[tuple[str, str, str], Object]]:
    kinds = ("Role", "ClusterRole") if namespace else ("ClusterRole",)
    reference = st.tuples(st.sampled_from(kinds), st.sampled_from(("r1", "r2", "r3", "gone")))
    return st.tuples(st.sampled_from(("b1", "b2")), reference, st.lists(subjects, max_size=3)).map(
        lambda made: ((resource, namespace, made[0]), {"roleRef": {"kind": made[1][0], "name": made[1][1]}, "subjects": made[2]})
    )


objects = st.one_of(
    roles("clusterroles", ""),
    bindings("clusterrolebindings", ""),
    *(roles("roles", namespace) for namespace in NAMESPACES),
    *(bindings("rolebindings", namespace) for namespace in NAMESPACES),
)
#: an object that is made or replaced, or one that is deleted
changes = st.lists(st.tuples(objects, st.booleans()), min_size=1, max_size=12)


def questions() -> Iterator[Attributes]:
    for user in USERS:
        for verb, group, resource, name, namespace in itertools.product(VERBS, GROUPS, RESOURCES, NAMES, ("", *NAMESPACES)):
            plain, _, subresource = resource.partition("/")
            yield Attributes(
                user=user, verb=verb, group=group, version="v1", namespace=namespace, resource=plain, subresource=subresource, name=name
            )
        for verb, path in itertools.product(("get", "post"), PATHS):
            yield Attributes(user=user, verb=verb, is_resource_request=False, path=path)


QUESTIONS = tuple(questions())


def obvious(store: Store, asked: Attributes) -> bool:
    """Allowed is what the group of administrators asks, or what some rule says that some binding gives: nothing is remembered."""
    if "system:masters" in asked.user.groups:
        return True
    for (resource, namespace, _), binding in store.items():
        if resource not in ("clusterrolebindings", "rolebindings"):
            continue
        if resource == "rolebindings" and (not asked.is_resource_request or asked.namespace != namespace):
            continue
        if not any(obvious_subject(subject, namespace, asked.user) for subject in binding["subjects"]):
            continue
        reference = binding["roleRef"]
        role_key = ("roles", namespace, reference["name"]) if reference["kind"] == "Role" else ("clusterroles", "", reference["name"])
        if any(obvious_rule(rule, asked) for rule in store.get(role_key, {}).get("rules") or ()):
            return True
    return False


def obvious_subject(subject: dict[str, str], namespace: str, user: UserInfo) -> bool:
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    account = subject.get("namespace") or namespace
    return bool(account) and user.name == f"system:serviceaccount:{account}:{subject['name']}"


def obvious_rule(rule: dict[str, Any], asked: Attributes) -> bool:
    def has(field: str, value: str) -> bool:
        return "*" in rule.get(field, ()) or value in rule.get(field, ())

    if not has("verbs", asked.verb):
        return False
    if not asked.is_resource_request:
        return any(
            url == asked.path or (url.endswith("*") and asked.path.startswith(url.rstrip("*"))) for url in rule.get("nonResourceURLs", ())
        )
    full = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    resource = has("resources", full) or (bool(asked.subresource) and f"*/{asked.subresource}" in rule.get("resources", ()))
    named = not rule.get("resourceNames") or asked.name in rule["resourceNames"]
    return has("apiGroups", asked.group) and resource and named


@settings(max_examples=15, deadline=None)
@given(changes=changes)
def test_every_question_of_every_world_has_the_obvious_answer(changes: list[tuple[tuple[tuple[str, str, str], Object], bool]]) -> None:
    data = RbacData()
    authorizer = UnionAuthorizer([PrivilegedGroupAuthorizer(), RbacAuthorizer(data)])
    store: Store = {}
    for (key, obj), is_deletion in changes:
        if is_deletion:
            store.pop(key, None)
            data.object_changed(*key, None)
        else:
            store[key] = obj
            data.object_changed(*key, copy.deepcopy(obj))
    for asked in QUESTIONS:
        expected = obvious(store, asked)
        for _ in range(2):  # from cold, then from memory
            decision, reason = authorizer.authorize(asked)
            assert (decision is Decision.ALLOW) == expected, (asked, store)
            assert decision is not Decision.DENY, "RBAC refuses nothing"
            assert not expected or reason.startswith("RBAC: allowed by ") or "system:masters" in asked.user.groups


SAMPLE = tuple(QUESTIONS[i] for i in range(0, len(QUESTIONS), 17))


@settings(max_examples=25, deadline=None)
@given(changes=changes)
def test_an_answer_follows_each_change_at_once(changes: list[tuple[tuple[tuple[str, str, str], Object], bool]]) -> None:
    data = RbacData()
    authorizer = UnionAuthorizer([PrivilegedGroupAuthorizer(), RbacAuthorizer(data)])
    store: Store = {}
    for (key, obj), is_deletion in changes:
        before, answers = authorizer.generation(), [obvious(store, asked) for asked in SAMPLE]
        if is_deletion:
            store.pop(key, None)
        else:
            store[key] = obj
        data.object_changed(*key, None if is_deletion else obj)
        for asked, answer in zip(SAMPLE, answers, strict=True):
            expected = obvious(store, asked)
            assert (authorizer.authorize(asked)[0] is Decision.ALLOW) == expected
            assert expected == answer or authorizer.generation() != before, "whoever remembers by generation would not notice"
