"""Server-side apply: documented behaviour, refusals, and a naive map of owners as a twin."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery import managed_fields, server_side_apply
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.34")
CONFIG_MAP = SCHEMAS.type_of("", "v1", "ConfigMap")
SERVICE = SCHEMAS.type_of("", "v1", "Service")
DEPLOYMENT = SCHEMAS.type_of("apps", "v1", "Deployment")
THEN, NOW = "2024-01-01T00:00:00Z", "2024-01-01T00:00:09Z"


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> Object:
    out: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return out if data is None else {**out, "data": data}


def apply(live: Object | None, applied: Any, manager: str, **more: Any) -> Object:
    arguments: dict[str, Any] = {"type": CONFIG_MAP, "api_version": "v1", "kind": "ConfigMap", "now": NOW} | more
    return server_side_apply.apply(live, applied, manager=manager, **arguments)


def owners(obj: Object) -> dict[str, Any]:
    return {e["manager"]: e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def test_an_apply_without_effect_is_the_live_object() -> None:
    body = config_map({"k": "v"}, finalizers=[], labels={"a": "b"})
    live = apply(None, body, "m", now=THEN)
    assert apply(live, body, "m") is live
    assert apply(live, copy.deepcopy(body), "m", force=True) is live


def test_an_integer_that_comes_as_another_number_is_no_change() -> None:
    body: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
    live = apply(None, body, "m", now=THEN, type=DEPLOYMENT, api_version="apps/v1", kind="Deployment")
    again = {**body, "spec": {"replicas": 3.0}}
    assert apply(live, again, "m", type=DEPLOYMENT, api_version="apps/v1", kind="Deployment") is live


def test_to_share_a_value_changes_nothing_but_the_entries() -> None:
    live = apply(None, config_map({"k": "v"}), "one", now=THEN)
    shared = apply(live, config_map({"k": "v"}), "two")
    assert shared["data"] == {"k": "v"} and owners(shared) == {"one": {"f:data": {"f:k": {}}}, "two": {"f:data": {"f:k": {}}}}
    assert [e.get("time") for e in shared["metadata"]["managedFields"]] == [None, THEN]


def test_conflicts_name_the_managers_and_the_fields() -> None:
    live = apply(None, config_map({"k": "v"}), "one", now=THEN)
    live = apply(live, config_map({"l": "w"}), "two", now=THEN)
    with pytest.raises(StatusError) as e:
        apply(live, config_map({"k": "x", "l": "y"}), "three")
    assert e.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.k\nconflicts with "two":\n- .data.l',
        "reason": "Conflict",
        "details": {
            "causes": [
                {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"},
                {"reason": "FieldManagerConflict", "message": 'conflict with "two"', "field": ".data.l"},
            ]
        },
        "code": 409,
    }


def test_one_name_conflicts_with_itself_over_operations() -> None:
    created = config_map({"k": "1"})
    live = managed_fields.with_entries(
        created, managed_fields.update(None, created, type=CONFIG_MAP, manager="tool", api_version="v1", now=THEN)
    )
    with pytest.raises(StatusError, match=r'^Apply failed with 1 conflict: conflict with "tool" using v1: \.data\.k$'):
        apply(live, config_map({"k": "2"}), "tool")


def test_what_was_there_before_the_first_apply_has_an_owner() -> None:
    live = config_map({"k": "v"}, uid="u")
    assert owners(apply(live, config_map({"l": "w"}), "m")) == {
        "before-first-apply": {"f:data": {".": {}, "f:k": {}}},
        "m": {"f:data": {"f:l": {}}},
    }


def test_ports_are_told_apart_by_number_and_protocol_and_tcp_is_the_default() -> None:
    def service(*ports: Any) -> Object:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": list(ports)}}

    kind: dict[str, Any] = {"type": SERVICE, "kind": "Service"}
    live = apply(None, service({"port": 53, "protocol": "TCP", "name": "t"}, {"port": 53, "protocol": "UDP", "name": "u"}), "one", **kind)
    both = apply(live, service({"port": 53, "targetPort": 5353}), "two", **kind)
    assert both["spec"]["ports"] == [
        {"port": 53, "protocol": "TCP", "name": "t", "targetPort": 5353},
        {"port": 53, "protocol": "UDP", "name": "u"},
    ]
    entry = owners(both)["two"]["f:spec"]["f:ports"]
    assert entry == {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}}}
    with pytest.raises(StatusError, match=r'conflict with "one": \.spec\.ports\[port=53,protocol="UDP"\]\.name$'):
        apply(both, service({"port": 53, "protocol": "UDP", "name": "x"}), "two", **kind)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"metadata": {"name": "a"}}, 400, "invalid object type: /, Kind="),
        ({"apiVersion": "v1", "kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "apps/v1", "kind": "ConfigMap"}, 400, "invalid object type: apps/v1, Kind=ConfigMap"),
        (config_map(None, managedFields=[{}]), 400, "metadata.managedFields must be nil"),
        ([], 400, "error decoding YAML: the applied configuration must be an object"),
        (
            {**config_map(), "nothing": 1},
            500,
            "failed to create typed patch object (/a; v1, Kind=ConfigMap): .nothing: field not declared in schema",
        ),
        (
            {**config_map(), "data": {"k": 1}},
            500,
            "failed to create typed patch object (/a; v1, Kind=ConfigMap): .data.k: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            config_map(None, finalizers=["a", "a"]),
            500,
            'failed to create typed patch object (/a; v1, Kind=ConfigMap): .metadata.finalizers: duplicate entries for key [="a"]',
        ),
    ],
)
def test_configurations_that_are_refused(body: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as e:
        apply(None, body, "m")
    assert (e.value.code, e.value.message) == (code, message)


POD = SCHEMAS.type_of("", "v1", "Pod")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("text", ".spec: expected map, got &{text}"),
        ({"containers": {"a": 1}}, ".spec.containers: expected list, got &{map[a:1]}"),
        ({"hostNetwork": "yes"}, ".spec.hostNetwork: expected boolean, got &{yes}"),
        ({"priority": "high"}, ".spec.priority: expected numeric (int or float), got string"),
        ({"priority": {}}, ".spec.priority: expected numeric (int or float), got map[string]interface {}"),
        (
            {"nodeName": [1, None]},
            ".spec.nodeName: expected string, got &value.valueUnstructured{Value:[]interface {}{1, interface {}(nil)}}",
        ),
        ({"nodeSelector": ["a"]}, ".spec.nodeSelector: expected map, got &{[a]}"),
        ({"tolerations": True}, ".spec.tolerations: expected list, got &{true}"),
        ({"tolerations": [{"key": 1}]}, ".spec.tolerations[0].key: expected string, got &value.valueUnstructured{Value:1}"),
        ({"tolerations": [{"x": 1}]}, ".spec.tolerations[0].x: field not declared in schema"),
        ({"nodeSelector": {"a": 1}}, ".spec.nodeSelector.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"containers": [None]}, ".spec.containers: element 0: associative list with keys may not have a null element"),
        (
            {"containers": [{"image": "i"}]},
            '.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": {}}}}]},
            '.spec.containers[name="c"].resources.limits.cpu: expected any scalar, got &{map[]}',
        ),
    ],
)
def test_why_a_configuration_does_not_fit_its_type(spec: Any, problem: str) -> None:
    with pytest.raises(StatusError) as e:
        apply(None, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}, "m", type=POD, kind="Pod")
    assert e.value.message == f"failed to create typed patch object (/p; v1, Kind=Pod): {problem}"


def test_a_live_object_that_does_not_fit_its_type_fails() -> None:
    live: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": ["text"]}}
    body = {**live, "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(StatusError, match=r"associative list with keys may not have non-map elements$") as e:
        apply(live, body, "m", type=POD, kind="Pod")
    assert (e.value.code, e.value.reason) == (500, "")
    spoilt = config_map({"k": "v"}, managedFields=["text"])
    with pytest.raises(StatusError, match=r"^failed to decode managed fields: "):
        apply(spoilt, config_map({"k": "v"}), "m")


def test_the_order_of_items_is_that_of_the_configuration_around_what_only_the_server_has() -> None:
    def pod(*names: str) -> Object:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": n} for n in names]}}

    kind: dict[str, Any] = {"type": POD, "kind": "Pod"}
    live = apply(None, pod("a", "b", "c", "d"), "one", **kind)
    merged = apply(live, pod("d", "x", "b"), "two", **kind)
    assert [c["name"] for c in merged["spec"]["containers"]] == ["a", "c", "d", "x", "b"]


def client_side_applied(data: dict[str, str]) -> Object:
    """As ``kubectl apply`` without ``--server-side`` leaves it."""
    text = json.dumps(config_map(data))
    created = config_map(data, annotations={server_side_apply.LAST_APPLIED: text})
    entries = managed_fields.update(None, created, type=CONFIG_MAP, manager="kubectl-client-side-apply", api_version="v1", now=THEN)
    return managed_fields.with_entries(created, entries)


def test_kubectl_does_not_conflict_with_its_client_side_apply() -> None:
    live = client_side_applied({"k": "v", "l": "w"})
    new = apply(live, config_map({"k": "changed", "l": "w"}), "kubectl")
    assert new["data"] == {"k": "changed", "l": "w"}
    assert json.loads(new["metadata"]["annotations"][server_side_apply.LAST_APPLIED]) == config_map({"k": "changed", "l": "w"})
    with pytest.raises(StatusError, match=r"\.data\.k$"):
        apply(live, config_map({"k": "changed"}), "another")


def test_kubectl_does_conflict_with_who_changed_what_it_had_applied() -> None:
    live = client_side_applied({"k": "v", "l": "w"})
    edited = {**live, "data": {"k": "edited", "l": "w"}}
    live = managed_fields.with_entries(
        edited, managed_fields.update(live, edited, type=CONFIG_MAP, manager="editor", api_version="v1", now=THEN)
    )
    with pytest.raises(StatusError, match=r'^Apply failed with 1 conflict: conflict with "editor" using v1: \.data\.k$'):
        apply(live, config_map({"k": "changed", "l": "changed"}), "kubectl")


def test_an_annotation_that_cannot_be_read_allows_nothing() -> None:
    for text in ("", "{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","nothing":1}'):
        live = client_side_applied({"k": "v"})
        live["metadata"]["annotations"][server_side_apply.LAST_APPLIED] = text
        with pytest.raises(StatusError, match=r"\.data\.k$"):
            apply(live, config_map({"k": "changed"}), "kubectl")


def test_the_annotation_is_dropped_where_it_has_no_room_and_never_holds_itself() -> None:
    live = client_side_applied({"k": "v"})
    body = config_map({"k": "v"}, annotations={server_side_apply.LAST_APPLIED: "old", "a": "b"})
    kept = apply(live, body, "kubectl", force=True)["metadata"]["annotations"]
    assert json.loads(kept[server_side_apply.LAST_APPLIED])["metadata"]["annotations"] == {"a": "b"}
    big = apply(live, config_map({"k": "v" * 300_000}), "kubectl", force=True)
    assert server_side_apply.LAST_APPLIED not in big["metadata"]["annotations"]


KEYS = st.sampled_from("abcd")
DATA = st.dictionaries(KEYS, st.sampled_from("xy"), max_size=4)
WRITES = st.lists(st.tuples(st.sampled_from(["apply", "force", "update"]), st.sampled_from(["m1", "m2", "m3"]), DATA), max_size=12)


class OwnerMap:
    """The rules of a flat map of scalars, written down as they are told to users."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}
        self.owners: dict[str, set[tuple[str, str]]] = {}

    def update(self, manager: str, data: dict[str, str]) -> None:
        for key in [*data, *self.data]:
            if key not in data:
                self.owners.pop(key, None)
            elif self.data.get(key) != data[key]:
                self.owners[key] = {(manager, "Update")}
        self.data = dict(data)

    def apply(self, manager: str, data: dict[str, str], *, force: bool) -> bool:
        me = (manager, "Apply")
        taken = [k for k, v in data.items() if self.data.get(k, v) != v and self.owners.get(k, set()) - {me}]
        if taken and not force:
            return False
        for key in list(self.data):
            if me in self.owners.get(key, set()) and key not in data:
                self.owners[key].discard(me)
                if not self.owners[key]:
                    del self.owners[key], self.data[key]
        for key, value in data.items():
            if self.data.get(key, value) != value:
                self.owners[key] = set()
            self.owners.setdefault(key, set()).add(me)
            self.data[key] = value
        return True


