"""``ApplyType``: what server-side apply and managedFields need to know of a ``Type`` (structured-merge-diff ``schema``).

Five forms: a leaf (a scalar, or a list or map that is owned as a whole), a struct (declared fields), a map (any keys, one type), a keyed
list (items told apart by some of their fields) and a set (items told apart by their value). A value of which nothing is known is
*deduced*: a map is a map of deduced values, everything else a leaf.

Built once per ``Type`` and kept in it.

Values that are always there
----------------------------
Kubernetes compares Go values, not JSON. A Go struct that is not behind a pointer is always present, and so is a field that is never left
out of the JSON: on an object that does not exist yet ``spec`` of a Deployment already is an empty struct. So a Deployment's creator owns
``f:spec: {f:replicas: {}}`` without the ``.`` that would mean the struct itself. ``ApplyType.present`` names these fields. The published
schemas tell those that are required; the rest is listed here. Custom resources are plain JSON: nothing of them is always there.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from apiserver.machinery.fieldset import FieldSet
from apiserver.machinery.types import ListType, Shape, Type

_BUILTIN = "io.k8s."
#: untyped in the schemas, but there are no scalars in it; it is in every ObjectMeta, so that without this nothing would be exact
_FIELDS_V1 = ".meta.v1.FieldsV1"
_KIND_FIELDS = ("metadata", "spec", "status")

#: fields of built-in types that hold a Go struct by value (or a time, shown as null), by the end of the definition's name
_BY_VALUE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(fields.split())
        for name, fields in {
            "ObjectMeta": "creationTimestamp",
            "Container": "resources",
            "EphemeralContainer": "resources",
            "ContainerStatus": "state lastState",
            "PodTemplate": "template",
            "PodTemplateSpec": "metadata spec",
            "PersistentVolumeClaimTemplate": "metadata spec",
            "PersistentVolumeClaimSpec": "resources",
            "ServiceStatus": "loadBalancer",
            "NodeStatus": "daemonEndpoints nodeInfo",
            "NodeDaemonEndpoints": "kubeletEndpoint",
            "Event": "involvedObject source firstTimestamp lastTimestamp eventTime reportingComponent reportingInstance "
            "regarding deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp",
            "DeploymentSpec": "strategy template",
            "DaemonSetSpec": "updateStrategy template",
            "StatefulSetSpec": "updateStrategy template",
            "ReplicaSetSpec": "template",
            "JobSpec": "template",
            "JobTemplateSpec": "metadata spec",
            "CronJobSpec": "jobTemplate",
            "IngressStatus": "loadBalancer",
            "NetworkPolicySpec": "podSelector",
            "CustomResourceDefinitionSpec": "names",
            "CustomResourceDefinitionStatus": "acceptedNames",
            "VolumeAttachmentSpec": "source",
            "LimitedPriorityLevelConfiguration": "limitResponse",
            "Endpoint": "conditions",
        }.items()
    }
)

_ZERO = {Shape.STRING: "", Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.BOOLEAN: False}
#: shapes with nothing below them
SCALARS = frozenset(
    {Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.INT_OR_STRING, Shape.QUANTITY, Shape.TIME, Shape.MICRO_TIME}
)


class Form(enum.IntEnum):
    LEAF = 0
    STRUCT = 1
    MAP = 2
    KEYED = 3
    SET = 4
    DEDUCED = 5


class ApplyType:
    """``exact``: two values that Python finds equal are equal in JSON as well (nothing untyped inside, where ``1 == True`` could
    mislead). ``leaf`` and ``listed`` (a keyed list or set) say the form in brief. ``children`` are path elements and types of declared
    fields by name; ``child`` also knows of others. ``created`` is ``typed_fields``' memory of what created objects of the kind own."""

    __slots__ = ("children", "created", "element", "exact", "form", "keys", "leaf", "listed", "present", "source", "zero")

    def __init__(self, form: Form, source: Type) -> None:
        self.form = form
        self.leaf = form is Form.LEAF
        self.listed = form in (Form.KEYED, Form.SET)
        self.source = source
        self.exact = True
        self.element: ApplyType | None = None
        self.keys: tuple[Key, ...] = ()
        self.present: frozenset[str] = frozenset()
        self.zero: Any = {} if source.shape is Shape.STRUCT else _ZERO.get(source.shape)
        self.children: dict[str, tuple[str, ApplyType]] = {}
        self.created: dict[tuple[str, bytes], tuple[FieldSet, FieldSet]] = {}

    def child(self, name: str) -> tuple[str, ApplyType]:
        """The path element of a field or map entry, and its type."""
        found = self.children.get(name)
        if found is not None:
            return found
        if self.form is Form.STRUCT:
            return "f:" + name, DEDUCED if self.source.preserve_unknown else ATOMIC
        return "f:" + name, self.element or DEDUCED

    def declares(self, name: str) -> bool:
        return name in self.children


