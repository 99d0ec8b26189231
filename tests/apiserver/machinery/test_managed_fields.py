"""managedFields of writes that are not applies."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.machinery import apply_types, managed_fields, server_side_apply, typed_fields
from apiserver.machinery.object_versions import ObjectVersions
from apiserver.machinery.objects import Object
from apiserver.machinery.types import ListType, Shape, Type
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.34")
CONFIG_MAP = SCHEMAS.type_of("", "v1", "ConfigMap")
DEPLOYMENT = SCHEMAS.type_of("apps", "v1", "Deployment")
POD = SCHEMAS.type_of("", "v1", "Pod")
THEN, NOW = "2024-01-01T00:00:00Z", "2024-01-01T00:00:09Z"


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}, "data": data}


def written(old: Object | None, new: Object, manager: str, now: str = NOW, **more: Any) -> Object:
    more.setdefault("type", CONFIG_MAP)
    entries = managed_fields.update(old, new, manager=manager, api_version="v1", now=now, **more)
    return managed_fields.with_entries(new, entries)


def owners(obj: Object) -> dict[tuple[str, str], Any]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def test_a_creation_owns_all_that_it_sets() -> None:
    (entry,) = written(None, config_map(k="v"), "maker")["metadata"]["managedFields"]
    assert entry == {
        "manager": "maker",
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
    }


def test_structs_that_go_has_by_value_are_not_owned_themselves() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}], "securityContext": {}},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        },
        "status": {},
    }
    (entry,) = managed_fields.update(None, deployment, type=DEPLOYMENT, manager="m", api_version="apps/v1", now=NOW)
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}},
                    "f:securityContext": {},
                },
            },
        }
    }


def test_a_change_takes_a_field_from_its_owner_and_a_removal_from_all() -> None:
    one = written(None, config_map(k="v", l="w", m="x"), "one", THEN)
    two = written(one, config_map(k="changed", l="w", m="x", n="new"), "two")
    assert owners(two) == {
        ("one", "Update"): {"f:data": {".": {}, "f:l": {}, "f:m": {}}},
        ("two", "Update"): {"f:data": {"f:k": {}, "f:n": {}}},
    }
    three = written(two, config_map(l="w"), "three")
    assert owners(three) == {("one", "Update"): {"f:data": {".": {}, "f:l": {}}}}


def test_a_write_that_changes_nothing_moves_no_time_and_keeps_the_entries() -> None:
    one = written(None, config_map(k="v"), "one", THEN)
    again = managed_fields.update(one, copy.deepcopy(one), type=CONFIG_MAP, manager="one", api_version="v1", now=NOW)
    assert again == one["metadata"]["managedFields"]
    other = managed_fields.update(one, config_map(k="v"), type=CONFIG_MAP, manager="two", api_version="v1", now=NOW)
    assert other[0] is one["metadata"]["managedFields"][0]


def test_times_alone_are_no_change() -> None:
    one = written(None, config_map(k="v"), "one", THEN)
    later = written(None, config_map(k="v"), "one", NOW)
    assert managed_fields.restore_timestamps(one, later) == one
    changed = written(None, config_map(k="w"), "one", NOW)
    assert managed_fields.restore_timestamps(one, changed) is changed
    assert managed_fields.restore_timestamps(one, config_map(k="v")) == config_map(k="v")
    other = written(None, config_map(l="v"), "one", NOW)
    assert managed_fields.restore_timestamps(one, other) is other


def test_a_writer_without_a_name_is_unknown() -> None:
    assert list(owners(written(None, config_map(k="v"), ""))) == [("unknown", "Update")]


def test_thirty_updaters_keep_ten_entries() -> None:
    """Each writer has a name of its own and touches a key of its own: the oldest are joined, appliers never."""
    obj = server_side_apply.apply(
        None, config_map(applied="x"), type=CONFIG_MAP, manager="applier", api_version="v1", kind="ConfigMap", now=THEN
    )
    for i in range(30):
        new = config_map(**obj["data"], **{f"k{i:02}": "v"})
        obj = written(obj, new, f"m{i:02}", f"2024-01-01T00:00:{i + 1:02}Z")
    found = owners(obj)
    assert len(found) == 11 and ("applier", "Apply") in found
    kept = sorted(manager for manager, operation in found if operation == "Update")
    assert kept == ["ancient-changes", *(f"m{i}" for i in range(21, 30))]
    assert found[("ancient-changes", "Update")] == {"f:data": {f"f:k{i:02}": {} for i in range(21)}}
    times = [e.get("time") for e in obj["metadata"]["managedFields"] if e["operation"] == "Update"]
    assert times == sorted(times)


def test_a_client_may_reset_or_replace_the_entries() -> None:
    one = written(None, config_map(k="v"), "one", THEN)
    resets: list[list[Any]] = [[], [{}]]
    for reset in resets:
        new = config_map(k="v", l="w")
        new["metadata"]["managedFields"] = reset
        assert "managedFields" not in written(one, new, "two")["metadata"]
    replaced = config_map(k="v")
    replaced["metadata"]["managedFields"] = [
        {"manager": "other", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}}
    ]
    assert owners(written(one, replaced, "two")) == {("other", "Apply"): {"f:data": {"f:k": {}}}}
    wrong = config_map(k="v")
    wrong["metadata"]["managedFields"] = [{"manager": "other", "operation": "Steal"}]
    assert owners(written(one, wrong, "two")) == owners(one)
    assert owners(written(one, replaced, "two", subresource="status")) == owners(one)


def test_an_object_without_entries_is_not_tracked_by_updates() -> None:
    assert managed_fields.update(config_map(k="v"), config_map(k="w"), type=CONFIG_MAP, manager="m", api_version="v1", now=NOW) == []


def test_what_an_endpoint_resets_nobody_comes_to_own() -> None:
    old: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}
    old = written(None, old, "one", THEN, type=POD, reset_fields=managed_fields.WITHOUT_STATUS)
    assert owners(old) == {("one", "Update"): {"f:spec": {"f:nodeName": {}}}}
    new = copy.deepcopy(old)
    new["status"]["phase"], new["spec"]["nodeName"] = "Running", "other"
    by_kubelet = written(old, new, "kubelet", type=POD, subresource="status", reset_fields=managed_fields.WITHOUT_SPEC)
    assert owners(by_kubelet) == {("one", "Update"): {"f:spec": {"f:nodeName": {}}}, ("kubelet", "Update"): {"f:status": {"f:phase": {}}}}
    assert by_kubelet["metadata"]["managedFields"][1]["subresource"] == "status"
    only_status = written(old, new, "kubelet", type=POD, subresource="status", reset_fields=managed_fields.ONLY_STATUS)
    assert owners(only_status) == owners(by_kubelet)


def test_a_struct_that_is_always_there_is_not_removed_but_emptied() -> None:
    old: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"strategy": {"type": "Recreate"}, "minReadySeconds": 5},
    }
    old = managed_fields.with_entries(
        old, managed_fields.update(None, old, type=DEPLOYMENT, manager="one", api_version="apps/v1", now=THEN)
    )
    new = {**old, "spec": {"minReadySeconds": 5}}
    (entry,) = managed_fields.update(old, new, type=DEPLOYMENT, manager="two", api_version="apps/v1", now=NOW)
    assert entry["fieldsV1"] == {"f:spec": {"f:minReadySeconds": {}}}


def test_an_object_with_spoilt_entries_starts_anew() -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    for spoilt in ("text", {**entry, "apiVersion": ""}, {**entry, "fieldsType": ""}, {**entry, "fieldsType": "FieldsV9"}):
        old = config_map(k="v")
        old["metadata"]["managedFields"] = [spoilt]
        assert managed_fields.update(old, config_map(k="w"), type=CONFIG_MAP, manager="m", api_version="v1", now=NOW) == []
    sent = config_map(k="w")
    one = written(None, config_map(k="v"), "one", THEN)
    sent["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"nonsense": {}}}]
    assert owners(written(one, sent, "two")) == {("one", "Update"): {"f:data": {}}, ("two", "Update"): {"f:data": {"f:k": {}}}}


def test_an_entry_of_another_version_is_compared_by_the_type_of_that_version() -> None:
    old: Object = {"apiVersion": "x/v2", "kind": "W", "metadata": {"name": "a"}, "spec": {"x": ["s"]}}

    def kind(list_type: ListType) -> Type:
        items = Type(shape=Shape.LIST, element=Type(shape=Shape.STRING), list_type=list_type)
        return Type(
            shape=Shape.STRUCT, fields={"metadata": CONFIG_MAP.fields["metadata"], "spec": Type(shape=Shape.STRUCT, fields={"x": items})}
        )

    as_set, atomic = kind(ListType.SET), kind(ListType.ATOMIC)
    (entry,) = managed_fields.update(None, old, type=atomic, manager="old", api_version="x/v1", now=THEN)
    old = managed_fields.with_entries(old, [entry])
    entries = managed_fields.record_update(
        managed_fields.decode([entry], trusted=True),
        old,
        {**old, "spec": {"x": ["s", "t"]}},
        versions=ObjectVersions(apply_types.of(as_set), "x/v2", lambda version: {"x/v1": atomic, "x/v2": as_set}[version]),
        manager="new",
        subresource="",
        now=NOW,
    )
    assert {i.manager: e.fields for i, e in entries.items()} == {
        "old": {"f:spec": {}},
        "new": {"f:spec": {"f:x": {'v:"t"': {}}}},
    }


def test_entries_of_versions_that_are_gone_are_dropped() -> None:
    one = written(None, config_map(k="v", l="w"), "one", THEN)
    entry = {**one["metadata"]["managedFields"][0], "manager": "old", "apiVersion": "v1beta1"}
    one["metadata"]["managedFields"].append(entry)
    kept = written(one, config_map(k="x", l="w"), "two")
    assert owners(kept)[("old", "Update")] == {"f:data": {".": {}, "f:l": {}}}
    gone = written(one, config_map(k="x", l="w"), "two", schema_of=lambda version: CONFIG_MAP if version == "v1" else None)
    assert ("old", "Update") not in owners(gone)


def test_a_list_that_became_atomic_is_owned_as_a_whole() -> None:
    def kind(list_type: ListType) -> Type:
        items = Type(shape=Shape.LIST, element=Type(shape=Shape.STRING), list_type=list_type)
        return Type(
            shape=Shape.STRUCT, fields={"metadata": CONFIG_MAP.fields["metadata"], "spec": Type(shape=Shape.STRUCT, fields={"x": items})}
        )

    old: Object = {"apiVersion": "v1", "kind": "W", "metadata": {"name": "a"}, "spec": {"x": ["s", "t"]}}
    old = written(None, old, "one", THEN, type=kind(ListType.SET))
    assert owners(old) == {("one", "Update"): {"f:spec": {".": {}, "f:x": {".": {}, 'v:"s"': {}, 'v:"t"': {}}}}}
    new = {**old, "spec": {"x": ["u"]}}
    assert owners(written(old, new, "two", type=kind(ListType.ATOMIC))) == {
        ("one", "Update"): {"f:spec": {}},
        ("two", "Update"): {"f:spec": {"f:x": {}}},
    }


def test_a_kind_without_a_schema_is_tracked_by_its_content() -> None:
    old: Object = {"apiVersion": "x/v1", "kind": "W", "metadata": {"name": "a"}, "spec": {"a": 1, "b": {"c": [1, {"d": 2}]}}}
    one = written(None, old, "one", type=None)
    assert owners(one) == {("one", "Update"): {"f:spec": {".": {}, "f:a": {}, "f:b": {".": {}, "f:c": {}}}}}
    new = {**one, "spec": {"a": True, "b": {"c": [1, {"d": 3}]}}}
    assert owners(written(one, new, "two", type=None))[("two", "Update")] == {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}


def test_lists_that_cannot_be_told_apart_leave_the_entries_as_they_were() -> None:
    old = written(None, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostname": "a"}}, "one", THEN, type=POD)
    new = {**old, "spec": {"containers": ["no map"]}}
    assert managed_fields.update(old, new, type=POD, manager="two", api_version="v1", now=NOW) == old["metadata"]["managedFields"]


def pod(image: str, **labels: str) -> Object:
    spec = {"containers": [{"name": "c", "image": image, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec}


def test_what_is_remembered_of_equal_specs_is_what_a_walk_finds() -> None:
    type_ = SchemaSet.load("1.34").type_of("", "v1", "Pod")
    kind = apply_types.of(type_)
    makers = [pod("i"), pod("j", a="b"), {**pod("i"), "spec": {**pod("i")["spec"], "hostNetwork": True}}]
    walked = []
    for obj in makers:
        kind.created.clear()
        walked.append(owners(written(None, copy.deepcopy(obj), "maker", type=type_)))
    assert len({str(each) for each in walked}) == 3
    kind.created.clear()
    for _ in range(2):
        assert [owners(written(None, copy.deepcopy(obj), "maker", type=type_)) for obj in makers] == walked
    assert len(kind.created) == 3


def test_what_is_remembered_of_specs_is_bounded() -> None:
    type_ = SchemaSet.load("1.34").type_of("", "v1", "Pod")
    kind = apply_types.of(type_)
    for number in range(typed_fields.REMEMBERED_MAX + 10):
        written(None, pod(f"image-{number}"), "maker", type=type_)
        assert len(kind.created) <= typed_fields.REMEMBERED_MAX
    kind.created.clear()
    written(None, pod("i" * typed_fields.REMEMBERED_BYTES_MAX), "maker", type=type_)
    written(None, {**pod("i"), "spec": {"priority": 1 << 70}}, "maker", type=type_)
    assert not kind.created
