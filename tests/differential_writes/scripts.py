"""Scripts made by hand: one group of rules each."""

from __future__ import annotations

from typing import Any

from tests.differential_writes.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, YAML, Step

CM = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SERVICES = "/api/v1/namespaces/{ns}/services"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"


def cm(name: str, data: Any = None, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    if data is not None:
        found["data"] = data
    return found


def pod(name: str, **spec: Any) -> dict[str, Any]:
    base = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**base, **spec}}


def post(path: str, body: Any, **more: Any) -> Step:
    return Step(method="POST", path=path, body=body, **more)


def put(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PUT", path=path, body=body, **more)


def get(path: str, **more: Any) -> Step:
    return Step(method="GET", path=path, **more)


def delete(path: str, body: Any = None, **more: Any) -> Step:
    return Step(method="DELETE", path=path, body=body, **more)


def merge(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=MERGE, **more)


def strategic(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=STRATEGIC, **more)


def json_patch(path: str, body: Any, **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=JSON_PATCH, **more)


def apply(path: str, body: Any, manager: str = "m1", query: str = "", **more: Any) -> Step:
    return Step(method="PATCH", path=path, body=body, type=APPLY, query=f"fieldManager={manager}" + (f"&{query}" if query else ""), **more)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": "u-1"}

CREATE = [
    post(CM, cm("a", {"k": "1"}, generation=7, uid="x", creationTimestamp="2020-01-01T00:00:00Z")),
    post(CM, cm("a", {"k": "1"})),
    post(CM, cm("b", resourceVersion="12")),
    post(CM, cm("b", resourceVersion="abc")),
    post(CM, cm("b", deletionTimestamp="2020-01-01T00:00:00Z", deletionGracePeriodSeconds=3)),
    post(CM, cm("own2", ownerReferences=[OWNER, OWNER])),
    post(CM, cm("own3", ownerReferences=[OWNER, {**OWNER, "controller": True}, OWNER])),
    post(CM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
    post(CM, {"apiVersion": "v1", "kind": "ConfigMap"}),
    post(CM, cm("c", finalizers=["orphan", "foregroundDeletion"])),
    post(CM, cm("c", finalizers=["x"])),
    post(CM, cm("c", finalizers=["x/y", "x/y"])),
    post(CM, cm("n", namespace="other")),
    post(CM, cm("d"), query="dryRun=All"),
    post(CM, cm("a"), query="dryRun=All"),
    post(CM, cm("d"), query="dryRun=Some"),
    post(CM, cm("d"), query="dryRun="),
    post(CM, cm("d"), query="dryRun=All&dryRun=All"),
    post(CM, cm("d"), query="dryRun=All&dryRun=None"),
    get(CM + "/d"),
    post(CM, cm("e"), query="fieldManager=" + "m" * 128),
    post(CM, cm("f"), query="fieldManager=" + "m" * 129),
    post(CM, cm("f"), query="fieldManager=a%0Ab"),
    post(CM, cm("f"), query="fieldManager=%C3%A9"),
    post(CM, cm("g"), agent=""),
    post(CM, cm("h"), agent="kubectl/v1.2 (linux)"),
    post(CM, cm("i", managedFields=[{}])),
    post(CM, cm("j", managedFields=[])),
    post(
        CM,
        cm(
            "k",
            {"a": "b"},
            managedFields=[
                {
                    "manager": "x",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2020-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:z": {}}},
                }
            ],
        ),
    ),
    post(CM, cm("l", {"a": "b"}, managedFields=[{"manager": "x", "operation": "Bad"}])),
    post(CM, cm("m", {"a": "b"}, managedFields=[{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "X"}])),
    post(CM, "{"),
    post(CM, "[]"),
    post(CM, ""),
    post(CM, "null"),
    post(CM, {"kind": "ConfigMap", "apiVersion": "v2"}),
    post(CM, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}),
    post(CM, {"kind": "Foo", "apiVersion": "v1", "metadata": {"name": "s"}}),
    post(CM, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "s"}}),
    post(CM, {"metadata": {"name": "nokind"}}),
    post(CM, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\ndata: {a: '1'}\n", type=YAML),
    post(CM, "a: [", type=YAML),
    post(CM, cm("p"), type="text/plain"),
    post(CM, cm("gn", None, generateName="x-")),
    post(CM, {"metadata": {"generateName": "Bad_"}}),
    post(CM, cm("UPPER")),
    post(CM, cm("a" * 254)),
    post(CM + "/a", cm("a")),
    post(CM, cm("lbl", labels={"a": None}, annotations={"b": None})),
    post(CM, cm("num", {"k": 1})),
]

