"""Each rule of the Pod Security Standards in each version, in its words; and what the plugin makes of labels, updates and exemptions."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.admission.configuration import PodSecurityConfiguration
from apiserver.admission.plugins import pod_security
from apiserver.admission.plugins.pod_security import PodSecurity
from apiserver.admission.pod_security import policy
from apiserver.admission.pod_security.policy import Level, Wanted
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from tests.fakes.admission import pod, request, run
from tests.fakes.object_getter import FakeObjects

NEWEST = 37
BASELINE, RESTRICTED = Level.BASELINE, Level.RESTRICTED
FINE_CONTEXT: dict[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
FINE_POD: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def spec_of(*contexts: dict[str, Any], pod_context: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A pod that is fine for every level but for what is said here; containers are a, b, …"""
    containers = [{"name": "abc"[i], "image": "i", "securityContext": {**FINE_CONTEXT, **own}} for i, own in enumerate(contexts or ({},))]
    return {"containers": containers, "securityContext": {**FINE_POD, **(pod_context or {})}, **more}


def sysctls(*names: str) -> dict[str, Any]:
    return spec_of(pod_context={"sysctls": [{"name": name} for name in names]})


def annotated(**more: str) -> dict[str, str]:
    return {key.replace("__", "/").replace("_", "."): value for key, value in more.items()}


APPARMOR = "container.apparmor.security.beta.kubernetes.io/a"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_A = "container.seccomp.security.alpha.kubernetes.io/a"
UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}
PROBE = {"livenessProbe": {"httpGet": {"host": "h"}}}