def stored(obj: Object) -> Object:
    """A ConfigMap is stored without a map that is null."""
    return {k: v for k, v in obj.items() if v is not None}


@settings(max_examples=60)
@given(DATA, WRITES)
def test_it_agrees_with_a_map_of_owners(first: dict[str, str], writes: list[tuple[str, str, dict[str, str]]]) -> None:
    twin = OwnerMap()
    twin.apply("m1", first, force=False)
    live = stored(apply(None, config_map(first or None), "m1"))
    for operation, manager, data in writes:
        before = copy.deepcopy(live)
        if operation == "update":
            if not managed_fields.of_object(live):
                continue  # such an object is not tracked
            new = config_map(data or None)
            entries = managed_fields.update(live, new, type=CONFIG_MAP, manager=manager, api_version="v1", now=NOW)
            twin.update(manager, data)
            result = managed_fields.with_entries(new, entries)
        else:
            if not managed_fields.of_object(live):
                continue
            force = operation == "force"
            accepted = twin.apply(manager, data, force=force)
            try:
                result = stored(apply(live, config_map(data or None), manager, force=force))
            except StatusError as e:
                assert e.code == 409 and not accepted
                continue
            assert accepted
        assert live == before
        live = result
        assert (live.get("data") or {}) == twin.data
        found: dict[str, set[tuple[str, str]]] = {}
        for entry in managed_fields.of_object(live):
            for key in entry["fieldsV1"].get("f:data", {}):
                if key != ".":
                    found.setdefault(key[2:], set()).add((entry["manager"], entry["operation"]))
        assert found == {k: o for k, o in twin.owners.items() if o}


def test_a_subresource_comes_before_none_where_managers_are_sorted() -> None:
    """As upstream sorts the identities as JSON, in which a comma comes before a closing brace."""
    plain = managed_fields.manager_id("m", "Update", "v1", "")
    of_scale = managed_fields.manager_id("m", "Update", "v1", "scale")
    other = managed_fields.manager_id("l", "Update", "v1", "")
    assert sorted([plain, of_scale, other], key=managed_fields.order_of) == [other, of_scale, plain]
