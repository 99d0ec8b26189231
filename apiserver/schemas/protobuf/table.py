"""Facts about Kubernetes' messages: the numbers, types and zeros of their fields, and which message a kind has.

``fields.jsonl.gz`` is made of the published ``generated.proto`` files and Go types of k8s.io/api, apimachinery, apiextensions-apiserver
and kube-aggregator (1.36; what 1.25 to 1.35 had beside it, and what 1.37 adds, is added) by ``tests/apiserver/schemas/protobuf_facts.py``.
A line is ``message⇥{JSON name: [number, type, flags]}``, the flags:

``r`` repeated; ``i`` inlined, its fields stand in the parent's JSON; ``p`` can be nil (a pointer, bytes, a list that is a message): it is
written only where it is there, all else is always written; ``z`` a zero is kept in JSON (a pointer, or no ``omitempty``).
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

MAGIC = b"k8s\x00"

META = "k8s.io.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions."
RUNTIME = "k8s.io.apimachinery.pkg.runtime."
QUANTITY = "k8s.io.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"

SCALARS = frozenset(("string", "bytes", "bool", "int32", "int64", "double"))

#: Kinds of no group: their messages are meta/v1's whatever the apiVersion says.
_META_KINDS = frozenset(
    (
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "Status",
        "UpdateOptions",
    )
)
#: API group → the packages of its messages, without the version
_PACKAGES = {
    "": "k8s.io.api.core",
    "apiextensions.k8s.io": EXTENSIONS.rstrip("."),
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
    "internal.apiserver.k8s.io": "k8s.io.api.apiserverinternal",
    "meta.k8s.io": "k8s.io.apimachinery.pkg.apis.meta",
} | {
    group: f"k8s.io.api.{group.partition('.')[0]}"
    for group in (
        "admissionregistration.k8s.io",
        "apidiscovery.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "lifecycle.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """``type`` is a scalar's name or a message's; of a map, that of its values (keys are strings)."""

    name: str
    number: int
    type: str
    is_map: bool
    repeated: bool
    inline: bool
    nilable: bool
    keeps_zero: bool

    @property
    def is_message(self) -> bool:
        return self.type not in SCALARS


@lru_cache(maxsize=1024)
def message_of(api_version: str, kind: str) -> str | None:
    """The full name of a kind's message, None where none is published."""
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS:
        return META + kind
    package = _PACKAGES.get(group)
    if package is None:
        return None
    name = f"{package}.{version}.{kind}"
    return name if is_published(name) else None


def is_published(message: str) -> bool:
    return _find(message) >= 0


@lru_cache(maxsize=4096)
def fields_of(message: str) -> tuple[Field, ...]:
    """In the order of their numbers. Raises KeyError for a message that is not published."""
    at = _find(message)
    if at < 0:
        raise KeyError(message)
    text = _text()
    start = text.index(b"\t", at) + 1
    rows: dict[str, list[Any]] = orjson.loads(text[start : text.index(b"\n", start)])
    found = []
    for name, (number, type_name, *rest) in rows.items():
        flags = rest[0] if rest else ""
        found.append(
            Field(
                name=name,
                number=number,
                type=type_name.removeprefix("map:"),
                is_map=type_name.startswith("map:"),
                repeated="r" in flags,
                inline="i" in flags,
                nilable="p" in flags,
                keeps_zero="z" in flags,
            )
        )
    return tuple(sorted(found, key=lambda field: field.number))


@lru_cache(maxsize=4096)
def is_list_type(message: str) -> bool:
    """Whether a message is a Go list of strings (``Verbs``, ``ExtraValue``): its JSON form is the list."""
    found = fields_of(message)
    return len(found) == 1 and found[0].name == "items" and found[0].repeated and found[0].type == "string"


def messages() -> list[str]:
    """The names of all."""
    return [line.partition(b"\t")[0].decode() for line in _text().split(b"\n") if line]


def _find(message: str) -> int:
    return _text().find(b"\n%b\t" % message.encode("utf-8", "replace"))


@lru_cache(maxsize=1)
def _text() -> bytes:
    """Kept as text, since a process needs few of the messages: as dicts it would take many times the room."""
    return b"\n" + gzip.decompress((files("apiserver.schemas.protobuf") / "fields.jsonl.gz").read_bytes())
