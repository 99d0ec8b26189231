"""Fields of pods that newer releases have, and what in a pod must go together."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.objects import Object
from tests.apiserver.registry.strategies.kinds import create_errors, created, of, rules

PODS = rules("Pod")


def pod(*, main: Object | None = None, **spec: Any) -> Object:
    return of({"containers": [{"name": "a", "image": "b", **(main or {})}], **spec})


WINDOWS = {"name": "windows"}
LINUX = {"name": "linux"}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (
            pod(hostUsers=False, hostNetwork=True, hostIPC=True),
            [
                "spec.hostNetwork: Forbidden: when `pod.Spec.HostUsers` is false",
                "spec.HostIPC: Forbidden: when `pod.Spec.HostUsers` is false",
            ],
        ),
        (pod(hostUsers=True, hostNetwork=True), []),
        (
            pod(os=WINDOWS, hostPID=True, securityContext={"fsGroup": 1}, main={"securityContext": {"privileged": False}}),
            [
                "spec.hostPID: Forbidden: cannot be set for a windows pod",
                "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
                "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
            ],
        ),
        (
            pod(os=LINUX, main={"securityContext": {"windowsOptions": {"runAsUserName": "a"}}}),
            ["spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"],
        ),
        (
            pod(securityContext={"windowsOptions": {"hostProcess": True}}),
            ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"],
        ),
        (
            pod(
                hostNetwork=True,
                main={"securityContext": {"windowsOptions": {"hostProcess": True}}},
                initContainers=[{"name": "i", "image": "b"}],
            ),
            [
                'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
            ],
        ),
        (
            pod(hostNetwork=True, securityContext={"sysctls": [{"name": "net/ipv4.tcp_syncookies", "value": "1"}]}),
            [
                'spec.securityContext.sysctls[0].name: Invalid value: "net/ipv4.tcp_syncookies": may not be specified when '
                "'hostNetwork' is true"
            ],
        ),
        (
            pod(hostnameOverride="a" * 65, setHostnameAsFQDN=True),
            [
                "spec.hostnameOverride: Too long: may not be more than 64 bytes",
                "spec.hostnameOverride: Forbidden: cannot be set when `setHostnameAsFQDN` is true",
            ],
        ),
    ],
)
def test_what_goes_together(obj: Object, errors: list[str]) -> None:
    assert create_errors(PODS, obj) == errors


@pytest.mark.parametrize(
    ("main", "spec", "errors"),
    [
        (
            {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
            {},
            ["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        ),
        (
            {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Stop", "exitCodes": {"operator": "Is"}}]},
            {},
            [
                'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", '
                '"RestartAllContainers"',
                'spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Is": supported values: "In", "NotIn"',
            ],
        ),
        (
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            {"restartPolicy": "Never"},
            ["spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is 'Never'"],
        ),
        (
            {"lifecycle": {"stopSignal": "SIGTERM"}},
            {},
            ["spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"],
        ),
        (
            {"lifecycle": {"stopSignal": "SIGUSR1"}},
            {"os": WINDOWS},
            [
                'spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGUSR1": supported values: "SIGKILL", "SIGTERM"',
            ],
        ),
        ({"lifecycle": {"stopSignal": "SIGRTMIN+3"}}, {"os": LINUX}, []),
        (
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "../a", "key": "k"}}}]},
            {},
            ["spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'"],
        ),
    ],
)
def test_containers(main: Object, spec: Object, errors: list[str]) -> None:
    assert create_errors(PODS, pod(main=main, **spec)) == errors


def test_a_pod_asks_for_no_less_than_its_containers() -> None:
    main = {"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}}
    sidecar = {"name": "s", "image": "b", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    first = {"name": "f", "image": "b", "resources": {"requests": {"cpu": "1200m"}}}
    whole = {"requests": {"cpu": "1500m"}, "limits": {"memory": "2Gi"}}
    assert create_errors(PODS, pod(main=main, initContainers=[first, sidecar], resources=whole)) == []
    assert create_errors(PODS, pod(main=main, initContainers=[sidecar, first], resources=whole)) == [
        'spec.resources.requests[cpu]: Invalid value: "1500m": must be greater than or equal to aggregate container requests of 1700m'
    ]
    small = {"limits": {"memory": "1Gi", "example.com/gpu": 1}, "claims": [{"name": "c"}]}
    unsupported = 'Unsupported value: "example.com/gpu": supported values: "cpu", "hugepages-", "memory"'
    assert create_errors(PODS, pod(main=main, resources=small)) == [
        "spec.resources.claims: Forbidden: claims cannot be set for Resources at pod-level",
        f"spec.resources.limits[example.com/gpu]: {unsupported}",
        f"spec.resources.requests[example.com/gpu]: {unsupported}",
        'spec.resources.requests[memory]: Invalid value: "1Gi": must be greater than or equal to aggregate container requests of 2Gi',
        'spec.containers[0].resources.limits[memory]: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi',
    ]


def test_label_keys_become_requirements_on_the_pods_own_values() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash"],
        "mismatchLabelKeys": ["team"],
    }
    obj = pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    obj["metadata"]["labels"] = {"hash": "1", "team": "t"}
    stored = created(PODS, obj)
    found = stored["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert found["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["1"]},
        {"key": "team", "operator": "NotIn", "values": ["t"]},
    ]
    both = {**term, "mismatchLabelKeys": ["hash"]}
    assert create_errors(PODS, pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [both]}})) == [
        'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: Invalid value: "hash": exists in '
        "both matchLabelKeys and mismatchLabelKeys"
    ]


def test_a_pod_certificate_says_what_for_and_where() -> None:
    source = {"podCertificate": {"signerName": "example.com/s", "keyType": "RSA1024", "maxExpirationSeconds": 1}}
    assert create_errors(PODS, pod(volumes=[{"name": "v", "projected": {"sources": [source]}}])) == [
        'spec.volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "RSA1024": supported values: "ECDSAP256", '
        '"ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096"',
        "spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 1: must be in the range [3600, 7862400]",
        "spec.volumes[0].projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and "
        "certificateChainPath",
    ]
