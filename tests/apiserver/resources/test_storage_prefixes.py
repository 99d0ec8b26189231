"""Where objects are stored: as kube-apiserver has them, so that each finds what the other has written."""

from __future__ import annotations

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.resources.table import ResourceTable

#: kube-apiserver's exceptions from the rule that a resource is stored under its plural (``SpecialDefaultResourcePrefixes``), and what its
#: two delegates, for definitions and for the aggregation of APIs, store with their group
EXCEPTIONS = {
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "replicationcontrollers"): "controllers",
    ("", "services"): "services/specs",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}


@pytest.mark.parametrize("kubernetes_version", [KUBERNETES_VERSIONS[0], KUBERNETES_VERSIONS[-1]])
def test_every_resource_is_stored_where_kube_apiserver_stores_it(kubernetes_version: str) -> None:
    for info in ResourceTable(kubernetes_version):
        assert info.storage_prefix == EXCEPTIONS.get((info.group, info.resource), info.resource), info