#: (level, spec, annotations, since, until, what is told); in all other minors nothing is
CASES: tuple[tuple[Level, dict[str, Any], dict[str, str], int, int, str], ...] = (
    (BASELINE, spec_of(hostNetwork=True, hostPID=True, hostIPC=True), {}, 0, NEWEST,
     "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"),
    (BASELINE, spec_of({"privileged": True}, {}, {"privileged": True}), {}, 0, NEWEST,
     'privileged (containers "a", "c" must not set securityContext.privileged=true)'),
    (BASELINE, spec_of({"capabilities": {"add": ["SYS_TIME", "CHOWN", "NET_RAW"]}}), {}, 0, NEWEST,
     'non-default capabilities (container "a" must not include "NET_RAW", "SYS_TIME" in securityContext.capabilities.add)'),
    (BASELINE, spec_of(volumes=[{"name": "x", "hostPath": {}}, {"name": "y", "hostPath": {}}, {"name": "z", "nfs": {}}]), {}, 0, NEWEST,
     'hostPath volumes (volumes "x", "y")'),
    (BASELINE, {"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}, {"hostPort": 0}]}]}, {}, 0, NEWEST,
     'hostPort (container "a" uses hostPorts 443, 80)'),
    (BASELINE, {"containers": [{"name": n, "ports": [{"hostPort": 80}]} for n in "ba"]}, {}, 0, NEWEST,
     'hostPort (containers "b", "a" use hostPort 80)'),
    (BASELINE, {"containers": [{"name": n, **PROBE} for n in "ba"]}, {}, 34, NEWEST,
     'probe or lifecycle host (containers "a", "b" use probe or lifecycle host "h")'),
    (BASELINE,
     {"initContainers": [{"name": "a", "lifecycle": {"preStop": {"tcpSocket": {"host": "2"}}, "postStart": {"httpGet": {"host": "1"}}}}]},
     {}, 34, NEWEST, 'probe or lifecycle host (container "a" uses probe or lifecycle hosts "1", "2")'),
    (BASELINE, spec_of({"procMount": "Unmasked"}, {"procMount": "Default"}), {}, 0, NEWEST,
     'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
    (BASELINE, spec_of({"procMount": "Unmasked"}, hostUsers=False), {}, 0, 34,
     'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
    (RESTRICTED, spec_of({"procMount": "Unmasked"}, hostUsers=False), {}, 0, NEWEST,
     'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
    (BASELINE, spec_of({"seLinuxOptions": {"type": "container_engine_t"}}), {}, 0, 30,
     'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type "container_engine_t")'),
    (BASELINE, spec_of({"seLinuxOptions": {"role": "r", "type": "b"}}, {"seLinuxOptions": {"user": "u"}},
                       pod_context={"seLinuxOptions": {"type": "a"}}), {}, 0, NEWEST,
     'seLinuxOptions (pod and containers "a", "b" set forbidden securityContext.seLinuxOptions: types "a", "b"; '
     "user may not be set; role may not be set)"),
    (BASELINE, spec_of(UNCONFINED, {}, pod_context=UNCONFINED), {}, 19, NEWEST,
     'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")'),
    (BASELINE, spec_of(), {SECCOMP_POD: "unconfined", SECCOMP_A: "x"}, 0, 18,
     f'seccompProfile (forbidden annotations {SECCOMP_A}="x", {SECCOMP_POD}="unconfined")'),
    (BASELINE, spec_of(), {SECCOMP_POD: "docker/default", SECCOMP_A: "localhost/x"}, 99, 0, ""),
    (BASELINE, sysctls("kernel.shm_rmid_forced", "net.ipv4.ip_local_reserved_ports"), {}, 0, 26,
     "forbidden sysctls (net.ipv4.ip_local_reserved_ports)"),
    (BASELINE, sysctls("net.ipv4.tcp_fin_timeout"), {}, 0, 28, "forbidden sysctls (net.ipv4.tcp_fin_timeout)"),
    (BASELINE, sysctls("net.ipv4.tcp_rmem"), {}, 0, 31, "forbidden sysctls (net.ipv4.tcp_rmem)"),
    (BASELINE, sysctls("net.ipv4.tcp_notsent_lowat"), {}, 0, 36, "forbidden sysctls (net.ipv4.tcp_notsent_lowat)"),
    (BASELINE, sysctls("b", "a"), {}, 0, NEWEST, "forbidden sysctls (b, a)"),
    (BASELINE, spec_of({"windowsOptions": {"hostProcess": True}}, pod_context={"windowsOptions": {"hostProcess": True}}), {}, 0, NEWEST,
     'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)'),
    (BASELINE, spec_of({"appArmorProfile": {"type": "Unconfined"}}, pod_context={"appArmorProfile": {"type": "Unconfined"}}), {}, 0, NEWEST,
     'forbidden AppArmor profile (pod and container "a" must not set AppArmor profile type to "Unconfined")'),
    (BASELINE, spec_of({"appArmorProfile": {"type": "Unconfined"}}), {APPARMOR: "unconfined"}, 0, NEWEST,
     f'forbidden AppArmor profiles (container "a" and annotation '
     f'must not set AppArmor profile type to "Unconfined", "{APPARMOR}="unconfined"")'),
    (BASELINE, spec_of(), {APPARMOR: "runtime/default", f"{APPARMOR}b": "localhost/x", f"{APPARMOR}c": ""}, 99, 0, ""),
    (RESTRICTED, spec_of({"allowPrivilegeEscalation": None}, {"allowPrivilegeEscalation": True}), {}, 8, NEWEST,
     'allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)'),
    (RESTRICTED, spec_of({"allowPrivilegeEscalation": None}, os={"name": "windows"}), {}, 8, 24,
     'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)'),
    (RESTRICTED, spec_of({"capabilities": {"drop": ["all"]}}, {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}}),
     {}, 22, NEWEST,
     'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; '
     'container "b" must not include "CHOWN" in securityContext.capabilities.add)'),
    (RESTRICTED, spec_of({"capabilities": {}}, os={"name": "windows"}), {}, 22, 24,
     'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])'),
    (RESTRICTED, spec_of(volumes=[{"name": "x", "nfs": {}}, {"name": "y", "hostPath": {}}, {"name": "z", "image": {}}]), {}, 0, NEWEST,
     'restricted volume types (volumes "x", "y" use restricted volume types "hostPath", "nfs")'),
    (RESTRICTED, spec_of(volumes=[{"name": "x", "storageos": {}}]), {}, 0, NEWEST,
     'restricted volume types (volume "x" uses restricted volume type "storageos")'),
    (RESTRICTED, spec_of({"runAsNonRoot": False}, pod_context={"runAsNonRoot": False}), {}, 0, NEWEST,
     'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)'),
    (RESTRICTED, spec_of({"runAsNonRoot": True}, {}, {}, pod_context={"runAsNonRoot": None}), {}, 0, NEWEST,
     'runAsNonRoot != true (pod or containers "b", "c" must set securityContext.runAsNonRoot=true)'),
    (RESTRICTED, spec_of({}, pod_context={"runAsNonRoot": None}, hostUsers=False), {}, 0, 34,
     'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)'),
    (RESTRICTED, spec_of({"runAsUser": 0}, pod_context={"runAsUser": 0}), {}, 23, NEWEST,
     'runAsUser=0 (pod and container "a" must not set runAsUser=0)'),
    (RESTRICTED, spec_of({"runAsUser": 0}, hostUsers=False), {}, 23, 34, 'runAsUser=0 (container "a" must not set runAsUser=0)'),
    (RESTRICTED, spec_of(pod_context={"seccompProfile": None}), {}, 19, NEWEST,
     'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'),
    (RESTRICTED, spec_of(UNCONFINED), {}, 19, NEWEST,
     'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")'),
    (RESTRICTED, spec_of(pod_context={"seccompProfile": None}, os={"name": "windows"}), {}, 19, 24,
     'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].value}-{case[5][:30] or 'fine'}-{case[3]}-{case[4]}")
def test_rules_in_every_version(case: tuple[Level, dict[str, Any], dict[str, str], int, int, str]) -> None:
    level, spec, annotations, since, until, told = case
    for minor in range(NEWEST + 3):
        wanted = told if since <= min(minor, NEWEST) <= until else ""
        found = policy.violations(Wanted(level=level, version=f"v1.{minor}"), {"annotations": annotations}, spec, NEWEST)
        assert policy.told(found) == wanted, minor
    assert policy.told(policy.violations(Wanted(level=level), {"annotations": annotations}, spec, NEWEST)) == (
        told if until == NEWEST else ""
    )


def test_the_latest_rules_are_those_of_the_served_version() -> None:
    probed = {"containers": [{"name": "a", **PROBE}]}
    for version in ("latest", "v1.37"):
        assert policy.violations(Wanted(level=BASELINE, version=version), {}, probed, 33) == []


def test_rules_of_the_baseline_are_told_first_and_those_that_are_said_again_once() -> None:
    spec = {
        "hostNetwork": True,
        "volumes": [{"name": "v", "hostPath": {}}],
        "containers": [{"name": "a", "securityContext": {"privileged": True, "capabilities": {"add": ["SYS_TIME"]}, **UNCONFINED}}],
    }
    found = policy.violations(Wanted(level=RESTRICTED), {}, spec, NEWEST)
    assert [violation.reason for violation in found] == [
        "host namespaces", "privileged", "allowPrivilegeEscalation != false", "unrestricted capabilities", "restricted volume types",
        "runAsNonRoot != true", "seccompProfile",
    ]  # fmt: skip


LABEL = "pod-security.kubernetes.io/"


def labels(**said: str) -> dict[str, str]:
    return {LABEL + key.replace("_", "-"): value for key, value in said.items()}


@pytest.mark.parametrize(
    ("said", "enforce", "audit", "warn", "wrong"),
    [
        ({}, "privileged:latest", "privileged:latest", "privileged:latest", 0),
        ({"enforce": "baseline"}, "baseline:latest", "privileged:latest", "baseline:latest", 0),
        ({"enforce": "restricted", "enforce_version": "v1.25"}, "restricted:v1.25", "privileged:latest", "restricted:v1.25", 0),
        ({"enforce": "restricted", "warn_version": "v1.9"}, "restricted:latest", "privileged:latest", "restricted:v1.9", 0),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest", "privileged:latest", "privileged:latest", 0),
        ({"enforce": "strong", "audit": "x", "warn": "y"}, "restricted:latest", "privileged:latest", "privileged:latest", 3),
        ({"enforce": "baseline", "enforce_version": "1.2"}, "baseline:latest", "privileged:latest", "baseline:latest", 1),
        ({"audit_version": "v1.05"}, "privileged:latest", "privileged:latest", "privileged:latest", 1),
    ],
)
def test_what_labels_ask_for(said: dict[str, str], enforce: str, audit: str, warn: str, wrong: int) -> None:
    found, errors = policy.policy_of(labels(**said), policy.Policy())
    assert (found.enforce.text(), found.audit.text(), found.warn.text(), len(errors)) == (enforce, audit, warn, wrong)


class Judge:
    def __init__(self, configuration: PodSecurityConfiguration | None = None, **said: str) -> None:
        self.objects = FakeObjects()
        self.objects.add("", "namespaces", "ns", metadata={"labels": labels(**said)})
        self.plugin = PodSecurity(self.objects, configuration or PodSecurityConfiguration())

    async def tell(self, resource: str, obj: Object, old: Object | None = None, **more: Any) -> tuple[str, list[str], dict[str, str]]:
        """What it is refused with, the warnings, the annotations of the audit event."""
        annotations: dict[str, str] = {}
        attributes = request(resource, obj, old, **more)
        attributes.annotate = lambda key, value: annotations.__setitem__(key.removeprefix(LABEL), value)
        try:
            await run(self.plugin, attributes)
        except StatusError as error:
            return error.message, attributes.warnings, annotations
        return "", attributes.warnings, annotations


async def test_all_modes_at_once() -> None:
    judge = Judge(enforce="baseline", audit="restricted", warn="baseline", audit_version="v1.7")
    refused, warnings, annotations = await judge.tell("pods", pod("x", hostPID=True))
    assert refused == 'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert warnings == [], "who is refused is not warned too"
    assert annotations["enforce-policy"] == "baseline:latest"
    assert annotations["audit-violations"].startswith(
        'would violate PodSecurity "restricted:v1.7": host namespaces (hostPID=true), runAsNonRoot'
    )


async def test_what_the_audit_event_says_where_nothing_is_asked() -> None:
    judge = Judge()
    assert await judge.tell("pods", pod("x")) == ("", [], {"enforce-policy": "privileged:latest"})
    template = {"metadata": {"name": "d"}, "spec": {"template": pod("x")}}
    assert await judge.tell("deployments", template, group="apps") == ("", [], {})
    wrong = Judge(warn="loud")
    _, _, annotations = await wrong.tell("pods", pod("x"))
    assert annotations["error"].startswith(
        'Failed to parse policy: metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "loud"'
    )


async def test_updates_are_judged_by_images_alone() -> None:
    judge = Judge(enforce="baseline")
    old = pod("x", hostPID=True, containers=[{"name": "c", "image": "i"}])
    same = {**old, "metadata": {"name": "x", "annotations": {APPARMOR: "unconfined"}}}
    assert await judge.tell("pods", same, old) == ("", [], {})
    newer = pod("x", hostPID=True, containers=[{"name": "c", "image": "j"}])
    assert (await judge.tell("pods", newer, old))[0]
    helper = pod("x", hostPID=True, containers=[{"name": "c", "image": "i"}], ephemeralContainers=[{"name": "e", "image": "k"}])
    assert (await judge.tell("pods", helper, old, subresource="ephemeralcontainers"))[0]
    assert await judge.tell("pods", newer, old, subresource="status") == ("", [], {})
    assert await judge.tell("pods", same, old, subresource="resize") == ("", [], {})


async def test_exemptions_by_namespace_user_and_runtime_class() -> None:
    for configuration, why in (
        (PodSecurityConfiguration(namespaces=frozenset(("ns",))), "namespace"),
        (PodSecurityConfiguration(usernames=frozenset(("alice",))), "user"),
        (PodSecurityConfiguration(runtime_classes=frozenset(("gvisor",))), "runtimeClass"),
    ):
        judge = Judge(configuration, enforce="restricted")
        assert await judge.tell("pods", pod("x", runtimeClassName="gvisor")) == ("", [], {"exempt": why})
    judge = Judge(PodSecurityConfiguration(namespaces=frozenset(("ns",))))
    named = {"metadata": {"name": "ns", "labels": labels(enforce="restricted", audit_version="v1.9")}}
    told = 'namespace "ns" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored'
    for old in (None, {"metadata": {"name": "ns"}}):
        assert await judge.tell("namespaces", named, old, namespace="") == ("", [told], {})


async def test_a_namespace_is_tightened(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge()
    owner = {"ownerReferences": [{"kind": "ReplicaSet", "uid": "u", "controller": True}]}
    for name, metadata, spec in (
        ("c", {}, {"hostPID": True}),
        ("d", owner, {"hostPID": True}),
        ("e", owner, {"hostPID": True}),
        ("a", {}, {"hostIPC": True, "volumes": [{"name": "v", "hostPath": {}}]}),
        ("fine", {}, {}),
    ):
        judge.objects.add("", "pods", name, "ns", metadata=metadata, spec={"containers": [], **spec})
    new = {"metadata": {"name": "ns", "labels": labels(enforce="baseline")}}
    head = 'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"'
    bare: Object = {"metadata": {"name": "ns"}}
    each = ["a: host namespaces, hostPath volumes", "c (and 2 other pods): host namespaces"]
    assert (await judge.tell("namespaces", new, bare, namespace=""))[1] == [head, *each]
    monkeypatch.setattr(pod_security, "PODS_CHECKED_MAX", 4)
    first = "new PodSecurity enforce level only checked against the first 4 of 5 existing pods"
    assert (await judge.tell("namespaces", new, bare, namespace=""))[1] == [first, head, each[0], "c (and 1 other pod): host namespaces"]
    for before in ("baseline", "restricted"):
        strict = {"metadata": {"name": "ns", "labels": labels(enforce=before)}}
        assert (await judge.tell("namespaces", new, strict, namespace=""))[1] == [], "it is not tightened"
    other = {"metadata": {"name": "ns", "labels": labels(enforce="restricted", enforce_version="v1.9")}}
    assert (await judge.tell("namespaces", new, other, namespace=""))[1], "another version may be stricter"


async def test_wrong_labels_may_stay_and_not_come() -> None:
    judge = Judge()
    wrong = {"metadata": {"name": "ns", "labels": labels(enforce="strong")}}
    refused, _, _ = await judge.tell("namespaces", wrong, namespace="")
    assert refused.endswith('Invalid value: "strong": must be one of privileged, baseline, restricted')
    assert (await judge.tell("namespaces", wrong, wrong, namespace=""))[0] == ""
    assert (await judge.tell("namespaces", wrong, {"metadata": {"name": "ns", "labels": labels(warn="x")}}, namespace=""))[0]
