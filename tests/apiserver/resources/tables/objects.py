"""Objects whose rows in a Table are worth comparing: every kind, and the states in which its cells read differently.

``OBJECTS`` are in the order in which they are made; ``status`` is written through the subresource afterwards. Moments are years back, so
that the ages in the rows of a recording stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

NAMESPACE = "tables"
#: far enough back for an age in years and days, which a recording's reader can compute again
LONG_AGO = "2020-01-01T00:00:00Z"
LATER = "2020-01-01T00:02:03Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    group: str
    version: str
    resource: str
    body: Object
    namespaced: bool = True
    status: Object | None = None
    #: deleted after it was made; finalizers or grace keep it
    deleted: bool = False

    @property
    def collection(self) -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{NAMESPACE}/{self.resource}" if self.namespaced else f"{root}/{self.resource}"


_KINDS = {
    "pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "services": "Service", "endpoints": "Endpoints", "events": "Event",
    "configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "resourcequotas": "ResourceQuota",
    "limitranges": "LimitRange", "podtemplates": "PodTemplate", "replicationcontrollers": "ReplicationController",
    "persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim", "deployments": "Deployment",
    "replicasets": "ReplicaSet", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet", "controllerrevisions": "ControllerRevision",
    "jobs": "Job", "cronjobs": "CronJob", "horizontalpodautoscalers": "HorizontalPodAutoscaler", "ingresses": "Ingress",
    "ingressclasses": "IngressClass", "networkpolicies": "NetworkPolicy", "poddisruptionbudgets": "PodDisruptionBudget",
    "roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
    "storageclasses": "StorageClass", "volumeattachments": "VolumeAttachment", "csidrivers": "CSIDriver", "csinodes": "CSINode",
    "priorityclasses": "PriorityClass", "runtimeclasses": "RuntimeClass", "leases": "Lease", "endpointslices": "EndpointSlice",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration", "certificatesigningrequests": "CertificateSigningRequest",
    "apiservices": "APIService", "flowschemas": "FlowSchema", "prioritylevelconfigurations": "PriorityLevelConfiguration",
    "customresourcedefinitions": "CustomResourceDefinition",
}  # fmt: skip
_CLUSTER = {
    "nodes", "namespaces", "persistentvolumes", "ingressclasses", "clusterroles", "clusterrolebindings", "storageclasses",
    "volumeattachments", "csidrivers", "csinodes", "priorityclasses", "runtimeclasses", "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations", "certificatesigningrequests", "apiservices", "flowschemas", "prioritylevelconfigurations",
    "customresourcedefinitions",
}  # fmt: skip


def made(group_version: str, resource: str, name: str, *, status: Object | None = None, deleted: bool = False, **body: Any) -> Made:
    group, _, version = group_version.rpartition("/")
    metadata = {"name": name, **body.pop("metadata", {})}
    found = {"apiVersion": group_version, "kind": _KINDS[resource], "metadata": metadata, **body}
    return Made(
        group=group,
        version=version,
        resource=resource,
        body=found,
        namespaced=resource not in _CLUSTER,
        status=status,
        deleted=deleted,
    )


KEPT: Object = {"finalizers": ["example.com/kept"]}
CONTAINERS: list[Object] = [{"name": "c", "image": "registry.example.com/c:1"}, {"name": "d", "image": "d"}]
LABELS: Object = {"app": "a", "tier": "b"}
TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS, "automountServiceAccountToken": False}}
SELECTOR: Object = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["z", "b"]}]}


def _state(state: Object, *, ready: bool = False, restarts: int = 0, last: str = "", name: str = "c", **more: Any) -> Object:
    found = {"name": name, "image": name, "imageID": "", "ready": ready, "restartCount": restarts, "state": state, **more}
    if last:
        found["lastState"] = {"terminated": {"exitCode": 1, "finishedAt": last, "startedAt": LONG_AGO}}
    return found


_RUNNING = _state({"running": {"startedAt": LONG_AGO}}, ready=True)
_DONE = _state({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": LONG_AGO, "finishedAt": LATER}})


def _ended(**more: Any) -> Object:
    return _state({"terminated": {"startedAt": LONG_AGO, "finishedAt": LATER, **more}})


def _waits(reason: str = "", **more: Any) -> Object:
    return _state({"waiting": {"reason": reason} if reason else {}}, **more)


def _pod(name: str, status: Object | None, *, deleted: bool = False, metadata: Object | None = None, **spec: Any) -> Made:
    full = {"containers": CONTAINERS, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, **spec}
    return made("v1", "pods", name, metadata=metadata or {}, spec=full, status=status, deleted=deleted)


def _running(*containers: Object, phase: str = "Running", **more: Any) -> Object:
    return {"phase": phase, "containerStatuses": list(containers), **more}


_INIT: Object = {"initContainers": [{"name": "i", "image": "i"}, {"name": "j", "image": "j"}, {"name": "k", "image": "k"}]}
_INITIALIZED: list[Object] = [{"type": "Initialized", "status": "True"}]


def _initializing(*states: Object, **more: Any) -> Object:
    return {"phase": "Pending", "initContainerStatuses": list(states), **more}


PODS = (
    _pod("new", None),
    _pod("pending", {"phase": "Pending"}),
    _pod("creating", _running(_waits("ContainerCreating"), _waits("ContainerCreating"), phase="Pending")),
    _pod("running", _running(_RUNNING, _RUNNING, podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]), nodeName="n1"),
    _pod("half", _running(_RUNNING, _waits())),
    _pod("not-ready", _running(_RUNNING, _state({"running": {"startedAt": LONG_AGO}}))),
    _pod("crashing", _running(_RUNNING, _waits("CrashLoopBackOff", restarts=4, last=LATER))),
    _pod("restarted", _running(_state({"running": {"startedAt": LATER}}, ready=True, restarts=1, last=LATER), _RUNNING)),
    _pod("restarted-without-end", _running(_state({"running": {}}, ready=True, restarts=2), _RUNNING)),
    _pod("both-restarted", _running(_state({"running": {}}, restarts=2, last=LONG_AGO), _state({"running": {}}, restarts=3, last=LATER))),
    _pod("pulling", _running(_waits("ImagePullBackOff"), _waits("ErrImagePull"), phase="Pending")),
    _pod("first-speaks", _running(_waits("ErrImagePull"), _ended(exitCode=1, reason="Error"))),
    _pod("succeeded", _running(_DONE, _DONE, phase="Succeeded")),
    _pod("failed", _running(_ended(exitCode=1, reason="Error"), _DONE, phase="Failed")),
    _pod("killed", _running(_ended(exitCode=137, signal=9), phase="Failed")),
    _pod("exited", _running(_ended(exitCode=3), phase="Failed")),
    _pod("out-of-memory", _running(_ended(exitCode=137, reason="OOMKilled"))),
    _pod("evicted", {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
    _pod("one-done-ready", _running(_RUNNING, _DONE, conditions=[{"type": "Ready", "status": "True"}])),
    _pod("one-done-not-ready", _running(_RUNNING, _DONE, conditions=[{"type": "Ready", "status": "False"}])),
    _pod("init-none", {"phase": "Pending"}, **_INIT),
    _pod("init-first", _initializing(_state({"running": {}}, name="i"), _waits("PodInitializing"), _waits("PodInitializing")), **_INIT),
    _pod("init-second", _initializing(_ended(exitCode=0, reason="Completed"), _state({"running": {}}), _waits("PodInitializing")), **_INIT),
    _pod("init-crashing", _initializing(_waits("CrashLoopBackOff", restarts=5, last=LATER)), **_INIT),
    _pod("init-failed", _initializing(_ended(exitCode=2, reason="Error")), **_INIT),
    _pod("init-exited", _initializing(_ended(exitCode=2)), **_INIT),
    _pod("init-killed", _initializing(_ended(exitCode=137, signal=9)), **_INIT),
    _pod(
        "init-over",
        _running(_RUNNING, _RUNNING, initContainerStatuses=[_DONE, _DONE, _DONE], conditions=_INITIALIZED),
        **_INIT,
    ),
    _pod(
        "init-restarted",
        _running(_RUNNING, _RUNNING, initContainerStatuses=[_state({"running": {}}, restarts=7, last=LATER)], conditions=_INITIALIZED),
        **_INIT,
    ),
    _pod("gates", _running(conditions=[{"type": "a/b", "status": "True"}, {"type": "c/d", "status": "False"}]),
         readinessGates=[{"conditionType": "a/b"}, {"conditionType": "c/d"}, {"conditionType": "e/f"}]),
    _pod("nominated", {"phase": "Pending", "nominatedNodeName": "n9"}),
    _pod("terminating", _running(_RUNNING, _RUNNING), deleted=True, metadata=KEPT),
    _pod("lost", _running(_RUNNING, reason="NodeLost"), deleted=True, metadata=KEPT),
    _pod("done-and-deleted", _running(_DONE, phase="Succeeded"), deleted=True, metadata=KEPT),
)  # fmt: skip


def _node(name: str, *, status: Object | None = None, labels: Object | None = None, deleted: bool = False, **spec: Any) -> Made:
    return made("v1", "nodes", name, metadata={"labels": labels or {}}, spec=spec, status=status, deleted=deleted)


_NODE_INFO = {
    "kubeletVersion": "v1.2.3", "osImage": "Linux", "kernelVersion": "6.1", "containerRuntimeVersion": "containerd://2", "machineID": "",
    "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
}  # fmt: skip
NODES = (
    _node("n-new"),
    _node(
        "n-ready",
        labels={"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/a": "x", "kubernetes.io/role": "old"},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": _NODE_INFO,
            "addresses": [
                {"type": "Hostname", "address": "h"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "ExternalIP", "address": "1.2.3.4"},
            ],
        },
    ),
    _node("n-not-ready", status={"conditions": [{"type": "Ready", "status": "False"}]}),
    _node("n-unknown", status={"conditions": [{"type": "Ready", "status": "Unknown"}]}, unschedulable=True),
    _node("n-pressed", status={"conditions": [{"type": "MemoryPressure", "status": "True"}]}),
)


def _service(name: str, *, status: Object | None = None, **spec: Any) -> Made:
    return made("v1", "services", name, spec={"ports": [{"port": 80}], **spec}, status=status)


_BALANCED: Object = {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "lb.example.com"}, {"ip": "1.1.1.1"}]}}
SERVICES = (
    _service("cluster", clusterIP="10.0.0.50", selector=LABELS),
    _service("external-ips", clusterIP="10.0.0.51", externalIPs=["1.2.3.4", "5.6.7.8"]),
    _service("node-port", clusterIP="10.0.0.52", type="NodePort", ports=[{"name": "a", "port": 80, "nodePort": 30080},
             {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30053}]),
    _service("headless", clusterIP="None", ports=[]),
    _service("balanced", clusterIP="10.0.0.53", type="LoadBalancer", ports=[{"port": 80, "nodePort": 30081}], status=_BALANCED),
    _service("balanced-and-fixed", clusterIP="10.0.0.54", type="LoadBalancer", ports=[{"port": 80, "nodePort": 30082}],
             externalIPs=["4.4.4.4"], status=_BALANCED),
    _service("waits", clusterIP="10.0.0.55", type="LoadBalancer", ports=[{"port": 80, "nodePort": 30083}]),
    made("v1", "services", "named", spec={"type": "ExternalName", "externalName": "example.com"}),
)  # fmt: skip


def _addresses(*ips: str) -> list[Object]:
    return [{"ip": ip} for ip in ips]


ENDPOINTS = (
    made("v1", "endpoints", "none", subsets=[]),
    made("v1", "endpoints", "one", subsets=[{"addresses": _addresses("10.1.0.1"), "ports": [{"port": 80}]}]),
    made("v1", "endpoints", "many", subsets=[
        {"addresses": _addresses("10.1.0.1", "10.1.0.2"), "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
        {"addresses": _addresses("10.1.0.3"), "ports": [{"name": "a", "port": 82}]},
    ]),
    made("v1", "endpoints", "portless", subsets=[{"addresses": _addresses("10.1.0.1")}]),
    made("v1", "endpoints", "six", subsets=[{"addresses": _addresses("fd00::1"), "ports": [{"port": 80}]}]),
    made("v1", "endpoints", "not-ready", subsets=[{"notReadyAddresses": _addresses("10.1.0.1"), "ports": [{"port": 80}]}]),
)  # fmt: skip


def _event(name: str, **body: Any) -> Made:
    target = body.pop("involvedObject", {"kind": "Pod", "namespace": NAMESPACE, "name": "p"})
    return made("v1", "events", name, involvedObject={"namespace": NAMESPACE, **target}, **body)


_NEW_EVENT: Object = {"eventTime": "2020-01-01T00:00:00.000000Z", "reportingComponent": "ctl", "reportingInstance": "ctl-1", "action": "Go",
              "reason": "Because", "type": "Normal"}  # fmt: skip
EVENTS = (
    _event("bare"),
    _event("old", firstTimestamp=LONG_AGO, lastTimestamp=LATER, count=7, type="Warning", reason="BackOff", message=" told \n",
           source={"component": "kubelet", "host": "n1"}, involvedObject={"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"}),
    _event("no-host", firstTimestamp=LONG_AGO, source={"component": "scheduler"}),
    _event("new", **_NEW_EVENT),
    _event("series", **_NEW_EVENT, series={"count": 5, "lastObservedTime": "2020-01-01T00:02:03.000000Z"}),
    _event("nameless", firstTimestamp=LONG_AGO, involvedObject={"kind": "Namespace"}),
)  # fmt: skip

_HARD = {"limits.cpu": "2", "requests.cpu": "1", "pods": "4", "count/configmaps": "9", "limits.memory": "1Gi"}
CORE = (
    made("v1", "namespaces", "tables-kept", metadata={"finalizers": []}, spec={"finalizers": ["example.com/kept"]}, deleted=True),
    made("v1", "configmaps", "both", data={"a": "b", "c": "d"}, binaryData={"e": "Zg=="}),
    made("v1", "configmaps", "empty"),
    made("v1", "secrets", "opaque", data={"a": "Yg=="}),
    made("v1", "secrets", "typed", type="example.com/t"),
    made("v1", "serviceaccounts", "robot", secrets=[{"name": "a"}, {"name": "b"}]),
    made("v1", "resourcequotas", "quota", spec={"hard": _HARD}, status={"hard": _HARD, "used": {"limits.cpu": "500m", "pods": "1"}}),
    made("v1", "limitranges", "limits", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]}),
    made("v1", "podtemplates", "template", template=TEMPLATE),
    made("v1", "replicationcontrollers", "rc", spec={"replicas": 3, "selector": LABELS, "template": TEMPLATE},
         status={"replicas": 2, "readyReplicas": 1}),
)  # fmt: skip

_VOLUME: Object = {"hostPath": {"path": "/x"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
STORAGE = (
    made("v1", "persistentvolumes", "pv-plain", spec=_VOLUME),
    made("v1", "persistentvolumes", "pv-bound", spec={
        **_VOLUME, "accessModes": ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"], "capacity": {"storage": "1536Mi"},
        "storageClassName": "slow", "persistentVolumeReclaimPolicy": "Recycle", "claimRef": {"namespace": "ns", "name": "claim"}},
        status={"phase": "Bound", "reason": "Why"}),
    made("v1", "persistentvolumes", "pv-block", spec={**_VOLUME, "volumeMode": "Block", "capacity": {"storage": "0.5"}}),
    made("v1", "persistentvolumes", "pv-old-class", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "older"}},
         spec={**_VOLUME, "storageClassName": "newer"}),
    made("v1", "persistentvolumes", "pv-going", metadata=KEPT, spec=_VOLUME, deleted=True),
    made("v1", "persistentvolumeclaims", "pvc-new", spec={"accessModes": ["ReadWriteOnce"], "storageClassName": "",
         "resources": {"requests": {"storage": "1Gi"}}}),
    made("v1", "persistentvolumeclaims", "pvc-bound", spec={"accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
         "volumeName": "pv-bound", "resources": {"requests": {"storage": "1Gi"}}},
         status={"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"]}),
    made("v1", "persistentvolumeclaims", "pvc-going", metadata=KEPT, spec={"accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
         "storageClassName": "slow", "resources": {"requests": {"storage": "1Gi"}}}, deleted=True),
    made("storage.k8s.io/v1", "storageclasses", "plain", provisioner="example.com/p"),
    made("storage.k8s.io/v1", "storageclasses", "chosen", provisioner="example.com/p", reclaimPolicy="Retain",
         volumeBindingMode="WaitForFirstConsumer", allowVolumeExpansion=True,
         metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}),
    made("storage.k8s.io/v1", "volumeattachments", "attached", spec={"attacher": "example.com", "nodeName": "n1",
         "source": {"persistentVolumeName": "pv"}}, status={"attached": True}),
    made("storage.k8s.io/v1", "csidrivers", "csi-plain", spec={}),
    made("storage.k8s.io/v1", "csidrivers", "csi-more", spec={"attachRequired": False, "podInfoOnMount": True, "storageCapacity": True,
         "volumeLifecycleModes": ["Persistent", "Ephemeral"]}),
    made("storage.k8s.io/v1", "csinodes", "csi-node", spec={"drivers": [{"name": "a", "nodeID": "1"}, {"name": "b", "nodeID": "2"}]}),
)  # fmt: skip

_OWNER: Object = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "owner", "uid": "11111111-1111-1111-1111-111111111111"}
_JOB: Object = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
_SCHEDULE: Object = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": _JOB}}
APPS = (
    made("apps/v1", "deployments", "deploy", spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
         status={"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
    made("apps/v1", "replicasets", "rs", spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
         status={"replicas": 2, "readyReplicas": 1}),
    made("apps/v1", "statefulsets", "sts", spec={"replicas": 3, "serviceName": "s", "selector": SELECTOR, "template": TEMPLATE},
         status={"replicas": 2, "readyReplicas": 1}),
    made("apps/v1", "daemonsets", "ds", spec={"selector": SELECTOR, "template": {
        "metadata": TEMPLATE["metadata"], "spec": {**TEMPLATE["spec"], "nodeSelector": {"z": "1", "disk": "ssd"}}}},
        status={"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2,
                "numberAvailable": 1, "numberMisscheduled": 0}),
    made("apps/v1", "controllerrevisions", "owned", data={"a": 1}, revision=3,
         metadata={"ownerReferences": [{**_OWNER, "controller": True}]}),
    made("apps/v1", "controllerrevisions", "free", data={"a": 1}, revision=1, metadata={"ownerReferences": [_OWNER]}),
    made("batch/v1", "jobs", "job-new", spec=_JOB),
    made("batch/v1", "jobs", "job-done", spec={**_JOB, "completions": 2}, status={"succeeded": 2, "startTime": LONG_AGO,
         "completionTime": LATER, "conditions": [{"type": "Complete", "status": "True"}]}),
    made("batch/v1", "jobs", "job-many", spec={**_JOB, "parallelism": 3}, status={"succeeded": 1, "startTime": LONG_AGO}),
    made("batch/v1beta1", "cronjobs", "cron", spec=_SCHEDULE),
    made("batch/v1beta1", "cronjobs", "cron-ran", spec={**_SCHEDULE, "suspend": True},
         status={"lastScheduleTime": LONG_AGO, "active": [{"name": "a"}, {"name": "b"}]}),
)  # fmt: skip


def _autoscaler(name: str, metrics: list[Object] | None = None, status: Object | None = None, **spec: Any) -> Made:
    full = {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 5, **spec}
    if metrics is not None:
        full["metrics"] = metrics
    return made("autoscaling/v2beta2", "horizontalpodautoscalers", name, spec=full, status=status)


def _resource(name: str, **target: Any) -> Object:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


_METRIC: Object = {"metric": {"name": "m"}}
_HPA_STATUS: Object = {"currentReplicas": 2, "desiredReplicas": 3, "conditions": []}
_OBJECT = {"kind": "Service", "name": "s", "apiVersion": "v1"}
AUTOSCALERS = (
    _autoscaler("hpa-default"),
    _autoscaler("hpa-utilization", [_resource("cpu", type="Utilization", averageUtilization=50)], {
        **_HPA_STATUS, "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {
            "averageUtilization": 20, "averageValue": "10m"}}}]}, minReplicas=2),
    _autoscaler("hpa-average", [_resource("memory", type="AverageValue", averageValue="100Mi")], {
        **_HPA_STATUS, "currentMetrics": [{"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "50Mi"}}}]}),
    _autoscaler("hpa-unknown", [_resource("memory", type="AverageValue", averageValue="100Mi")]),
    _autoscaler("hpa-many", [_resource("cpu", type="Utilization", averageUtilization=50),
                             _resource("memory", type="Utilization", averageUtilization=60),
                             {"type": "Pods", "pods": {**_METRIC, "target": {"type": "AverageValue", "averageValue": "10"}}}]),
    _autoscaler("hpa-pods", [{"type": "Pods", "pods": {**_METRIC, "target": {"type": "AverageValue", "averageValue": "10"}}}], {
        **_HPA_STATUS, "currentMetrics": [{"type": "Pods", "pods": {**_METRIC, "current": {"averageValue": "7"}}}]}),
    _autoscaler("hpa-object", [{"type": "Object", "object": {
        **_METRIC, "describedObject": _OBJECT, "target": {"type": "Value", "value": "10"}}}], {
        **_HPA_STATUS, "currentMetrics": [{"type": "Object", "object": {
            **_METRIC, "describedObject": _OBJECT, "current": {"value": "7"}}}]}),
    _autoscaler("hpa-object-average", [{"type": "Object", "object": {
        **_METRIC, "describedObject": _OBJECT, "target": {"type": "AverageValue", "averageValue": "10"}}}]),
    _autoscaler("hpa-external", [{"type": "External", "external": {**_METRIC, "target": {"type": "AverageValue", "averageValue": "10"}}}], {
        **_HPA_STATUS, "currentMetrics": [{"type": "External", "external": {**_METRIC, "current": {"averageValue": "7", "value": "0"}}}]}),
    _autoscaler("hpa-external-value", [{"type": "External", "external": {**_METRIC, "target": {"type": "Value", "value": "10"}}}]),
)  # fmt: skip


def _rules(*hosts: str) -> list[Object]:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    return [{"http": http, **({"host": host} if host else {})} for host in hosts]


NETWORK = (
    made("networking.k8s.io/v1", "ingresses", "any", spec={"rules": _rules("")}),
    made("networking.k8s.io/v1", "ingresses", "few", spec={"ingressClassName": "nginx", "rules": _rules("a.io", "b.io"),
         "tls": [{"hosts": ["a.io"]}]}, status=_BALANCED),
    made("networking.k8s.io/v1", "ingresses", "many", spec={"rules": _rules("a.io", "b.io", "c.io", "d.io", "e.io")}),
    made("networking.k8s.io/v1", "ingresses", "some-without", spec={"rules": _rules("a.io", "", "b.io", "c.io", "")}),
    made("networking.k8s.io/v1", "ingressclasses", "class-plain", spec={"controller": "example.com/c"}),
    made("networking.k8s.io/v1", "ingressclasses", "class-more", spec={"controller": "example.com/c", "parameters": {
        "apiGroup": "k.example.com", "kind": "Parameters", "name": "p"}}),
    made("networking.k8s.io/v1", "ingressclasses", "class-core", spec={"controller": "example.com/c", "parameters": {
        "kind": "ConfigMap", "name": "p"}}),
    made("networking.k8s.io/v1", "networkpolicies", "all", spec={"podSelector": {}}),
    made("networking.k8s.io/v1", "networkpolicies", "some", spec={"podSelector": {**SELECTOR, "matchExpressions": [
        {"key": "x", "operator": "Exists"}, {"key": "y", "operator": "DoesNotExist"},
        {"key": "z", "operator": "NotIn", "values": ["1"]}]}}),
    made("discovery.k8s.io/v1beta1", "endpointslices", "slice-none", addressType="IPv4", endpoints=[]),
    made("discovery.k8s.io/v1beta1", "endpointslices", "slice-many", addressType="IPv4",
         ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}, {"name": "c"}, {"name": "d", "port": 83}],
         endpoints=[{"addresses": ["10.1.0.1"]}, {"addresses": ["10.1.0.2"]}, {"addresses": ["10.1.0.3"]}, {"addresses": ["10.1.0.4"]}]),
    made("discovery.k8s.io/v1beta1", "endpointslices", "slice-nameless", addressType="IPv4", ports=[{"protocol": "TCP"}],
         endpoints=[{"addresses": ["10.1.0.1"]}]),
)  # fmt: skip

_SUBJECTS = [
    {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "User", "name": "v", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
]  # fmt: skip
_ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_HOOK: Object = {
    "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
    "clientConfig": {"url": "https://127.0.0.1:1/x"}, "namespaceSelector": {"matchLabels": {"never": "set"}},
}  # fmt: skip


ACCESS = (
    made("rbac.authorization.k8s.io/v1", "roles", "role", rules=[]),
    made("rbac.authorization.k8s.io/v1", "clusterroles", "tables-role", rules=[]),
    made("rbac.authorization.k8s.io/v1", "rolebindings", "binding", roleRef=_ROLE_REF, subjects=_SUBJECTS),
    made("rbac.authorization.k8s.io/v1", "clusterrolebindings", "tables-binding", roleRef=_ROLE_REF, subjects=_SUBJECTS[2:]),
    made("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "tables-m", webhooks=[_HOOK]),
    made("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "tables-v", webhooks=[]),
    made("apiregistration.k8s.io/v1", "apiservices", "v1.tables.example.com", spec={
        "group": "tables.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10, "insecureSkipTLSVerify": True,
        "service": {"namespace": "tables", "name": "missing"}}),
    made("scheduling.k8s.io/v1", "priorityclasses", "tables-high", value=1000, preemptionPolicy="Never"),
    made("node.k8s.io/v1", "runtimeclasses", "runtime", handler="runc"),
    made("coordination.k8s.io/v1", "leases", "held", spec={"holderIdentity": "me"}),
    made("coordination.k8s.io/v1", "leases", "free", spec={}),
    made("policy/v1beta1", "poddisruptionbudgets", "pdb-min", spec={"minAvailable": 1, "selector": SELECTOR},
         status={"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}),
    made("policy/v1beta1", "poddisruptionbudgets", "pdb-max", spec={"maxUnavailable": "30%", "selector": SELECTOR}),
    made("flowcontrol.apiserver.k8s.io/v1beta1", "flowschemas", "tables-flow", spec={
        "priorityLevelConfiguration": {"name": "tables-level"}, "matchingPrecedence": 400, "distinguisherMethod": {"type": "ByUser"}}),
    made("flowcontrol.apiserver.k8s.io/v1beta1", "prioritylevelconfigurations", "tables-level", spec={"type": "Limited", "limited": {
        "assuredConcurrencyShares": 7, "limitResponse": {"type": "Queue", "queuing": {
            "queues": 8, "handSize": 4, "queueLengthLimit": 50}}}}),
    made("flowcontrol.apiserver.k8s.io/v1beta1", "prioritylevelconfigurations", "tables-rejects", spec={"type": "Limited", "limited": {
        "assuredConcurrencyShares": 7, "limitResponse": {"type": "Reject"}}}),
)  # fmt: skip

OBJECTS: tuple[Made, ...] = (
    *PODS, *NODES, *SERVICES, *ENDPOINTS, *EVENTS, *CORE, *STORAGE, *APPS, *AUTOSCALERS, *NETWORK, *ACCESS,
)  # fmt: skip
