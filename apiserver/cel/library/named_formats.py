"""Named formats: `format.dns1123Label().validate(text)` (Kubernetes' library/format.go, since 1.31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.apiextensions import formats
from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.library import urls
from apiserver.cel.runtime_types import register
from apiserver.cel.values import NONE, OptionalValue
from apiserver.machinery import names

SINCE = 31
Validate = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format; `pattern_size` stands for the length of its pattern in the costs."""

    name: str
    validate: Validate
    pattern_size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


register(Format, types.FORMAT)


def _name_rule(rule: str, prefix: bool) -> Validate:
    """A rule for whole names, or for the beginnings that names are generated from."""
    check = names.NAME_RULES[rule]
    return lambda text: check(text, prefix)


def _uri(text: str) -> list[str]:
    try:
        urls.parse(text, True)
    except EvaluationError as error:
        return [str(error)]
    return []


def _checked(name: str, message: str) -> Validate:
    def validate(text: str) -> list[str]:
        check = formats.check_of(name, SINCE)
        assert check is not None, name
        return [] if check(text) else [message]

    return validate


FORMATS = {
    "dns1123Label": Format("DNS1123Label", _name_rule("dns_label", False), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _name_rule("dns_subdomain", False), 60),
    "dns1035Label": Format("DNS1035Label", _name_rule("dns_1035_label", False), 30),
    "qualifiedName": Format("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _name_rule("dns_label", True), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _name_rule("dns_subdomain", True), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _name_rule("dns_1035_label", True), 30),
    "labelValue": Format("LabelValue", names.label_value, 40),
    "uri": Format("URI", _uri, 1000),
    "uuid": Format("uuid", _checked("uuid", "does not match the UUID format"), 64),
    "byte": Format("byte", _checked("byte", "invalid base64"), 84),
    "date": Format("date", _checked("date", "invalid date"), 121),
    "datetime": Format("datetime", _checked("datetime", "invalid datetime"), 121),
}


def _validate(of: Format, text: str) -> OptionalValue:
    messages = of.validate(text)
    return OptionalValue(messages) if messages else NONE


def _named(name: str) -> OptionalValue:
    found = FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def overloads(minor: int) -> list[Overload]:
    """The functions, where the version has them."""
    if minor < SINCE:
        return []
    constants = [overload(f"format.{name} format.{name}(): Format", lambda found=found: found) for name, found in FORMATS.items()]
    return [
        *constants,
        overload("format-validate Format.validate(string): optional(list(string))", _validate),
        overload("format-named format.named(string): optional(Format)", _named),
    ]
