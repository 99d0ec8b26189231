"""Tables as ``kubectl get`` shows them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.machinery import table
from apiserver.machinery.table import IncludeObject
from apiserver.resources.columns import Printer, printer_for
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
CREATED = "2023-11-14T22:08:10Z"
META = {"name": "a", "namespace": "n", "creationTimestamp": CREATED}
TABLE = ResourceTable("1.37")


def printer(group: str, resource: str, minor: int = 37) -> Printer:
    info = TABLE.preferred(group, resource)
    assert info is not None
    return printer_for(info, minor)


def cells(group: str, resource: str, obj: dict[str, Any], minor: int = 37) -> dict[str, Any]:
    found = printer(group, resource, minor)
    values = found.cells({"metadata": META, **obj}, NOW)
    return dict(zip([c.name for c in found.columns], values, strict=True))


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_resource_prints_an_object_that_says_nothing(version: str) -> None:
    served = ResourceTable(version)
    for info in served:
        found = printer_for(info, served.minor)
        assert len(found.cells({"metadata": META}, NOW)) == len(found.columns)
        assert len(found.cells({}, NOW)) == len(found.columns)
        assert [c.format for c in found.columns].count("name") == {"VolumeAttachment": 2, "StorageVersionMigration": 0}.get(info.kind, 1)
        assert found.definitions()[0].keys() == {"name", "type", "format", "description", "priority"}


def pod(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c"}, {"name": "d"}], **fields.pop("spec", {})}, **fields}


def container(state: str = "running", *, ready: bool = False, restarts: int = 0, **detail: Any) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": restarts, "state": {state: detail}}


RUNNING = container(ready=True)
INIT = {"initContainers": [{"name": "i"}, {"name": "j"}]}
SIDECAR = {"initContainers": [{"name": "c", "restartPolicy": "Always"}]}


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        (pod(status={"phase": "Pending"}), "0/2", "Pending", "0"),
        (pod(), "0/2", "", "0"),
        (pod(status={"phase": "Running", "containerStatuses": [RUNNING, RUNNING]}), "2/2", "Running", "0"),
        (pod(status={"phase": "Running", "containerStatuses": [RUNNING, container()]}), "1/2", "Running", "0"),
        (pod(status={"phase": "Failed", "reason": "Evicted"}), "0/2", "Evicted", "0"),
        (
            pod(status={"phase": "Running", "containerStatuses": [RUNNING, container("waiting", reason="CrashLoopBackOff", restarts=4)]}),
            "1/2",
            "CrashLoopBackOff",
            "4",
        ),
        (
            pod(status={"phase": "Succeeded", "containerStatuses": [container("terminated", reason="Completed", exitCode=0)]}),
            "0/2",
            "Completed",
            "0",
        ),
        (pod(status={"phase": "Failed", "containerStatuses": [container("terminated", exitCode=3)]}), "0/2", "ExitCode:3", "0"),
        (pod(status={"phase": "Failed", "containerStatuses": [container("terminated", exitCode=137, signal=9)]}), "0/2", "Signal:9", "0"),
        (
            pod(status={"phase": "Running", "containerStatuses": [container("terminated", reason="Completed", exitCode=0), RUNNING]}),
            "1/2",
            "NotReady",
            "0",
        ),
        (
            pod(
                status={
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [container("terminated", reason="Completed", exitCode=0), RUNNING],
                }
            ),
            "1/2",
            "Running",
            "0",
        ),
        (pod(metadata={**META, "deletionTimestamp": CREATED}, status={"phase": "Running"}), "0/2", "Terminating", "0"),
        (pod(metadata={**META, "deletionTimestamp": CREATED}, status={"phase": "Running", "reason": "NodeLost"}), "0/2", "Unknown", "0"),
        (pod(metadata={**META, "deletionTimestamp": CREATED}, status={"phase": "Succeeded"}), "0/2", "Succeeded", "0"),
        (
            pod(status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/2",
            "SchedulingGated",
            "0",
        ),
        (pod(spec=INIT, status={"phase": "Pending", "initContainerStatuses": [container(), container("waiting")]}), "0/2", "Init:0/2", "0"),
        (
            pod(
                spec=INIT,
                status={
                    "phase": "Pending",
                    "initContainerStatuses": [container("terminated", exitCode=0), container("waiting", reason="PodInitializing")],
                },
            ),
            "0/2",
            "Init:1/2",
            "0",
        ),
        (
            pod(
                spec=INIT,
                status={"phase": "Pending", "initContainerStatuses": [container("terminated", exitCode=1, reason="Error", restarts=2)]},
            ),
            "0/2",
            "Init:Error",
            "2",
        ),
        (
            pod(spec=INIT, status={"phase": "Pending", "initContainerStatuses": [container("waiting", reason="CrashLoopBackOff")]}),
            "0/2",
            "Init:CrashLoopBackOff",
            "0",
        ),
        (
            pod(
                spec=SIDECAR,
                status={
                    "phase": "Running",
                    "initContainerStatuses": [{**container(ready=True, restarts=1), "started": True}],
                    "containerStatuses": [RUNNING, RUNNING],
                },
            ),
            "3/3",
            "Running",
            "1",
        ),
    ],
)
def test_pods_say_how_their_containers_are(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    found = cells("", "pods", obj)
    assert (found["Ready"], found["Status"], found["Restarts"]) == (ready, status, restarts)


def test_pods_say_when_they_restarted_and_where_they_run() -> None:
    last = {"terminated": {"finishedAt": "2023-11-14T22:10:20Z"}}
    obj = pod(
        spec={"nodeName": "node-a", "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]},
        status={
            "phase": "Running",
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "conditions": [{"type": "x", "status": "True"}],
            "containerStatuses": [{**RUNNING, "restartCount": 3, "lastState": last}],
        },
    )
    assert cells("", "pods", obj) == {
        "Name": "a",
        "Ready": "1/2",
        "Status": "Running",
        "Restarts": "3 (3m ago)",
        "Age": "5m10s",
        "IP": "10.0.0.1",
        "Node": "node-a",
        "Nominated Node": "<none>",
        "Readiness Gates": "1/2",
    }


def test_pods_that_are_done_have_a_row_condition() -> None:
    conditions = printer("", "pods").conditions
    assert conditions(pod(status={"phase": "Running"})) == []
    assert conditions(pod(status={"phase": "Failed"})) == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]


TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:1"}]}}


def test_workloads_count_their_replicas() -> None:
    spec = {"replicas": 3, "selector": {"matchLabels": {"d": "e", "a": "c"}}, "template": TEMPLATE}
    status = {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1}
    wide = {"Containers": "c,d", "Images": "i:1,j:1"}
    assert cells("apps", "deployments", {"spec": spec, "status": status}) == {
        "Name": "a", "Ready": "2/3", "Up-to-date": 1, "Available": 0, "Age": "5m10s", **wide, "Selector": "a=c,d=e",
    }  # fmt: skip
    assert cells("apps", "replicasets", {"spec": spec, "status": status}) == {
        "Name": "a", "Desired": 3, "Current": 3, "Ready": 2, "Age": "5m10s", **wide, "Selector": "a=c,d=e",
    }  # fmt: skip
    assert cells("", "replicationcontrollers", {"spec": {**spec, "selector": {"x": "y"}}})["Selector"] == "x=y"
    assert cells("apps", "statefulsets", {"spec": spec, "status": status})["Ready"] == "2/3"
    found = cells("apps", "daemonsets", {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}, "status": {"numberReady": 1}})
    assert (found["Ready"], found["Node Selector"], found["Selector"]) == (1, "disk=ssd", "<none>")


def test_a_revision_names_its_controller() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
    found = cells("apps", "controllerrevisions", {"metadata": {**META, "ownerReferences": [owner]}, "revision": 4})
    assert (found["Controller"], found["Revision"]) == ("statefulset.apps/db", 4)


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"completions": 5}, {"succeeded": 2, "startTime": CREATED}, ("Running", "2/5", "5m10s")),
        ({"parallelism": 3}, {}, ("Running", "0/1 of 3", "")),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, ("Failed", "0/1", "")),
        ({}, {"conditions": [{"type": "Suspended", "status": "True"}]}, ("Suspended", "0/1", "")),
        (
            {"completions": 1},
            {
                "succeeded": 1,
                "startTime": CREATED,
                "completionTime": "2023-11-14T22:08:15Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
            ("Complete", "1/1", "5s"),
        ),
    ],
)
def test_jobs_say_how_far_they_are(spec: dict[str, Any], status: dict[str, Any], shown: tuple[str, str, str]) -> None:
    found = cells("batch", "jobs", {"spec": spec, "status": status})
    assert (found["Status"], found["Completions"], found["Duration"]) == shown


def test_columns_follow_the_kubernetes_version() -> None:
    assert "Status" not in cells("batch", "jobs", {}, minor=30)
    assert "Timezone" not in cells("batch", "cronjobs", {}, minor=25)
    assert list(cells("", "resourcequotas", {}, minor=32)) == ["Name", "Age", "Request", "Limit"]
    assert list(cells("", "resourcequotas", {}, minor=33)) == ["Name", "Request", "Limit", "Age"]
    assert list(cells("", "serviceaccounts", {}, minor=34)) == ["Name", "Secrets", "Age"]
    assert list(cells("", "serviceaccounts", {}, minor=35)) == ["Name", "Age"]


def test_cron_jobs() -> None:
    found = cells(
        "batch", "cronjobs", {"spec": {"schedule": "* * * * *", "suspend": False}, "status": {"active": [{}], "lastScheduleTime": CREATED}}
    )
    assert (found["Schedule"], found["Timezone"], found["Suspend"], found["Active"], found["Last Schedule"]) == (
        "* * * * *", "<none>", "False", 1, "5m10s",
    )  # fmt: skip


def metric(type_: str, field: str, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": type_, field: {"target": target, **more}}


@pytest.mark.parametrize(
    ("metrics", "current", "shown"),
    [
        ([], [], "<none>"),
        ([metric("Resource", "resource", {"averageUtilization": 80}, name="cpu")], [], "cpu: <unknown>/80%"),
        (
            [metric("Resource", "resource", {"averageUtilization": 80}, name="cpu")],
            [{"type": "Resource", "resource": {"current": {"averageUtilization": 0}}}],
            "cpu: 0%/80%",
        ),
        ([metric("Pods", "pods", {"averageValue": "10"})], [{"pods": {"current": {"averageValue": "5"}}}], "5/10"),
        ([metric("External", "external", {"averageValue": "10"})], [], "<unknown>/10 (avg)"),
        ([metric("Object", "object", {"value": "10"})] * 4, [], "<unknown>/10, <unknown>/10 + 2 more..."),
        ([{"type": "Odd"}], [], "<unknown type>"),
    ],
)
def test_autoscalers_show_their_metrics(metrics: list[Any], current: list[Any], shown: str) -> None:
    spec = {"metrics": metrics, "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}
    found = cells("autoscaling", "horizontalpodautoscalers", {"spec": spec, "status": {"currentMetrics": current}})
    assert (found["Reference"], found["Targets"], found["MinPods"], found["MaxPods"]) == ("Deployment/web", shown, "<unset>", 3)


def test_nodes_say_whether_they_are_ready_and_what_they_are_for() -> None:
    obj = {
        "metadata": {**META, "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "", "kubernetes.io/role": "db"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "nodeInfo": {"kubeletVersion": "v1.30.0"},
            "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    found = cells("", "nodes", obj)
    assert (found["Status"], found["Roles"], found["Version"]) == ("NotReady,SchedulingDisabled", "db,worker", "v1.30.0")
    assert (found["Internal-IP"], found["External-IP"], found["OS-Image"]) == ("10.0.0.1", "<none>", "<unknown>")
    assert cells("", "nodes", {})["Status"] == "Unknown"


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        (
            {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}]},
            {},
            ("10.0.0.1", "<none>", "80/TCP"),
        ),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}, {}, ("<none>", "<none>", "80:30080/TCP")),
        ({"type": "ExternalName", "externalName": "x.test"}, {}, ("<none>", "x.test", "<none>")),
        ({"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["1.2.3.4"]}, {}, ("None", "1.2.3.4", "<none>")),
        ({"type": "LoadBalancer"}, {}, ("<none>", "<pending>", "<none>")),
        (
            {"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]},
            {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "1.1.1.1"}]}},
            ("<none>", "1.1.1.1,lb,9.9.9.9", "<none>"),
        ),
    ],
)
def test_services_say_where_they_are_reached(spec: dict[str, Any], status: dict[str, Any], shown: tuple[str, str, str]) -> None:
    found = cells("", "services", {"spec": spec, "status": status})
    assert (found["Cluster-IP"], found["External-IP"], found["Port(s)"]) == shown


def test_endpoints_show_the_first_three() -> None:
    subsets = [{"addresses": [{"ip": "10.1.1.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 81}]}]
    assert cells("", "endpoints", {"subsets": subsets})["Endpoints"] == "10.1.1.1:80,[fd00::1]:80,10.1.1.1:81 + 1 more..."
    assert cells("", "endpoints", {"subsets": [{"addresses": [{"ip": "10.1.1.1"}]}]})["Endpoints"] == "10.1.1.1"
    assert cells("", "endpoints", {})["Endpoints"] == "<none>"
    found = cells("discovery.k8s.io", "endpointslices", {"ports": [{"port": None, "name": "x"}, {}], "endpoints": []})
    assert (found["Ports"], found["Endpoints"]) == ("x,*", "<unset>")


def test_ingresses() -> None:
    rules = [{"host": f"{h}.test"} for h in "abcd"]
    found = cells("networking.k8s.io", "ingresses", {"spec": {"rules": rules, "tls": [{}]}})
    assert (found["Class"], found["Hosts"], found["Ports"]) == ("<none>", "a.test,b.test,c.test + 1 more...", "80, 443")
    assert cells("networking.k8s.io", "ingresses", {"spec": {"rules": [{}]}})["Hosts"] == "*"


def test_events_of_both_groups_read_the_same() -> None:
    old = {
        "firstTimestamp": CREATED, "lastTimestamp": "2023-11-14T22:12:20Z", "count": 3, "type": "Normal", "reason": "Started",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "source": {"component": "kubelet", "host": "h"}, "message": " it began\n",
    }  # fmt: skip
    new = {
        "deprecatedFirstTimestamp": CREATED, "deprecatedLastTimestamp": "2023-11-14T22:12:20Z", "deprecatedCount": 3, "type": "Normal",
        "reason": "Started", "regarding": old["involvedObject"], "deprecatedSource": old["source"], "note": old["message"],
    }  # fmt: skip
    assert list(cells("", "events", old).values()) == [
        "60s", "Normal", "Started", "pod/p", "spec.containers{c}", "kubelet, h", "it began", "5m10s", 3, "a",
    ]  # fmt: skip
    assert cells("events.k8s.io", "events", new) == cells("", "events", old)
    series = {"eventTime": "2023-11-14T22:08:10.000000Z", "series": {"count": 4, "lastObservedTime": "2023-11-14T22:12:20.000000Z"}}
    assert (cells("", "events", series)["Count"], cells("", "events", series)["Last Seen"]) == (4, "60s")


def test_volumes_and_claims() -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany", "ReadWriteOnce"], "claimRef": {"namespace": "n", "name": "c"}}
    found = cells("", "persistentvolumes", {"spec": spec, "status": {"phase": "Bound"}})
    assert (found["Capacity"], found["Access Modes"], found["Claim"], found["Status"]) == ("1Gi", "RWO,ROX", "n/c", "Bound")
    assert found["VolumeAttributesClass"] == "<unset>"
    pending = cells("", "persistentvolumeclaims", {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}})
    assert (pending["Capacity"], pending["StorageClass"]) == ("", "fast")
    default = {"metadata": {**META, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"}
    assert cells("storage.k8s.io", "storageclasses", default)["Name"] == "a (default)"


def test_bindings_name_their_subjects() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]
    obj = {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [*subjects, {"kind": "User", "name": "v"}]}
    assert cells("rbac.authorization.k8s.io", "rolebindings", obj) == {
        "Name": "a", "Role": "ClusterRole/view", "Age": "5m10s", "Users": "u, v", "Groups": "g", "ServiceAccounts": "n/s",
    }  # fmt: skip


def test_signing_requests_and_api_services() -> None:
    conditions = [{"type": "Approved", "status": "True"}]
    found = cells("certificates.k8s.io", "certificatesigningrequests", {"status": {"conditions": conditions, "certificate": "x"}})
    assert found["Condition"] == "Approved,Issued"
    down = {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}
    found = cells("apiregistration.k8s.io", "apiservices", {"spec": {"service": {"namespace": "n", "name": "s"}}, "status": down})
    assert (found["Service"], found["Available"]) == ("n/s", "False (MissingEndpoints)")


def test_quotas_split_requests_from_limits() -> None:
    status = {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}
    found = cells("", "resourcequotas", {"status": status})
    assert (found["Request"], found["Limit"]) == ("cpu: 0/1, pods: 1/5", "limits.cpu: 0/2")


def test_resources_without_columns_show_when_they_were_created() -> None:
    assert cells("rbac.authorization.k8s.io", "roles", {}) == {"Name": "a", "Created At": CREATED}
    custom = printer_for(ResourceInfo(group="demo.test", version="v1", resource="gadgets", kind="Gadget", builtin=False), 37)
    assert [(c.name, c.type) for c in custom.columns] == [("Name", "string"), ("Age", "date")]
    assert custom.cells({"metadata": META}, NOW) == ["a", "5m10s"]


def test_an_age_that_is_not_known() -> None:
    assert printer("", "configmaps").cells({"metadata": {"name": "a"}}, NOW) == ["a", 0, "<unknown>"]


def test_tables_carry_what_was_asked_for() -> None:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": META, "data": {"k": "v"}}
    found = printer("", "configmaps")
    rows = [table.row(found.cells(obj, NOW), obj, include) for include in IncludeObject]
    answer = table.table(found.definitions(), rows, {"resourceVersion": "7"})
    assert [row["object"] for row in answer["rows"]] == [
        None,
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": META},
        obj,
    ]
    assert [c["name"] for c in answer["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert "columnDefinitions" not in table.table([], rows, {})