UPDATE = [
    put(CM + "/none", cm("none")),
    put(CM + "/none", cm("none", uid="u1")),
    put(CM + "/none", cm("none", resourceVersion="7")),
    post(CM, cm("a", {"k": "1"})),
    put(CM + "/a", cm("a", {"k": "1"}), note="no-op"),
    put(CM + "/a", cm("a", {"k": "2"})),
    put(CM + "/a", cm("a", {"k": "3"}, resourceVersion="1")),
    put(CM + "/a", cm("a", {"k": "3"}, resourceVersion="{rv}")),
    put(CM + "/a", cm("a", {"k": "3"}, resourceVersion="abc")),
    put(CM + "/a", cm("a", {"k": "3"}, resourceVersion="0")),
    put(CM + "/a", cm("a", {"k": "3"}, resourceVersion="-1")),
    put(CM + "/a", cm("a", {"k": "3"}, uid="00000000-0000-0000-0000-000000000000")),
    put(CM + "/a", cm("b")),
    put(CM + "/a", {"metadata": {}}),
    put(CM + "/a", {"apiVersion": "v1", "kind": "ConfigMap"}),
    put(CM + "/a", cm("a", namespace="zz")),
    put(CM + "/a", cm("a", {"k": "3"}, creationTimestamp="2001-01-01T00:00:00Z", generation=5)),
    put(CM + "/a", cm("a", {"k": "3"}, deletionTimestamp="2001-01-01T00:00:00Z")),
    put(CM + "/a", cm("a", {"k": "3"}, deletionGracePeriodSeconds=3)),
    put(CM + "/a", cm("a", {"k": "4"}, generateName="zz-")),
    put(CM + "/a", cm("a", {"k": "4"}), query="dryRun=All"),
    put(CM + "/a", cm("a", {"k": "5"}), query="dryRun=All"),
    get(CM + "/a"),
    put(CM + "/a", cm("a", {"k": "5"}, ownerReferences=[OWNER, OWNER])),
    put(CM + "/a", cm("a", {"k": "5"}, managedFields=[])),
    put(CM + "/a", cm("a", {"k": "6"})),
    put(CM + "/a", cm("a", {"k": "6"}, managedFields=[{}])),
    put(
        CM + "/a",
        cm(
            "a",
            {"k": "7"},
            managedFields=[
                {
                    "manager": "x",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2020-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:z": {}}},
                }
            ],
        ),
    ),
    put(
        CM + "/a",
        cm(
            "a",
            {"k": "7"},
            managedFields=[
                {
                    "manager": "m" * 129,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2020-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:z": {}}},
                }
            ],
        ),
    ),
    put(
        CM + "/a",
        cm(
            "a",
            {"k": "7"},
            managedFields=[
                {"manager": "x", "operation": "Update", "apiVersion": "", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:z": {}}}}
            ],
        ),
    ),
    put(LEASES + "/l1", {"metadata": {"name": "l1"}, "spec": {"holderIdentity": "x"}}),
    put(LEASES + "/l2", {"metadata": {"name": "l2", "resourceVersion": "5"}, "spec": {"holderIdentity": "x"}}),
    put(LEASES + "/l3", {"metadata": {"name": "l3", "uid": "abc"}, "spec": {"holderIdentity": "x"}}),
    put(
        LEASES + "/l4",
        {
            "metadata": {
                "name": "l4",
                "deletionTimestamp": "2001-01-01T00:00:00Z",
                "generation": 4,
                "creationTimestamp": "2001-01-01T00:00:00Z",
            },
            "spec": {"holderIdentity": "x"},
        },
    ),
    put(LEASES + "/l5", {"metadata": {"name": "l5"}, "spec": {"holderIdentity": "x"}}, query="dryRun=All"),
    get(LEASES + "/l5"),
    put(LEASES + "/l1", {"metadata": {"name": "l1"}, "spec": {"holderIdentity": "x"}}),
    put(LEASES + "/l1", {"metadata": {"name": "l1", "resourceVersion": "{rv}"}, "spec": {"holderIdentity": "y"}}),
    put(LEASES + "/l1", {"metadata": {"name": "l1", "resourceVersion": "1"}, "spec": {"holderIdentity": "y"}}),
]

FINALIZERS = [
    post(CM, cm("a", {"k": "1"}, finalizers=["x/y", "x/z"])),
    delete(CM + "/a", query="dryRun=All"),
    delete(CM + "/a"),
    delete(CM + "/a"),
    delete(CM + "/a", {"propagationPolicy": "Foreground"}),
    delete(CM + "/a", {"propagationPolicy": "Orphan"}),
    delete(CM + "/a", {"propagationPolicy": "Background"}),
    put(CM + "/a", cm("a", {"k": "2"}, finalizers=["x/z", "x/y"])),
    put(CM + "/a", cm("a", {"k": "2"}, finalizers=["x/z", "x/y", "x/w"])),
    post(CM, cm("a")),
    merge(CM + "/a", {"metadata": {"finalizers": ["x/z", "q/q"]}}),
    merge(CM + "/a", {"metadata": {"finalizers": ["x/z"], "deletionTimestamp": None}}),
    merge(CM + "/a", {"metadata": {"deletionGracePeriodSeconds": 5}}),
    merge(CM + "/a", {"metadata": {"finalizers": []}}, query="dryRun=All"),
    get(CM + "/a"),
    merge(CM + "/a", {"metadata": {"finalizers": []}}),
    get(CM + "/a"),
    post(CM, cm("b", finalizers=["x/y"])),
    delete(CM + "/b"),
    strategic(CM + "/b", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"]}}),
    get(CM + "/b"),
    post(CM, cm("c", finalizers=["x/y"])),
    delete(CM + "/c"),
    put(CM + "/c", cm("c", {"k": "9"})),
    get(CM + "/c"),
    apply(CM + "/d", cm("d", {"k": "9"}, finalizers=["x/y"])),
    delete(CM + "/d"),
    apply(CM + "/d", cm("d", {"k": "9"})),
    get(CM + "/d"),
    post(
        DEPLOYMENTS,
        {
            "metadata": {"name": "dep"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        },
    ),
    delete(DEPLOYMENTS + "/dep", {"propagationPolicy": "Foreground"}),
    delete(DEPLOYMENTS + "/dep", {"propagationPolicy": "Orphan"}),
    delete(DEPLOYMENTS + "/dep", {"orphanDependents": False}),
    get(DEPLOYMENTS + "/dep"),
    post(CM, cm("o1")),
    delete(CM + "/o1", {"orphanDependents": True}),
    delete(CM + "/o1", {"orphanDependents": False}),
    post(CM, cm("o2")),
    delete(CM + "/o2", {"orphanDependents": True, "propagationPolicy": "Orphan"}),
    delete(CM + "/o2", {"propagationPolicy": "Wrong"}),
    delete(CM + "/o2", {"dryRun": ["x"]}),
    delete(CM + "/o2", query="propagationPolicy=Orphan&dryRun=All"),
    delete(CM + "/o2", query="propagationPolicy=Foreground"),
    merge(CM + "/o2", {"metadata": {"finalizers": None}}),
    post(CM, cm("o3", finalizers=["foregroundDeletion"])),
    delete(CM + "/o3"),
    merge(CM + "/o3", {"metadata": {"finalizers": None}}),
    post(CM, cm("o4", finalizers=["orphan"])),
    delete(CM + "/o4", {"propagationPolicy": "Background"}),
]

DELETE = [
    delete(CM + "/none"),
    post(CM, cm("a")),
    delete(CM + "/a", {"preconditions": {"uid": "u1"}}),
    delete(CM + "/a", {"preconditions": {"resourceVersion": "1"}}),
    delete(CM + "/a", {"preconditions": {"uid": ""}}),
    delete(CM + "/a", "{"),
    delete(CM + "/a", "[]"),
    delete(CM + "/a", "null"),
    delete(CM + "/a", {"kind": "Foo", "apiVersion": "v1"}),
    delete(CM + "/a", {"kind": "Pod", "apiVersion": "v1"}),
    delete(CM + "/a", {"kind": "DeleteOptions", "apiVersion": "foo/v1"}),
    delete(CM + "/a", {"kind": "DeleteOptions", "apiVersion": "apps/v1", "dryRun": ["All"]}),
    delete(CM + "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}),
    delete(CM + "/a", {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}),
    delete(CM + "/a", {"gracePeriodSeconds": "x"}),
    delete(CM + "/a", {"gracePeriodSeconds": 1.5}),
    delete(CM + "/a", {"gracePeriodSeconds": True}),
    delete(CM + "/a", {"dryRun": "All"}),
    delete(CM + "/a", {"preconditions": 3}),
    delete(CM + "/a", {"propagationPolicy": 3}),
    delete(CM + "/a", {"orphanDependents": "x"}),
    delete(CM + "/a", {"unknown": "x", "dryRun": ["All"]}),
    delete(CM + "/a", query="gracePeriodSeconds=x"),
    delete(CM + "/a", query="orphanDependents=maybe&dryRun=All"),
    delete(CM + "/a", query="dryRun=No"),
    delete(CM + "/a", query="propagationPolicy=No"),
    delete(CM + "/a", {"dryRun": ["All"]}, type="text/plain"),
    delete(CM + "/a", "dryRun: [All]\n", type=YAML),
    delete(CM + "/a", {}, query="dryRun=All", note="query does not count beside a body"),
    get(CM + "/a"),
    post(CM, cm("b")),
    delete(CM + "/b", {"preconditions": {"uid": "{uid}", "resourceVersion": "{rv}"}, "gracePeriodSeconds": -1}),
    post(CM, cm("b")),
    delete(CM + "/b", query="gracePeriodSeconds=0"),
    delete("/api/v1/namespaces/default"),
    delete("/api/v1/namespaces"),
]

COLLECTION = [
    *(post(CM, cm(f"c{i}", labels={"tier": "web" if i % 2 else "db"})) for i in range(6)),
    delete(CM, {"dryRun": ["All"], "propagationPolicy": "Background"}, query="labelSelector=tier=web"),
    get(CM, query="labelSelector=tier"),
    delete(CM, query="labelSelector=tier=web&dryRun=All"),
    delete(CM, query="fieldSelector=metadata.name=c0"),
    delete(CM, query="fieldSelector=spec.x=c0"),
    delete(CM, query="labelSelector=!!"),
    delete(CM, {"preconditions": {"uid": "x"}}, query="labelSelector=tier"),
    delete(CM, {"propagationPolicy": "x"}, query="labelSelector=tier"),
    delete(CM, query="labelSelector=tier&limit=2"),
    get(CM, query="labelSelector=tier"),
    delete(CM, query="labelSelector=tier&resourceVersionMatch=Exact"),
    delete(CM, query="labelSelector=tier&limit=x"),
    delete(CM, "[]", query="labelSelector=tier"),
    delete(CM, {"kind": "Foo", "apiVersion": "v1"}, query="labelSelector=tier"),
    delete(CM, query="labelSelector=tier"),
    get(CM, query="labelSelector=tier"),
    delete(SERVICES),
    delete(CM + "?watch=true"),
]

PODS_GRACE = [
    post(PODS, pod("p0")),
    delete(PODS + "/p0", query="dryRun=All"),
    delete(PODS + "/p0"),
    get(PODS + "/p0"),
    post(PODS, pod("p1", nodeName="n1")),
    delete(PODS + "/p1"),
    delete(PODS + "/p1"),
    delete(PODS + "/p1", {"gracePeriodSeconds": 60}),
    delete(PODS + "/p1", {"gracePeriodSeconds": 10}),
    delete(PODS + "/p1", {"gracePeriodSeconds": 10, "dryRun": ["All"]}),
    delete(PODS + "/p1", {"gracePeriodSeconds": 0, "dryRun": ["All"]}),
    delete(PODS + "/p1", {"gracePeriodSeconds": 0}),
    get(PODS + "/p1"),
    post(PODS, pod("p2", nodeName="n1", terminationGracePeriodSeconds=0)),
    delete(PODS + "/p2"),
    post(PODS, pod("p3", nodeName="n1")),
    delete(PODS + "/p3", {"gracePeriodSeconds": -5}),
    get(PODS + "/p3"),
    delete(PODS + "/p3", {"gracePeriodSeconds": 0}),
    post(PODS, {**pod("p4", nodeName="n1"), "metadata": {"name": "p4", "finalizers": ["x/y"]}}),
    delete(PODS + "/p4", {"gracePeriodSeconds": 0}),
    delete(PODS + "/p4"),
    delete(PODS + "/p4", {"propagationPolicy": "Foreground"}),
    delete(PODS + "/p4", {"propagationPolicy": "Background"}),
    merge(PODS + "/p4", {"metadata": {"finalizers": None}}),
    get(PODS + "/p4"),
    post(PODS, {**pod("p5", nodeName="n1"), "metadata": {"name": "p5", "finalizers": ["x/y"]}}),
    delete(PODS + "/p5", {"propagationPolicy": "Foreground"}),
    delete(PODS + "/p5", {"propagationPolicy": "Orphan"}),
    merge(PODS + "/p5", {"metadata": {"finalizers": None}}),
    get(PODS + "/p5"),
    delete(PODS + "/p5", {"gracePeriodSeconds": 0}),
    post(PODS, pod("p6", nodeName="n1")),
    merge(PODS + "/p6/status", {"status": {"phase": "Succeeded"}}),
    delete(PODS + "/p6"),
]

JSON_PATCHES = [
    post(CM, cm("a", {"k": "1", "a/b": "x", "m~n": "y"}, finalizers=["x/y"], labels={"l": "1"})),
    json_patch(CM + "/a", [{"op": "replace", "path": "/data/k", "value": "2"}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/data/k", "value": "3"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/data/zz"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/q/r", "value": "3"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/a~1b", "value": "3"}, {"op": "remove", "path": "/data/m~0n"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/metadata/finalizers/-", "value": "q/r"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/metadata/finalizers/9", "value": "q/r"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/metadata/finalizers/1"}]),
    json_patch(CM + "/a", [{"op": "bad", "path": "/data/k"}]),
    json_patch(CM + "/a", [{"path": "/data/k"}]),
    json_patch(CM + "/a", [{"op": "add", "value": 1}]),
    json_patch(CM + "/a", {"op": "add"}),
    json_patch(CM + "/a", "null"),
    json_patch(CM + "/a", "[null]"),
    json_patch(CM + "/a", "[1]"),
    json_patch(CM + "/a", "{"),
    json_patch(CM + "/a", ""),
    json_patch(CM + "/a", []),
    json_patch(CM + "/a", [{"op": "add", "path": "", "value": {}}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "", "value": {}}]),
    json_patch(CM + "/a", [{"op": "remove", "path": ""}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k", "value": 5}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k", "value": None}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/foo", "value": "bar"}]),
    json_patch(CM + "/a", [{"op": "move", "from": "/data/k", "path": "/data/kk"}]),
    json_patch(CM + "/a", [{"op": "copy", "from": "/data/none", "path": "/data/kk"}]),
    json_patch(CM + "/a", [{"op": "move", "from": "/data/none", "path": "/data/kk"}]),
    json_patch(CM + "/a", [{"op": "copy", "from": "/data/kk", "path": "/data/k"}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/data/none"}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/data/none", "value": None}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/data/none", "value": "x"}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/none/x", "value": "x"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/metadata/name", "value": "b"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/metadata/namespace", "value": "b"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/metadata/uid", "value": "b"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/kind", "value": "Secret"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/apiVersion", "value": "v2"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/kind"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/metadata"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/metadata/labels"}]),
    json_patch(CM + "/a", [{"op": "replace", "path": "/metadata", "value": "x"}]),
    json_patch(CM + "/a", [{"op": "test", "path": "/data/k", "value": "z"}] * 10001),
    json_patch(CM + "/none", [{"op": "add", "path": "/data/k", "value": "z"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k", "value": "z"}], query="force=true"),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k", "value": "z"}], query="fieldManager=x&dryRun=All"),
    json_patch(CM + "/a", [{"op": "add", "path": "/data/k", "value": "z"}], query="fieldManager=x"),
    json_patch(CM + "/a", [{"op": "add", "path": "data/k", "value": "z"}]),
    json_patch(CM + "/a", [{"op": "add", "path": "/metadata/finalizers/-1", "value": "q/r"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/metadata/finalizers/-1"}]),
    json_patch(CM + "/a", [{"op": "remove", "path": "/metadata/finalizers/01"}]),
]

MERGE_PATCHES = [
    post(CM, cm("a", {"k": "1", "l": "2"}, labels={"l": "1"})),
    merge(CM + "/a", {"data": {"k": None, "m": "3"}}),
    merge(CM + "/a", {"data": {"k": None}}, note="no-op"),
    merge(CM + "/a", {}),
    merge(CM + "/a", "[]"),
    merge(CM + "/a", "null"),
    merge(CM + "/a", '"x"'),
    merge(CM + "/a", "{"),
    merge(CM + "/a", ""),
    merge(CM + "/a", {"data": "x"}),
    merge(CM + "/a", {"data": {"k": 1}}),
    merge(CM + "/a", {"data": None}),
    merge(CM + "/a", {"metadata": None}),
    merge(CM + "/a", {"metadata": {"name": "b"}}),
    merge(CM + "/a", {"metadata": {"name": None}}),
    merge(CM + "/a", {"metadata": {"namespace": "b"}}),
    merge(CM + "/a", {"metadata": {"uid": "b"}}),
    merge(CM + "/a", {"metadata": {"uid": None}}),
    merge(CM + "/a", {"metadata": {"resourceVersion": "1"}}),
    merge(CM + "/a", {"metadata": {"resourceVersion": None}}),
    merge(CM + "/a", {"metadata": {"resourceVersion": "{rv}"}, "data": {"q": "1"}}),
    merge(CM + "/a", {"metadata": {"creationTimestamp": None}}),
    merge(CM + "/a", {"metadata": {"generation": 3}}),
    merge(CM + "/a", {"metadata": {"managedFields": None}}),
    merge(CM + "/a", {"data": {"k": "z"}}),
    merge(CM + "/a", {"metadata": {"managedFields": []}, "data": {"k": "zz"}}),
    merge(CM + "/a", {"metadata": {"managedFields": [{}]}}),
    merge(CM + "/a", {"kind": "Secret"}),
    merge(CM + "/a", {"apiVersion": "v2"}),
    merge(CM + "/a", {"kind": None}),
    merge(CM + "/a", {"apiVersion": None}),
    merge(CM + "/a", {"foo": "bar"}),
    merge(CM + "/a", {"metadata": {"ownerReferences": [OWNER, OWNER]}}),
    merge(CM + "/a", {"metadata": {"ownerReferences": None}}),
    merge(CM + "/none", {"data": {"k": "1"}}),
    merge(CM + "/a", {"data": {"k": "1"}}, query="force=true"),
    merge(CM + "/a", {"data": {"k": "1"}}, query="force=false"),
    merge(CM + "/a", {"data": {"k": "1"}}, query="fieldManager=" + "x" * 129),
    Step(method="PATCH", path=CM + "/a", body={"data": {}}, type="application/json"),
    Step(method="PATCH", path=CM + "/a", body={"data": {}}, type="application/merge-patch+json; charset=utf-8"),
    Step(method="PATCH", path=CM + "/a", body={"data": {}}, type="Application/Merge-Patch+JSON"),
    Step(method="PATCH", path=CM, body={"data": {}}, type=MERGE),
]

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "c1",
                "image": "i1",
                "ports": [{"containerPort": 53, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            },
            {"name": "c2", "image": "i2"},
        ]
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}


def spec(**template_spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": template_spec}}}


D = DEPLOYMENTS + "/d"
STRATEGIC_PATCHES = [
    post(DEPLOYMENTS, DEPLOYMENT),
    strategic(D, spec(containers=[{"name": "c1", "ports": [{"containerPort": 53, "protocol": "UDP"}]}])),
    strategic(D, spec(containers=[{"name": "c1", "env": [{"name": "B", "$patch": "delete"}, {"name": "C", "value": "3"}]}])),
    strategic(D, spec(containers=[{"name": "c1", "env": [{"$patch": "replace"}, {"name": "Z", "value": "9"}]}])),
    strategic(D, spec(containers=[{"image": "nokey"}])),
    strategic(D, spec(containers=[{"name": "c3", "image": "i3"}])),
    strategic(D, spec(**{"$setElementOrder/containers": [{"name": "c3"}, {"name": "c1"}, {"name": "c2"}]})),
    strategic(D, spec(**{"$setElementOrder/containers": [{"name": "c3"}, {"name": "c1"}], "containers": [{"name": "c2", "image": "x"}]})),
    strategic(D, spec(containers=[{"name": "c2", "$patch": "delete"}, {"name": "c3", "$patch": "delete"}])),
    strategic(D, spec(containers=[{"name": "c1", "$patch": "merge", "image": "x"}])),
    strategic(D, spec(containers=[{"name": "c1", "$patch": "bad"}])),
    strategic(D, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    strategic(D, {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}),
    strategic(D, {"spec": {"strategy": {"$retainKeys": "x", "type": "Recreate"}}}),
    strategic(D, {"spec": {"strategy": {"$patch": "replace", "type": "RollingUpdate"}}}),
    strategic(D, {"spec": {"strategy": {"$patch": "delete"}}}),
    strategic(D, {"spec": {"strategy": {"$patch": "merge"}}}),
    strategic(D, {"spec": {"strategy": {"$patch": 3}}}),
    strategic(D, {"$patch": "delete"}),
    strategic(D, {"$patch": "replace", "metadata": {"name": "d"}}),
    strategic(D, {"metadata": {"finalizers": ["a/b", "c/d"]}}),
    strategic(D, {"metadata": {"finalizers": ["e/f"]}}),
    strategic(D, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}}),
    strategic(D, {"metadata": {"$deleteFromPrimitiveList/finalizers": "a/b"}}),
    strategic(D, {"metadata": {"$deleteFromPrimitiveList": ["a/b"]}}),
    strategic(D, {"metadata": {"$setElementOrder/finalizers": ["e/f", "c/d"]}}),
    strategic(D, {"metadata": {"$setElementOrder/finalizers": ["e/f", "c/d"], "finalizers": ["z/z"]}}),
    strategic(D, {"metadata": {"$setElementOrder": ["e/f", "c/d"]}}),
    strategic(D, {"metadata": {"finalizers": None}}),
    strategic(D, {"metadata": {"labels": {"x": "y"}, "annotations": {"q": None}}}),
    strategic(D, {"metadata": {"labels": {"$patch": "replace", "z": "w"}}}),
    strategic(D, {"metadata": {"labels": "x"}}),
    strategic(D, {"foo": "bar"}),
    strategic(D, {"spec": {"foo": {"x": 1}}}),
    strategic(D, {"spec": {"replicas": "x"}}),
    strategic(D, {"spec": {"replicas": None}}),
    strategic(D, {"spec": {"replicas": 3}}),
    strategic(D, {"spec": {"template": {"spec": {"containers": None}}}}),
    strategic(D, {"spec": None}),
    strategic(D, {"spec": {"template": {"spec": {"containers": [["x"]]}}}}),
    strategic(D, {"spec": {"template": {"spec": {"containers": ["x"]}}}}),
    strategic(D, {"spec": {"template": {"spec": {"containers": [None]}}}}),
    strategic(D, {"spec": {"template": {"spec": {"containers": []}}}}),
    strategic(D, {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}),
    strategic(D, {"spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}}}),
    strategic(
        D, {"spec": {"template": {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}}}
    ),
    strategic(D, {"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}}),
    strategic(D, {"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}}),
    strategic(D, "[]"),
    strategic(D, "null"),
    strategic(D, "{"),
    strategic(D, {"metadata": {"name": "x"}}),
    strategic(D, {"kind": "ReplicaSet"}),
    strategic(D, {"apiVersion": "apps/v2"}),
    strategic(DEPLOYMENTS + "/none", {"spec": {"replicas": 1}}),
    strategic(D, {"status": {"replicas": 5}}),
    strategic(D + "/status", {"status": {"replicas": 5, "conditions": [{"type": "Available", "status": "True"}]}, "spec": {"replicas": 9}}),
    strategic(D + "/status", {"status": {"conditions": [{"type": "Progressing", "status": "True"}]}, "metadata": {"labels": {"st": "1"}}}),
    strategic(D + "/status", {"status": {"conditions": [{"type": "Progressing", "$patch": "delete"}]}}),
]


APPLY_STEPS = [
    apply(CM + "/a", cm("a", {"k": "1"})),
    apply(CM + "/a", cm("a", {"k": "1"}), note="no-op"),
    apply(CM + "/a", cm("a", {"k": "2"})),
    apply(CM + "/a", cm("a", {"k": "3"}), "m2"),
    apply(CM + "/a", cm("a", {"k": "2"}), "m2"),
    apply(CM + "/a", cm("a", {"k": "4"}), "m1"),
    apply(CM + "/a", cm("a", {"k": "4"}), "m1", "force=true"),
    apply(CM + "/a", cm("a"), "m1"),
    apply(CM + "/a", cm("a", {"j": "1"}), "m2"),
    apply(CM + "/a", cm("a", {}), "m2"),
    apply(CM + "/a", {"apiVersion": "v1", "kind": "ConfigMap"}, "m2"),
    apply(CM + "/a", {}, "m2"),
    apply(CM + "/a", "", "m2"),
    apply(CM + "/a", "null", "m2"),
    apply(CM + "/a", "[]", "m2"),
    apply(CM + "/a", "x: [", "m2"),
    apply(CM + "/a", "apiVersion: v1\nkind: ConfigMap\ndata: {y: 'z'}\n", "m2"),
    Step(method="PATCH", path=CM + "/a", body=cm("a"), type=APPLY),
    apply(CM + "/a", cm("b"), "m2"),
    apply(CM + "/a", cm("a", namespace="zz"), "m2"),
    apply(CM + "/a", cm("a", uid="zz"), "m2"),
    apply(CM + "/a", cm("a", resourceVersion="1"), "m2"),
    apply(CM + "/a", cm("a", {"q": "r"}, resourceVersion="{rv}"), "m2"),
    apply(CM + "/a", cm("a", {"q": "r"}, managedFields=[]), "m2"),
    apply(CM + "/a", cm("a", {"q": "r"}, managedFields=[{"manager": "x"}]), "m2"),
    apply(CM + "/a", cm("a", {"q": "r"}, managedFields=None), "m2"),
    apply(CM + "/new", cm("new", uid="zz"), "m2"),
    apply(CM + "/new", cm("new", resourceVersion="1"), "m2"),
    apply(CM + "/new2", cm("new2", creationTimestamp="2020-01-01T00:00:00Z", deletionTimestamp="2020-01-01T00:00:00Z"), "m2"),
    apply(CM + "/new3", cm("new3", {"a": "b"}), "m2", "dryRun=All"),
    get(CM + "/new3"),
    apply(CM + "/gen", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}, "m2"),
    apply(CM + "/a", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, "m2"),
    apply(CM + "/a", {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}, "m2"),
    apply(CM + "/a", {"kind": "ConfigMap", "metadata": {"name": "a"}}, "m2"),
    apply(CM + "/a", {**cm("a"), "foo": "bar"}, "m2"),
    apply(CM + "/a", {**cm("a"), "data": {"k": 1}}, "m2"),
    apply(CM + "/a", {**cm("a"), "data": "x"}, "m2"),
    apply(CM + "/a", {**cm("a"), "data": None}, "m2"),
    apply(CM + "/a", {**cm("a"), "data": {"k": None}}, "m2", "force=true"),
    apply(CM + "/a", cm("a", labels={"a": "b"}, finalizers=["x/y"]), "m3"),
    apply(CM + "/a", cm("a", labels={"a": "b"}, finalizers=["x/z"]), "m4"),
    apply(CM + "/a", cm("a", labels={"a": "b"}), "m3"),
    apply(CM + "/a", cm("a", finalizers=[]), "m3"),
    apply(CM + "/a", cm("a", finalizers=[]), "m3"),
    apply(CM + "/a", cm("a"), "m4"),
    post(CM, cm("t", {"k": "1"}), query="fieldManager=tool"),
    apply(CM + "/t", cm("t", {"k": "2"}), "tool"),
    apply(CM + "/t", cm("t", {"k": "1"}), "tool"),
    apply(CM + "/t", cm("t", {"k": "1"}), "m" * 128),
    apply(CM + "/t", cm("t", {"k": "1"}), "m" * 129),
    apply(CM + "/t", cm("t", {"k": "1"}), "a%0Ab"),
    apply(DEPLOYMENTS + "/d", DEPLOYMENT),
    apply(DEPLOYMENTS + "/d", DEPLOYMENT),
    apply(DEPLOYMENTS + "/d", {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 2}}, "m2"),  # type: ignore[dict-item]
    apply(DEPLOYMENTS + "/d", {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 3}}, "m1"),  # type: ignore[dict-item]
    apply(
        DEPLOYMENTS + "/d",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"template": {"spec": {"containers": [{"name": "c1", "ports": [{"containerPort": 53, "protocol": "UDP"}]}]}}},
        },
        "m3",
    ),
    apply(
        DEPLOYMENTS + "/d",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "template": {"spec": {"containers": [{"name": "c1", "ports": [{"containerPort": 54}]}, {"name": "c1", "image": "q"}]}}
            },
        },
        "m3",
    ),
    apply(
        DEPLOYMENTS + "/d",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"template": {"spec": {"containers": [{"name": "c1", "ports": [{"containerPort": 54}]}]}}},
        },
        "m3",
    ),
    apply(
        DEPLOYMENTS + "/d",
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"image": "c1"}]}}}},
        "m3",
    ),
    apply(
        DEPLOYMENTS + "/d/status", {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}, "spec": {"replicas": 7}}, "m3"
    ),
    apply(DEPLOYMENTS + "/d/status", {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}}, "m3"),
    apply(DEPLOYMENTS + "/none/status", {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}}, "m3"),
    apply(DEPLOYMENTS + "/d", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 4}}, "m5"),
    apply(
        DEPLOYMENTS + "/d/scale",
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 8}},
        "m6",
    ),
    get(DEPLOYMENTS + "/d"),
]

