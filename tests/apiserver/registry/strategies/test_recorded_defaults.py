"""Whole objects as a real kube-apiserver 1.20 stored them, of rich ones with every probe, handler and source of volumes.

``defaulted-1.20.json.gz`` has the path of the collection, what was sent and what was stored, without what no two servers have in common.
What later releases default beyond it is in ``LATER``, each with the release.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery import release
from tests.apiserver.registry.strategies.golden_steps import Server

RECORDED: list[dict[str, Any]] = json.loads(gzip.decompress((Path(__file__).parent / "defaulted-1.20.json.gz").read_bytes()))
#: what the recorder's or this test's stand-in for admission sets, and addresses that were given
ELSEWHERE = re.compile(
    r"^metadata\.(uid|creationTimestamp|resourceVersion|generation|namespace)"
    r"|^spec\.(tolerations|serviceAccount(Name)?|priority|preemptionPolicy|taints|clusterIPs?|ports\[\d+\]\.nodePort|healthCheckNodePort)\b"
)
#: what every release that can be served adds to it, and the later ones: by the first minor that does
LATER = (
    (25, r"^spec\.(internalTrafficPolicy|ipFamilies|ipFamilyPolicy|allocateLoadBalancerNodePorts): "),
    (25, r"^spec\.updateStrategy\.rollingUpdate\.maxSurge: 0"),
    (25, r"^status\.availableReplicas: 0"),
    (25, r"^spec\.(completionMode: NonIndexed|suspend: False)"),
    (25, r"^spec\.(requiresRepublish|seLinuxMount|storageCapacity): False"),
    (27, r"^spec\.persistentVolumeClaimRetentionPolicy: {'whenDeleted': 'Retain', 'whenScaled': 'Retain'}"),
    (29, r"^spec\.podReplacementPolicy: TerminatingOrFailed"),
    (29, r"^status\.lastPhaseTransitionTime: "),
)


def differences(found: Any, stored: Any, path: str = "") -> list[str]:
    """The places where the two differ, as ``path: found, not stored``; null and missing are the same."""
    if isinstance(found, dict) and isinstance(stored, dict):
        keys = sorted({**found, **stored})
        return [d for key in keys for d in differences(found.get(key), stored.get(key), f"{path}.{key}".lstrip("."))]
    if isinstance(found, list) and isinstance(stored, list) and len(found) == len(stored):
        return [d for i, pair in enumerate(zip(found, stored, strict=True)) for d in differences(*pair, f"{path}[{i}]")]
    return [] if found == stored else [f"{path}: {found}, not {stored}"]


@pytest.mark.parametrize("minor", [25, 28, 37])
@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['sent']['kind']}-{case['sent']['metadata']['name']}")
def test_objects_are_defaulted_as_by_a_real_server(case: dict[str, Any], minor: int) -> None:
    with release.serving(minor):
        answer = Server().request("POST", case["path"], case["sent"], {})
    assert answer is not None
    assert answer.code == 201, answer.body
    found = [text for text in differences(answer.body, case["stored"]) if not ELSEWHERE.search(text)]
    known = [pattern for since, pattern in LATER if since <= minor]
    assert [text for text in found if not any(re.search(pattern, text) for pattern in known)] == []