class Key:
    """A field by which the items of a keyed list are told apart; ``default`` stands for one that is left out (None: no default)."""

    __slots__ = ("default", "name", "start")

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default = default
        self.start = json.dumps(name, ensure_ascii=False) + ":"


def _simple(form: Form, *, exact: bool) -> ApplyType:
    made = ApplyType(form, Type(shape=Shape.ANY, preserve_unknown=form is Form.DEDUCED))
    made.exact = exact
    return made


#: an untyped value that is owned as a whole
ATOMIC = _simple(Form.LEAF, exact=False)
#: a value of which nothing is known
DEDUCED = _simple(Form.DEDUCED, exact=False)


def of(kind: Type | None) -> ApplyType:
    """The ``ApplyType`` of a type; of None, for kinds that have no schema, ``DEDUCED``."""
    if kind is None:
        return DEDUCED
    if kind.apply_type is None:
        _build(kind)
    made: ApplyType = kind.apply_type
    return made


def _build(kind: Type) -> None:
    """Makes the types of ``kind`` and of all that it leads to, so that ``exact`` can be told of recursive types too."""
    made: list[ApplyType] = []
    waiting = [kind]
    while waiting:
        one = waiting.pop()
        if one.apply_type is not None:
            continue
        one.apply_type = new = _make(one)
        made.append(new)
        waiting.extend(one.fields.values())
        if one.element is not None:
            waiting.append(one.element)
    for one_made in made:
        if one_made.form in (Form.MAP, Form.KEYED, Form.SET):
            element = one_made.source.element
            one_made.element = DEDUCED if element is None else element.apply_type
        elif one_made.form is Form.STRUCT:
            one_made.children = {name: ("f:" + name, field.apply_type) for name, field in one_made.source.fields.items()}
    _mark_inexact(made)


def _mark_inexact(made: list[ApplyType]) -> None:
    """Whatever leads to something inexact is inexact: repeated until nothing changes."""
    changed = True
    while changed:
        changed = False
        for one in made:
            if one.exact and not all(part.exact for part in _parts(one)):
                one.exact = False
                changed = True


def _parts(one: ApplyType) -> list[ApplyType]:
    parts: list[ApplyType] = [field.apply_type for field in one.source.fields.values()]
    if one.source.element is not None:
        parts.append(one.source.element.apply_type)
    if one.source.preserve_unknown and one.source.shape is not Shape.ANY:
        parts.append(DEDUCED)
    return parts


def is_builtin(kind: Type) -> bool:
    return kind.definition.startswith(_BUILTIN)


def _make(kind: Type) -> ApplyType:
    builtin = is_builtin(kind)
    if kind.definition.endswith(_FIELDS_V1):
        return ApplyType(Form.LEAF, kind)
    if kind.shape is Shape.ANY:
        return DEDUCED if kind.preserve_unknown and not builtin and not kind.map_is_atomic else ATOMIC
    if kind.shape in SCALARS:
        return ApplyType(Form.LEAF, kind)
    if kind.shape is Shape.LIST:
        return _make_list(kind)
    if kind.map_is_atomic or (kind.shape is Shape.STRUCT and not kind.fields and not kind.preserve_unknown):
        return ApplyType(Form.LEAF, kind)
    if kind.shape is Shape.MAP:
        return ApplyType(Form.MAP, kind)
    made = ApplyType(Form.STRUCT, kind)
    if builtin:
        made.present = _present(kind)
    return made


def _make_list(kind: Type) -> ApplyType:
    if kind.list_type is ListType.MAP and kind.list_map_keys and kind.element is not None:
        made = ApplyType(Form.KEYED, kind)
        fields = kind.element.fields
        names = sorted(kind.list_map_keys)
        made.keys = tuple(Key(n, fields[n].default if n in fields and fields[n].has_default else None) for n in names)
        return made
    return ApplyType(Form.SET if kind.list_type is ListType.SET else Form.LEAF, kind)


def _present(kind: Type) -> frozenset[str]:
    names = set(kind.required)
    if "metadata" in kind.fields and "apiVersion" in kind.fields:
        names.update(_KIND_FIELDS)
    names.update(_BY_VALUE.get(kind.definition.rpartition(".")[2], ()))
    return frozenset(names & kind.fields.keys())