SCALE = [
    post(DEPLOYMENTS, DEPLOYMENT),
    get(D + "/scale"),
    put(D + "/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}}),
    put(D + "/scale", {"metadata": {"name": "d", "namespace": "{ns}", "resourceVersion": "1"}, "spec": {"replicas": 2}}),
    put(D + "/scale", {"metadata": {"name": "x"}, "spec": {"replicas": 2}}),
    put(D + "/scale", {"metadata": {}, "spec": {"replicas": 2}}),
    put(D + "/scale", {"metadata": {"name": "d", "uid": "x"}, "spec": {"replicas": 2}}),
    put(D + "/scale", {"metadata": {"name": "d"}, "spec": {"replicas": -2}}),
    put(D + "/scale", {"metadata": {"name": "d"}}),
    put(D + "/scale", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}),
    put(D + "/scale", {"apiVersion": "extensions/v1beta1", "kind": "Scale", "metadata": {"name": "d"}}),
    put(D + "/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 4}}, query="dryRun=All"),
    merge(D + "/scale", {"spec": {"replicas": 5}}),
    merge(D + "/scale", {"spec": {"replicas": 5}, "metadata": {"labels": {"x": "y"}}}),
    merge(D + "/scale", {"spec": {"replicas": "x"}}),
    merge(D + "/scale", {"spec": {"foo": "x"}}),
    merge(D + "/scale", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 6}}),
    strategic(D + "/scale", {"spec": {"replicas": 6}}),
    json_patch(D + "/scale", [{"op": "replace", "path": "/spec/replicas", "value": 7}]),
    json_patch(D + "/scale", [{"op": "remove", "path": "/spec/replicas"}]),
    json_patch(D + "/scale", [{"op": "test", "path": "/spec/replicas", "value": 9}]),
    get(D + "/scale"),
    get(D),
    get(DEPLOYMENTS + "/none/scale"),
    put(DEPLOYMENTS + "/none/scale", {"metadata": {"name": "none"}, "spec": {"replicas": 2}}),
    merge(DEPLOYMENTS + "/none/scale", {"spec": {"replicas": 2}}),
    delete(D + "/scale"),
    post(D + "/scale", {"metadata": {"name": "d"}}),
]

