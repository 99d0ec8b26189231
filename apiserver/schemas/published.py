"""Reading the published schemas out of the package ``kubernetes-validate``: one JSON document for each Kubernetes version.

The package's documents are OpenAPI definitions bent into JSON schema: optional types are unions with null, references point into
``$defs``, and ``apiVersion`` and ``kind`` are pinned by an enum.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, TypeAlias

import orjson

Schema: TypeAlias = dict[str, Any]

REFERENCE_PREFIX = "#/$defs/"
GVK = "x-kubernetes-group-version-kind"


def read_definitions(kubernetes_version: str) -> dict[str, Schema]:
    """The definitions of one version by name (``io.k8s.api.core.v1.Pod``). Raises FileNotFoundError for a version without any."""
    return dict(orjson.loads(_path(kubernetes_version).read_bytes())["$defs"])


def _path(kubernetes_version: str) -> Path:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package kubernetes-validate, which holds the schemas, is not installed")
    root = Path(spec.submodule_search_locations[0])
    return root / "kubernetes-json-schema" / f"v{kubernetes_version}.0-local" / "_definitions.json"


def short_name(definition: str) -> str:
    """``core.v1.Pod`` of ``io.k8s.api.core.v1.Pod``: group, version and kind, by which facts about Go types are kept."""
    return ".".join(definition.split(".")[-3:])


def json_type(schema: Schema) -> str:
    """The one type that a schema names beside null; "" where it names none."""
    found = schema.get("type", "")
    if isinstance(found, list):
        return next((str(t) for t in found if t != "null"), "")
    return str(found)


def reference(schema: Schema) -> str:
    """The name of the definition that a schema refers to, "" if it does not."""
    return str(schema.get("$ref", "")).removeprefix(REFERENCE_PREFIX)
