"""What plugins are told by a file: defaults and exemptions of PodSecurity, what a quota has to cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.admission import configuration
from apiserver.admission.plugins.certificates import ClusterTrustBundleAttest
from apiserver.admission.plugins.pod_security import PodSecurity
from apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from apiserver.admission.plugins.resource_quota import ResourceQuota
from apiserver.authentication.user import UserInfo
from apiserver.authorization.static import AlwaysAllow, AlwaysDeny
from apiserver.machinery.config_file import ConfigFileError
from apiserver.machinery.status import StatusError
from tests.fakes.admission import pod, request, run
from tests.fakes.object_getter import FakeObjects

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
POD_SECURITY = """\
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest, warn: restricted, audit: restricted}
    exemptions: {usernames: [trusted], namespaces: [kube-system], runtimeClasses: [sandbox]}
"""
QUOTA = """\
apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: persistentvolumeclaims
  matchContains: [gold.storageclass]
- resource: pods
  matchScopes: [{scopeName: PriorityClass, operator: In, values: [critical]}]
"""
PRIVILEGED: Any = {"hostNetwork": True}


def loaded(directory: Path, text: str) -> configuration.AdmissionConfiguration:
    file = directory / "admission.yaml"
    file.write_text(HEAD + text)
    return configuration.load(file)


def world(*namespaces: str, **labels: str) -> FakeObjects:
    objects = FakeObjects()
    for namespace in namespaces:
        objects.add("", "namespaces", namespace, metadata={"labels": labels})
    return objects


async def annotations_of(plugin: PodSecurity, **more: Any) -> dict[str, str]:
    attributes = request("pods", pod(**more.pop("spec", {})), **more)
    found: dict[str, str] = {}
    attributes.annotate = found.__setitem__
    await run(plugin, attributes)
    return found


async def test_defaults_bind_namespaces_that_do_not_say(tmp_path: Path) -> None:
    said = loaded(tmp_path, POD_SECURITY).pod_security
    plugin = PodSecurity(world("ns"), said)
    with pytest.raises(StatusError, match='violates PodSecurity "baseline:latest": host namespaces'):
        await run(plugin, request("pods", pod(**PRIVILEGED)))
    own = PodSecurity(world("ns", **{"pod-security.kubernetes.io/enforce": "privileged"}), said)
    attributes = request("pods", pod(**PRIVILEGED))
    await run(own, attributes)
    assert [text.partition(":l")[0] for text in attributes.warnings] == ['would violate PodSecurity "restricted']
    found = await annotations_of(PodSecurity(world("ns"), said))
    assert found["pod-security.kubernetes.io/enforce-policy"] == "baseline:latest"
    assert found["pod-security.kubernetes.io/audit-violations"].startswith('would violate PodSecurity "restricted:latest": ')


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"namespace": "kube-system"}, "namespace"),
        ({"user": UserInfo(name="trusted")}, "user"),
        ({"spec": {"runtimeClassName": "sandbox"}}, "runtimeClass"),
    ],
)
async def test_who_is_exempt_is_not_judged(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    plugin = PodSecurity(world("ns", "kube-system"), loaded(tmp_path, POD_SECURITY).pod_security)
    more = {**more, "spec": {**PRIVILEGED, **more.get("spec", {})}}
    assert await annotations_of(plugin, **more) == {"pod-security.kubernetes.io/exempt": why}


async def test_what_only_a_quota_lets_through(tmp_path: Path) -> None:
    (tmp_path / "quota.yaml").write_text(QUOTA)
    limited = loaded(tmp_path, "- {name: ResourceQuota, path: quota.yaml}\n").limited_resources
    objects = world("ns")

    class Writer:
        async def update_used(self, quota: Any, used: dict[str, str]) -> Any:
            return {**quota, "status": {**quota["status"], "used": used}}

    plugin = ResourceQuota(objects, Writer(), lambda: 0.0, limited)
    claim = {"metadata": {"name": "c"}, "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}
    with pytest.raises(StatusError, match=r"insufficient quota to consume: gold\.storageclass\.storage\.k8s\.io/persistent"):
        await run(plugin, request("persistentvolumeclaims", claim))
    await run(plugin, request("persistentvolumeclaims", {**claim, "spec": {**claim["spec"], "storageClassName": "tin"}}))  # type: ignore[dict-item]
    critical = pod(priorityClassName="critical")
    with pytest.raises(StatusError, match=r"insufficient quota to match these scopes: \[{PriorityClass In \[critical\]}\]"):
        await run(plugin, request("pods", critical))
    await run(plugin, request("pods", pod()))
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["critical"]}
    hard = {"pods": "1"}
    spec = {"hard": hard, "scopeSelector": {"matchExpressions": [scope]}}
    objects.add("", "resourcequotas", "q", "ns", spec=spec, status={"hard": hard, "used": {"pods": "0"}})
    await run(plugin, request("pods", critical))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- name: Priority\n", "has no configuration"),
        (POD_SECURITY.replace("enforce: baseline", "enforce: strict"), "defaults.enforce: must be one of privileged, baseline, restricted"),
        (POD_SECURITY.replace("enforce-version: latest", "enforce-version: new"), 'must be "latest" or "v1.x"'),
        (POD_SECURITY.replace("usernames", "users"), "unknown field"),
        (POD_SECURITY.replace("kind: PodSecurityConfiguration", "kind: Other"), "kind PodSecurityConfiguration"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        loaded(tmp_path, text)
    assert why in str(caught.value)


async def test_roots_of_a_signer_are_named_by_who_may_attest_for_it() -> None:
    bundle = {"metadata": {"name": "b"}, "spec": {"signerName": "example.com/a", "trustBundle": "…"}}
    where: Any = {"group": "certificates.k8s.io", "namespace": ""}
    await run(ClusterTrustBundleAttest(AlwaysAllow()), request("clustertrustbundles", bundle, **where))
    refuses = ClusterTrustBundleAttest(AlwaysDeny())
    with pytest.raises(StatusError, match='user not permitted to attest for signerName "example'):
        await run(refuses, request("clustertrustbundles", bundle, **where))
    await run(refuses, request("clustertrustbundles", bundle, bundle, **where))
    other = {**bundle, "spec": {**bundle["spec"], "signerName": "example.com/b"}}
    with pytest.raises(StatusError, match="changing signerName is forbidden"):
        await run(ClusterTrustBundleAttest(AlwaysAllow()), request("clustertrustbundles", other, bundle, **where))
    await run(refuses, request("clustertrustbundles", {"metadata": {"name": "b"}, "spec": {"trustBundle": "…"}}, **where))


async def test_a_pod_gets_the_zone_of_its_node() -> None:
    objects = FakeObjects()
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "1"}
    objects.add("", "nodes", "n", metadata={"labels": labels})
    binding = {"metadata": {"name": "a", "labels": {"own": "1"}}, "target": {"kind": "Node", "name": "n"}}
    zoned = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
    await run(PodTopologyLabels(objects, 35), request("pods", binding, subresource="binding"))
    assert binding["metadata"]["labels"] == {"own": "1", **zoned}  # type: ignore[index]
    bound = pod(nodeName="n")
    await run(PodTopologyLabels(objects, 35), request("pods", bound))
    assert bound["metadata"]["labels"] == zoned
    before = pod(nodeName="n")
    await run(PodTopologyLabels(objects, 34), request("pods", before))
    assert "labels" not in before["metadata"]
    await run(PodTopologyLabels(objects, 35), request("pods", pod(nodeName="gone")))
