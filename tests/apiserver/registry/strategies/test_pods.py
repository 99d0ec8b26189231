"""Pods: what a new one gets, the few things that may change, and what is remarked."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.machinery import status
from apiserver.machinery.objects import Object
from tests.apiserver.registry.strategies.kinds import CONTAINER, changed, context, create_errors, created, of, rules, update_errors

PODS = rules("Pod")
UPDATABLE = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"


def pod(**spec: Any) -> Object:
    return created(PODS, of({"containers": [CONTAINER], **spec}))


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry.example.com:5000/nginx", "Always"),
        ("registry.example.com:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "0" * 64, "Always"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pod(containers=[{"name": "c", "image": image}])["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_requests_default_to_limits_in_pods_but_not_in_templates() -> None:
    container = {**CONTAINER, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    assert pod(containers=[container])["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployments = rules("Deployment", "apps")
    deployment = created(deployments, of({"selector": {"matchLabels": {"a": "b"}}, "template": template}, api_version="apps/v1"))
    assert deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_probes_volumes_and_field_references_get_their_defaults() -> None:
    container = {
        **CONTAINER,
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 1}},
        "env": [
            {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "lifecycle": {"preStop": {"httpGet": {"port": "web"}}},
    }
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    volumes = [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "p", "projected": {"sources": sources}}]
    spec = pod(serviceAccountName="robot", containers=[container], volumes=volumes)["spec"]
    made = spec["containers"][0]
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert made["livenessProbe"] == {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **probe}
    assert made["readinessProbe"] == {"grpc": {"port": 1, "service": ""}, **probe}
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made["env"][1]["valueFrom"]["resourceFieldRef"] == {"resource": "limits.cpu", "divisor": "0"}
    assert made["lifecycle"]["preStop"]["httpGet"]["scheme"] == "HTTP"
    assert spec["volumes"][0]["emptyDir"] == {}
    assert spec["volumes"][1]["secret"]["defaultMode"] == 420
    projected = spec["volumes"][2]["projected"]
    assert projected["defaultMode"] == 420
    assert projected["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert projected["sources"][1]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"


def test_a_pod_on_the_host_network_takes_its_container_ports_there() -> None:
    made = pod(hostNetwork=True, containers=[{**CONTAINER, "ports": [{"containerPort": 80}]}])
    assert made["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"requests": {"ephemeral-storage": "1"}}], "BestEffort"),
    ],
)
def test_a_new_pod_is_pending_in_the_class_of_its_resources(resources: list[Object], qos: str) -> None:
    containers = [{"name": f"c{i}", "image": "i", "resources": r} for i, r in enumerate(resources)]
    assert pod(containers=containers)["status"] == {"phase": "Pending", "qosClass": qos}


def test_the_status_of_the_client_is_dropped_and_gates_are_told() -> None:
    made = created(PODS, of({"containers": [CONTAINER], "schedulingGates": [{"name": "g"}]}, status={"phase": "Running"}))
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"


def test_both_names_of_the_service_account_are_written() -> None:
    assert pod(serviceAccount="robot")["spec"]["serviceAccountName"] == "robot"
    obj = of({"containers": [CONTAINER]})
    PODS.default(obj)
    obj["spec"]["serviceAccountName"] = "default"  # as admission does, after the defaults
    PODS.prepare_for_create(context(), obj)
    assert obj["spec"]["serviceAccount"] == "default"


def test_an_image_may_change_and_a_command_may_not() -> None:
    old = pod()
    new = changed(old, containers=[{**old["spec"]["containers"][0], "image": "nginx:1.26"}])
    assert update_errors(PODS, new, old) == []
    new = changed(old, containers=[{**old["spec"]["containers"][0], "command": ["sh"]}])
    (error,) = update_errors(PODS, new, old)
    assert error.startswith(UPDATABLE)
    assert '+ containers[0].command: ["sh"]' in error


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"nodeName": "n"}, UPDATABLE),
        ({"terminationGracePeriodSeconds": 5}, UPDATABLE),
        ({"hostNetwork": True}, UPDATABLE),
        ({"containers": []}, "spec.containers: Required value"),
        (
            {"containers": [CONTAINER, {"name": "d", "image": "i"}]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        ({"activeDeadlineSeconds": -1}, "spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive"),
    ],
)
def test_the_rest_of_the_spec_is_fixed(change: Object, wanted: str) -> None:
    old = pod()
    assert update_errors(PODS, changed(old, **change), old)[0].startswith(wanted)


def test_the_deadline_may_only_come_nearer() -> None:
    old = pod(activeDeadlineSeconds=90)
    assert update_errors(PODS, changed(old, activeDeadlineSeconds=80), old) == []
    assert update_errors(PODS, changed(old, activeDeadlineSeconds=100), old) == [
        "spec.activeDeadlineSeconds: Invalid value: 100: must be less than or equal to previous value"
    ]
    gone = changed(old)
    del gone["spec"]["activeDeadlineSeconds"]
    assert "must not update from a positive integer to nil value" in update_errors(PODS, gone, old)[0]


def test_a_negative_grace_period_may_be_mended() -> None:
    old = pod(terminationGracePeriodSeconds=-1)
    assert update_errors(PODS, changed(old, terminationGracePeriodSeconds=1), old) == []
    assert update_errors(PODS, changed(old, terminationGracePeriodSeconds=2), old)[0].startswith(UPDATABLE)


def test_tolerations_may_be_added_and_their_seconds_changed() -> None:
    one = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    old = pod(tolerations=[one])
    more = [{**one, "tolerationSeconds": 9}, {"key": "b", "operator": "Exists"}]
    assert update_errors(PODS, changed(old, tolerations=more), old) == []
    assert update_errors(PODS, changed(old, tolerations=[{**one, "key": "c"}]), old) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


def test_a_gated_pod_may_lose_gates_and_be_narrowed() -> None:
    old = pod(schedulingGates=[{"name": "g"}, {"name": "h"}], nodeSelector={"a": "b"})
    new = changed(old, schedulingGates=[{"name": "h"}], nodeSelector={"a": "b", "c": "d"})
    assert update_errors(PODS, new, old) == []
    assert "found new scheduling gate 'x'" in update_errors(PODS, changed(old, schedulingGates=[{"name": "x"}]), old)[0]
    assert "only additions to spec.nodeSelector are allowed" in update_errors(PODS, changed(old, nodeSelector={"a": "z"}), old)[0]
    free = pod(nodeSelector={"a": "b"})
    assert update_errors(PODS, changed(free, nodeSelector={"a": "b", "c": "d"}), free)[0].startswith(UPDATABLE)


def test_the_main_endpoint_keeps_the_status_and_the_status_endpoint_the_spec() -> None:
    old = pod()
    new = copy.deepcopy(old)
    new["status"] = {"phase": "Running"}
    assert update_errors(PODS, new, old) == []
    assert new["status"] == old["status"]
    new = changed(old, nodeName="n")
    new["status"] = {"phase": "Running", "podIP": "10.1.2.3", "hostIP": "10.0.0.1"}
    PODS.prepare_for_status_update(context(), new, old)
    assert new["spec"] == old["spec"]
    assert new["status"] == {
        "phase": "Running",
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "qosClass": "BestEffort",
    }


def test_a_container_that_ended_stays_ended_where_it_is_not_restarted() -> None:
    old = pod(restartPolicy="Never")
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
    new = copy.deepcopy(old)
    new["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    errors = [error.text() for error in PODS.validate_status_update(context(), new, old)]
    assert errors == ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"]


def test_ephemeral_containers_come_through_their_own_endpoint_and_stay() -> None:
    debugger = {"name": "debug", "image": "busybox"}
    assert create_errors(PODS, of({"containers": [CONTAINER], "ephemeralContainers": [debugger]})) == [
        "spec.ephemeralContainers: Forbidden: cannot be set on create"
    ]
    endpoint = PODS.subresource("ephemeralcontainers")
    assert endpoint is not None
    old = pod()
    new = changed(old, ephemeralContainers=[debugger], hostname="other")
    assert update_errors(endpoint, new, old) == []
    assert new["spec"]["ephemeralContainers"][0]["name"] == "debug"
    assert "hostname" not in new["spec"], "the rest of the spec does not change here"
    less = copy.deepcopy(new)
    less["spec"]["ephemeralContainers"] = [{"name": "other", "image": "busybox", "ports": [{"containerPort": 1}]}]
    errors = update_errors(endpoint, less, new)
    assert "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container" in errors
    assert any('existing ephemeral containers "debug" may not be removed' in error for error in errors)


def test_a_resize_changes_resources_but_not_the_class() -> None:
    endpoint = PODS.subresource("resize")
    assert endpoint is not None
    old = pod(containers=[{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}])
    container = old["spec"]["containers"][0]
    new = changed(old, containers=[{**container, "image": "other", "resources": {"requests": {"cpu": "2"}}}])
    assert update_errors(endpoint, new, old) == []
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert new["spec"]["containers"][0]["image"] == "nginx:1.25"
    new = changed(old, containers=[{**container, "resources": {}}])
    errors = update_errors(endpoint, new, old)
    assert any("Pod QOS Class may not change" in error for error in errors)
    assert "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed" in errors


def test_what_a_field_selector_can_select_by() -> None:
    made = pod(nodeName="n1", serviceAccountName="robot")
    made["status"] = {"phase": "Running", "podIPs": [{"ip": "10.1.1.1"}], "nominatedNodeName": "n2"}
    assert PODS.selectable_fields(made) == {
        "spec.nodeName": "n1",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "robot",
        "spec.hostNetwork": "false",
        "status.phase": "Running",
        "status.podIP": "10.1.1.1",
        "status.podIPs": "10.1.1.1",
        "status.nominatedNodeName": "n2",
    }


def test_duplicates_and_old_labels_are_remarked() -> None:
    container = {
        **CONTAINER,
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        "ports": [{"containerPort": 80}, {"containerPort": 80}],
        "resources": {"limits": {"memory": "100m"}},
    }
    made = pod(containers=[container], nodeSelector={"beta.kubernetes.io/os": "linux"})
    found = PODS.warnings(made, None)
    assert 'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead' in found
    assert 'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply' in found
    assert "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]" in found
    assert any("fractional byte value" in text for text in found)
    assert PODS.warnings(made, made) == [], "an update that leaves the spec alone is not remarked upon"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"initContainers": [{**CONTAINER, "name": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]},
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        (
            {"containers": [{**CONTAINER, "livenessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}}]},
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"containers": [{**CONTAINER, "livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}}]},
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"containers": [{**CONTAINER, "readinessProbe": {}}]},
            "spec.containers[0].readinessProbe: Required value: must specify a handler type",
        ),
        (
            {"dnsPolicy": "None"},
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: "
            "must have at least one node selector term",
        ),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Never"}]},
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Never": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"containers": [{**CONTAINER, "ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]}]},
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//9"',
        ),
        (
            {"containers": [{**CONTAINER, "resources": {"requests": {"hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}}]},
            "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
        ),
        (
            {"hostAliases": [{"ip": "nowhere"}]},
            'spec.hostAliases[0].ip: Invalid value: "nowhere": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}]}}]},
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: "
            "may not specify a duration less than 10 minutes",
        ),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]},
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ),
    ],
)
def test_refusals(spec: Object, wanted: str) -> None:
    assert wanted in create_errors(PODS, of({"containers": [CONTAINER], **spec}))


def test_no_more_is_looked_at_than_an_answer_tells() -> None:
    """A body of some megabytes holds tens of thousands of wrong containers; who looks at all of them holds everybody up."""
    few = create_errors(PODS, of({"containers": [{"name": "B!", "image": "i"}] * 10}))
    many = create_errors(PODS, of({"containers": [{"name": "B!", "image": "i"}] * 5_000}))
    assert many[: len(few)] == few
    assert len(many) < status.FIELD_ERRORS_MAX + 10
