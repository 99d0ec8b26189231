"""``TypeChecker``: the expressions of a ValidatingAdmissionPolicy against the schemas of what its rules name (apiserver
``admission/plugin/policy/validating/typechecking.go``).

A policy is taken without types, since what it is about may come later; this tells its author afterwards, in the policy's status, which
fields are not there and which values do not go together. It alters nothing that the policy does. Rules with ``*`` and subresources are not
looked at, and of one rule ten kinds at most.

Quantities may be anything here; upstream leaves fields of that type out, and warns of each expression that reads ``resources.limits``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from apiserver import cel
from apiserver.admission import expressions
from apiserver.admission.policies.validating import declared_type
from apiserver.machinery.types import Shape, Type

#: kinds that are looked at for one rule
KINDS_MAX = 10
#: bytes of warnings that a status takes; beyond it no further expression is told of
WARNINGS_BYTES_MAX = 256 * 1024

Part = Mapping[str, Any]
#: group, version, kind
Kind = tuple[str, str, str]

_SCALARS = {
    Shape.INTEGER: cel.INT,
    Shape.NUMBER: cel.DOUBLE,
    Shape.BOOLEAN: cel.BOOL,
    Shape.TIME: cel.TIMESTAMP,
    Shape.MICRO_TIME: cel.TIMESTAMP,
    Shape.INT_OR_STRING: cel.DYN,
    Shape.QUANTITY: cel.DYN,
}
_FORMATS = {"byte": cel.BYTES, "duration": cel.DURATION, "date": cel.TIMESTAMP, "date-time": cel.TIMESTAMP}
_META = {"apiVersion": Type(shape=Shape.STRING), "kind": Type(shape=Shape.STRING)}


class TypeChecker:
    """``kind_of``: group, version and resource to the kind; ``type_of`` to its type; each None where there is no such thing."""

    def __init__(self, minor: int, kind_of: Callable[[str, str, str], str | None], type_of: Callable[[str, str, str], Type | None]) -> None:
        self._minor = minor
        self._kind_of = kind_of
        self._type_of = type_of

    def kinds(self, spec: Part) -> list[Kind]:
        """What the rules name, in order."""
        found: set[Kind] = set()
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
            count = 0
            for group, version, resource in _named(rule):
                kind = self._kind_of(group, version, resource)
                if kind is None:
                    continue
                found.add((group, version, kind))
                count += 1
                if count == KINDS_MAX:
                    return sorted(found)
        return sorted(found)

    def prepared(self, spec: Part) -> Checks:
        """The types are looked up now; what is done with them may be done beside the loop."""
        typed = [(kind, type_) for kind in self.kinds(spec) if (type_ := self._type_of(*kind)) is not None]
        said = spec.get("paramKind")
        params: cel.Type | None = None
        if said is not None:
            group, _, version = str(said.get("apiVersion") or "").rpartition("/")
            kind = str(said.get("kind") or "")
            type_ = self._type_of(group, version, kind)
            params = cel.DYN if type_ is None else _root(type_, kind)
        return Checks(spec, self._minor, typed, params)


class Checks:
    """Of one policy. ``params``: None where it takes no parameters."""

    def __init__(self, spec: Part, minor: int, typed: list[tuple[Kind, Type]], params: cel.Type | None) -> None:
        self._spec = spec
        self._minor = minor
        self._typed = typed
        self._params = params

    @property
    def kinds(self) -> int:
        """How many kinds there are to check each expression against."""
        return len(self._typed)

    def warnings(self) -> Iterator[dict[str, str]]:
        """``expressionWarnings``."""
        checks = [(kind, _Check(self._spec, self._environment(type_, kind[2]))) for kind, type_ in self._typed]
        left = WARNINGS_BYTES_MAX
        for position, said in enumerate(self._spec.get("validations") or ()):
            for field in ("expression", "messageExpression"):
                if not said.get(field) or left <= 0:
                    continue
                text = "\n".join(f"{_told(kind)}: {issues}\n" for kind, check in checks if (issues := check.issues(said[field])))
                left -= len(text.encode())
                if text:
                    yield {"fieldRef": f"spec.validations[{position}].{field}", "warning": text}

    def _environment(self, type_: Type, kind: str) -> cel.Environment:
        seen = _root(type_, kind)
        typed: dict[str, cel.Type] = {"object": seen, "oldObject": seen}
        if self._params is not None:
            typed["params"] = self._params
        return expressions.request_environment(self._minor, params=self._params is not None, authorizer=True).extended(typed)


class _Check:
    """Of one policy against one kind."""

    def __init__(self, spec: Part, environment: cel.Environment) -> None:
        fields: dict[str, cel.Type] = {}
        self._environment = environment.extended({"variables": cel.ObjectType("kubernetes.variables", fields, nulls=True)})
        for said in spec.get("variables") or ():
            fields[said.get("name") or ""] = self._type(said.get("expression") or "")

    def _type(self, source: str) -> cel.Type:
        try:
            return declared_type(self._environment.compile(source).result_type)
        except cel.CompileError:
            return cel.DYN

    def issues(self, source: str) -> str:
        try:
            self._environment.compile(source)
        except cel.ProgramError:
            return ""  # its types are right
        except cel.CompileError as error:
            return str(error)
        return ""


def _named(rule: Part) -> Iterator[tuple[str, str, str]]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield group, version, resource


def _told(kind: Kind) -> str:
    group, version, name = kind
    return f"{group}/{version}, Kind={name}"


# --- types as expressions see them ------------------------------------------------------------------------------------------------------


def _root(type_: Type, kind: str) -> cel.Type:
    if type_.shape is not Shape.STRUCT:
        return _seen(type_, kind) or cel.DYN
    return _struct(type_, kind, _META)


def _struct(type_: Type, name: str, more: Mapping[str, Type] | None = None) -> cel.Type:
    def fields() -> dict[str, cel.Type]:
        found: dict[str, cel.Type] = {}
        for field, sub in {**(more or {}), **type_.fields}.items():
            identifier, seen = cel.escape(field), _seen(sub, f"{name}.{field}")
            if identifier is not None and seen is not None:
                found[identifier] = seen
        return found

    return cel.ObjectType(name, fields)


def _seen(type_: Type, name: str) -> cel.Type | None:
    """None where expressions do not see values of the type."""
    if type_.shape is Shape.STRUCT or (type_.shape is Shape.ANY and type_.preserve_unknown):
        return _struct(type_, name)
    if type_.shape in (Shape.LIST, Shape.MAP):
        element = None if type_.element is None else _seen(type_.element, f"{name}.@elem")
        if element is None:
            return None
        return cel.list_of(element) if type_.shape is Shape.LIST else cel.map_of(cel.STRING, element)
    if type_.shape is Shape.STRING:
        return _FORMATS.get(type_.format, cel.STRING)
    return _SCALARS.get(type_.shape)