POD_SUBRESOURCES = [
    post(PODS, pod("p")),
    post(PODS + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}, query="dryRun=All"),
    get(PODS + "/p"),
    post(PODS + "/p/binding", {"metadata": {"name": "q"}, "target": {"kind": "Node", "name": "n1"}}),
    post(PODS + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n1"}}),
    post(PODS + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node"}}),
    post(PODS + "/p/binding", {"metadata": {"name": "p"}}),
    post(PODS + "/p/binding", {"metadata": {"name": "p", "uid": "x"}, "target": {"name": "n1"}}),
    post(PODS + "/none/binding", {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "n1"}}),
    post(
        PODS + "/p/binding",
        {"metadata": {"name": "p", "annotations": {"a": "b"}, "labels": {"x": "y"}}, "target": {"kind": "Node", "name": "n1"}},
    ),
    get(PODS + "/p"),
    post(PODS + "/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}}),
    post(PODS, pod("p2")),
    post("/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "p2"}, "target": {"kind": "Node", "name": "n1"}}),
    post("/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "n1"}}),
    post("/api/v1/namespaces/{ns}/bindings", {"metadata": {}, "target": {"kind": "Node", "name": "n1"}}),
    get(PODS + "/p/binding"),
    get(PODS + "/p/status"),
    put(PODS + "/p/status", pod("p", nodeName="n5")),
    merge(
        PODS + "/p/status",
        {"status": {"phase": "Running", "podIP": "10.0.0.1"}, "spec": {"priority": 7}, "metadata": {"labels": {"z": "1"}}},
    ),
    merge(PODS + "/p/status", {"status": {"phase": "Running"}}, note="no-op"),
    merge(PODS + "/p", {"status": {"phase": "Failed"}}),
    merge(PODS + "/p/status", {"status": {"phase": "Running"}}, query="dryRun=All"),
    post(PODS + "/p/eviction", {"metadata": {"name": "p"}}, query="dryRun=All"),
    post(PODS + "/p/eviction", {"metadata": {"name": "q"}}),
    post(PODS + "/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "x"}}}),
    post(PODS + "/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}),
    post(PODS + "/none/eviction", {"metadata": {"name": "none"}}),
    post(PODS + "/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}),
    get(PODS + "/p"),
    get(PODS + "/p2/log"),
    get(PODS + "/none/log"),
    get(PODS + "/p2/log", query="container=zz"),
    get(PODS + "/p2/log", query="tailLines=-1"),
    get(PODS + "/p2/log", query="limitBytes=0"),
    get(PODS + "/p2/log", query="sinceSeconds=0"),
    get(PODS + "/p2/log", query="sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z"),
    get(PODS + "/p2/log", query="tailLines=x"),
    post(PODS + "/p2/exec", None, query="command=ls"),
    post(PODS + "/p2/exec", None, query="command=ls&stdout=true&container=zz"),
    post(PODS + "/none/exec", None, query="command=ls&stdout=true"),
    post(PODS + "/p2/exec", None),
    post(PODS + "/p2/attach", None),
]

FIELD_VALIDATION_FREE = [
    post(CM, {**cm("a"), "foo": "bar"}),
    post(CM, '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"dup"},"data":{"a":"1","a":"2"}}'),
    post(CM, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: '1', a: '2'}\n", type=YAML),
]


def _generation(path: str, body: dict[str, Any], change: dict[str, Any], status: dict[str, Any]) -> list[Step]:
    """What raises the generation of a kind, and what its endpoints leave alone."""
    name = body["metadata"]["name"]
    item = f"{path}/{name}"
    return [
        post(path, body),
        merge(item, {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}, "generation": 7}}),
        merge(item, change),
        merge(item, change, note="no-op"),
        merge(item, {"status": status}),
        merge(f"{item}/status", {"status": status, **change, "metadata": {"labels": {"l": "2"}, "annotations": {"a": "2"}}}),
        merge(f"{item}/status", {"status": status}, note="no-op"),
        get(item),
        delete(item, {"propagationPolicy": "Foreground"}),
        merge(item, {"metadata": {"finalizers": None}}),
    ]


_SELECTED: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
_JOB = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
APPS = "/apis/apps/v1/namespaces/{ns}"
GENERATIONS = [
    *_generation(DEPLOYMENTS, DEPLOYMENT, {"spec": {"replicas": 3}}, {"observedGeneration": 1}),
    *_generation(f"{APPS}/replicasets", {"metadata": {"name": "r"}, "spec": _SELECTED}, {"spec": {"replicas": 3}}, {"replicas": 1}),
    *_generation(
        f"{APPS}/daemonsets",
        {"metadata": {"name": "r"}, "spec": _SELECTED},
        {"spec": {"minReadySeconds": 3}},
        {"desiredNumberScheduled": 1},
    ),
    *_generation(
        f"{APPS}/statefulsets",
        {"metadata": {"name": "r"}, "spec": {**_SELECTED, "serviceName": "s"}},
        {"spec": {"replicas": 3}},
        {"replicas": 1},
    ),
    *_generation("/apis/batch/v1/namespaces/{ns}/jobs", _JOB, {"spec": {"backoffLimit": 3}}, {"active": 1}),
    *_generation(
        "/api/v1/namespaces/{ns}/replicationcontrollers",
        {"metadata": {"name": "r"}, "spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
        {"spec": {"replicas": 3}},
        {"replicas": 1},
    ),
    *_generation(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        {"metadata": {"name": "i"}, "spec": {"defaultBackend": _BACKEND}},
        {"spec": {"defaultBackend": {"service": {"name": "t", "port": {"number": 80}}}}},
        {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}},
    ),
    *_generation(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        {"metadata": {"name": "n"}, "spec": {"podSelector": {}}},
        {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
        {},
    ),
    *_generation(
        "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers",
        {
            "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
        },
        {"spec": {"maxReplicas": 4}},
        {"currentReplicas": 1, "desiredReplicas": 2},
    ),
    *_generation(
        "/api/v1/namespaces/{ns}/persistentvolumeclaims",
        {"metadata": {"name": "c"}, "spec": _CLAIM},
        {"spec": {"volumeName": "v"}},
        {"phase": "Bound"},
    ),
    *_generation(
        "/api/v1/namespaces/{ns}/resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}},
        {"spec": {"hard": {"pods": "4"}}},
        {"hard": {"pods": "3"}, "used": {"pods": "1"}},
    ),
    *_generation(
        SERVICES,
        {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
        {"spec": {"ports": [{"port": 81}]}},
        {},
    ),
    *_generation(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}}, {"spec": {"holderIdentity": "y"}}, {}),
]

ALL: dict[str, list[Step]] = {
    "generation": GENERATIONS,
    "create": CREATE,
    "update": UPDATE,
    "finalizers": FINALIZERS,
    "delete": DELETE,
    "collection": COLLECTION,
    "grace": PODS_GRACE,
    "json-patch": JSON_PATCHES,
    "merge-patch": MERGE_PATCHES,
    "strategic": STRATEGIC_PATCHES,
    "apply": APPLY_STEPS,
    "scale": SCALE,
    "pods": POD_SUBRESOURCES,
    "validation": FIELD_VALIDATION_FREE,
}
