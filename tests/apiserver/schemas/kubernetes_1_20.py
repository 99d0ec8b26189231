"""The protobuf table as Kubernetes 1.20 had it, where that shows in bytes: fields that are always written and came or went since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from apiserver.schemas.protobuf import encoding, table
from apiserver.schemas.protobuf.table import EXTENSIONS, META, Field

_CORE, _APPS = "k8s.io.api.core.v1.", "k8s.io.api.apps.v1."

#: message → fields that it did not have
CAME_SINCE = {
    f"{_APPS}StatefulSetSpec": {"minReadySeconds"},
    f"{_APPS}StatefulSetStatus": {"availableReplicas"},
    "k8s.io.api.batch.v1.JobStatus": {"completedIndexes"},
    f"{_CORE}PodCondition": {"observedGeneration"},
    f"{_CORE}PodStatus": {"observedGeneration", "resize"},
    f"{EXTENSIONS}v1.CustomResourceDefinitionCondition": {"observedGeneration"},
    f"{EXTENSIONS}v1.CustomResourceDefinitionStatus": {"observedGeneration"},
    f"{META}ManagedFieldsEntry": {"subresource"},
}
#: ``metadata.clusterName``, which was always empty
WENT_SINCE = replace(next(f for f in table.fields_of(f"{META}ObjectMeta") if f.name == "uid"), name="clusterName", number=15)


@pytest.fixture
def table_of_1_20(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    newer = table.fields_of

    def fields_of(message: str) -> tuple[Field, ...]:
        fields = [field for field in newer(message) if field.name not in CAME_SINCE.get(message, ())]
        if message == f"{META}ObjectMeta":
            fields.append(WENT_SINCE)
        return tuple(sorted(fields, key=lambda field: field.number))

    monkeypatch.setattr(table, "fields_of", fields_of)
    monkeypatch.setattr(encoding, "_writers", {})
    yield
