"""Subresources of pods, validation of fields, and what raises the generation of each kind."""

from __future__ import annotations

from typing import Any

from tests.differential_writes.client import YAML, Step
from tests.differential_writes.steps import (
    CM,
    DEPLOYMENT,
    DEPLOYMENTS,
    LEASES,
    PODS,
    SERVICES,
    TEMPLATE,
    cm,
    delete,
    get,
    merge,
    pod,
    post,
    put,
)

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
