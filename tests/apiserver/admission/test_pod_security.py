"""PodSecurity: rules by rule, and which namespaces and workloads they meet."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.admission.plugins.pod_security import PodSecurity
from apiserver.admission.pod_security import policy
from apiserver.admission.pod_security.policy import Level, Wanted
from apiserver.machinery.status import StatusError
from tests.fakes.admission import pod, request, run
from tests.fakes.object_getter import FakeObjects

HARDENED_CONTAINER = {
    "name": "c",
    "image": "i",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
HARDENED: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [HARDENED_CONTAINER],
}


def reasons(level: Level, spec: dict[str, Any], version: str = "latest", annotations: dict[str, str] | None = None) -> list[str]:
    return [v.reason for v in policy.violations(Wanted(level=level, version=version), {"annotations": annotations or {}}, spec, 37)]


def with_context(**context: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "securityContext": context}]}


BASELINE = {
    "privileged": with_context(privileged=True),
    "non-default capabilities": with_context(capabilities={"add": ["NET_ADMIN"]}),
    "host namespaces": {"hostNetwork": True, "containers": []},
    "hostPath volumes": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}], "containers": []},
    "hostPort": {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
    "procMount": with_context(procMount="Unmasked"),
    "seLinuxOptions": with_context(seLinuxOptions={"type": "spc_t"}),
    "seccompProfile": with_context(seccompProfile={"type": "Unconfined"}),
    "forbidden sysctls": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}, "containers": []},
    "hostProcess": with_context(windowsOptions={"hostProcess": True}),
    "forbidden AppArmor profile": with_context(appArmorProfile={"type": "Unconfined"}),
    "probe or lifecycle host": {"containers": [{"name": "c", "livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}]},
}


@pytest.mark.parametrize(("reason", "spec"), BASELINE.items(), ids=BASELINE.keys())
def test_baseline_refuses(reason: str, spec: dict[str, Any]) -> None:
    assert reasons(Level.BASELINE, spec) == [reason]
    assert reasons(Level.PRIVILEGED, spec) == []
    for field in ("initContainers", "ephemeralContainers"):
        moved = {**spec, "containers": [], field: spec["containers"]}
        assert reasons(Level.BASELINE, moved) == [reason]


def test_a_plain_pod_is_fine_for_baseline_and_not_for_restricted() -> None:
    plain = {"containers": [{"name": "c", "image": "i"}]}
    assert reasons(Level.BASELINE, plain) == []
    wanted = Wanted(level=Level.RESTRICTED)
    assert policy.told(policy.violations(wanted, {}, plain, 37)) == (
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )


def test_a_hardened_pod_is_fine_for_restricted() -> None:
    assert reasons(Level.RESTRICTED, HARDENED) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"volumes": [{"name": "v", "nfs": {"server": "s"}}]}, "restricted volume types"),
        ({"securityContext": HARDENED["securityContext"] | {"runAsUser": 0}}, "runAsUser=0"),
        ({"securityContext": HARDENED["securityContext"] | {"runAsNonRoot": False}}, "runAsNonRoot != true"),
        ({"hostPID": True}, "host namespaces"),
    ],
)
def test_restricted_refuses(change: dict[str, Any], reason: str) -> None:
    assert reasons(Level.RESTRICTED, HARDENED | change) == [reason]


def test_rules_are_those_of_the_version_asked_for() -> None:
    keepalive = {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_keepalive_time"}]}, "containers": []}
    assert reasons(Level.BASELINE, keepalive, "v1.28") == ["forbidden sysctls"]
    assert reasons(Level.BASELINE, keepalive, "v1.29") == []
    assert "unrestricted capabilities" not in reasons(Level.RESTRICTED, {"containers": [{"name": "c"}]}, "v1.21")


def world(**labels: str) -> tuple[FakeObjects, PodSecurity]:
    objects = FakeObjects()
    prefixed = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    objects.add("", "namespaces", "ns", metadata={"labels": prefixed})
    return objects, PodSecurity(objects)


async def test_enforce_refuses_pods_and_lets_workloads_pass() -> None:
    _, plugin = world(enforce="baseline", enforce_version="v1.30")
    bad = pod("x", hostNetwork=True)
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("pods", bad))
    assert caught.value.message == 'pods "x" is forbidden: violates PodSecurity "baseline:v1.30": host namespaces (hostNetwork=true)'
    template = {"metadata": {}, "spec": bad["spec"]}
    await run(plugin, request("deployments", {"metadata": {"name": "d"}, "spec": {"template": template}}, group="apps"))


async def test_warn_tells_of_pods_and_templates() -> None:
    _, plugin = world(warn="baseline")
    bad = pod("x", hostNetwork=True)
    told = ['would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)']
    attributes = request("pods", bad)
    await run(plugin, attributes)
    assert attributes.warnings == told
    attributes = request("deployments", {"metadata": {"name": "d"}, "spec": {"template": bad}}, group="apps")
    await run(plugin, attributes)
    assert attributes.warnings == told


async def test_updates_that_change_nothing_of_security_pass() -> None:
    _, plugin = world(enforce="restricted")
    old = pod("x")
    new = pod("x", tolerations=[{"key": "a"}])
    new["metadata"]["labels"] = {"a": "b"}
    await run(plugin, request("pods", new, old))
    with pytest.raises(StatusError):
        await run(plugin, request("pods", pod("x", containers=[{"name": "c", "image": "another"}]), old))


async def test_wrong_labels_are_refused_on_a_namespace_and_taken_as_the_strictest() -> None:
    _, plugin = world()
    labels = {"pod-security.kubernetes.io/enforce": "strong", "pod-security.kubernetes.io/warn-version": "1.2"}
    bad = {"metadata": {"name": "n", "labels": labels}}
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("namespaces", bad, namespace=""))
    assert [c["field"] for c in caught.value.status["details"]["causes"]] == [
        "metadata.labels[pod-security.kubernetes.io/enforce]",
        "metadata.labels[pod-security.kubernetes.io/warn-version]",
    ]
    assert policy.policy_of(labels, policy.Policy())[0].enforce.level is Level.RESTRICTED


async def test_who_tightens_a_namespace_is_told_which_pods_break_it() -> None:
    objects, plugin = world()
    for name in ("a", "b"):
        objects.add("", "pods", name, "ns", spec={"hostNetwork": True, "containers": []})
    new = {"metadata": {"name": "ns", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
    attributes = request("namespaces", new, {"metadata": {"name": "ns"}}, namespace="")
    await run(plugin, attributes)
    assert attributes.warnings == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): host namespaces",
    ]
