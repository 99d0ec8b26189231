"""What a definition's ``status`` has to be: which of the names that it asks for it gets, and which conditions follow (upstream
``controller/status``, ``establish``, ``apiapproval``).

    status = next_status(definition, names, now)      None: it is that already

Within a group a name belongs to the definition that had it first; resources (plural, singular, short names) and kinds (kind, list kind) are
two sorts of names. Upstream writes "the names are accepted" and, a moment later, "established"; here both are one write, since the
server serves a definition as soon as it has seen that write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any
from urllib.parse import urlsplit

from apiserver.apiextensions import conditions
from apiserver.apiextensions.conditions import Condition
from apiserver.machinery import field_errors, go_json, objects
from apiserver.machinery.objects import Object

APPROVAL_ANNOTATION = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"

_NO_CONFLICTS = Condition(conditions.NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
_NOT_ACCEPTED = Condition(conditions.ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
_ESTABLISHED = Condition(conditions.ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")


class Taken:
    """The names that the definitions of a group have, those of the one that asks among them; kept up, since a group may have a thousand."""

    def __init__(self) -> None:
        self._accepted: dict[str, Object] = {}
        #: how many times each name is had
        self.resources: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def __bool__(self) -> bool:
        """Whether there is a definition."""
        return bool(self._accepted)

    def accepted(self, definition: str) -> Object | None:
        return self._accepted.get(definition)

    def put(self, definition: str, accepted: Object) -> None:
        """``accepted``: the ``status.acceptedNames`` that the definition has now."""
        self.remove(definition)
        self._accepted[definition] = accepted
        self.resources.update(_resources(accepted))
        self.kinds.update(_kinds(accepted))

    def remove(self, definition: str) -> None:
        before = self._accepted.pop(definition, None)
        if before is not None:
            _subtract(self.resources, _resources(before))
            _subtract(self.kinds, _kinds(before))


def _resources(names: Object) -> list[str]:
    return [name for name in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())) if name]


def _kinds(names: Object) -> list[str]:
    return [name for name in (names.get("kind"), names.get("listKind")) if name]


def _subtract(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def next_status(definition: Object, names: Taken, now: str) -> Object | None:
    """``now``: RFC 3339, of conditions that change. ``definition`` is not changed."""
    before: Object = definition.get("status") or {}
    status = _with_names(definition, before, names, now)
    approval = approval_condition(definition)
    if approval is not None and not approval.is_in(definition):
        status = conditions.with_condition(status, approval, now)
    violations = structure_condition(definition)
    if violations is not None and not violations.is_in(definition):
        status = conditions.with_condition(status, violations, now)
    elif violations is None and conditions.find(definition, conditions.NON_STRUCTURAL) is not None:
        status = conditions.without_condition(status, conditions.NON_STRUCTURAL)
    return None if status is before else status


def _with_names(definition: Object, status: Object, names: Taken, now: str) -> Object:
    asked: Object = objects.get(definition, "spec", "names", default={})
    accepted: Object = status.get("acceptedNames") or {}
    if _same_names(asked, accepted) and conditions.find(definition, conditions.NAMES_ACCEPTED) is not None:
        return status
    new, verdict = _accept(asked, accepted, names)
    if not (_same_names(new, accepted) and verdict.is_in(definition)):
        status = conditions.with_condition({**status, "acceptedNames": new}, verdict, now)
    if not conditions.is_true(definition, conditions.ESTABLISHED):
        established = _ESTABLISHED if verdict.status == "True" else _NOT_ACCEPTED
        if not established.is_in(definition):
            status = conditions.with_condition(status, established, now)
    return status


def _accept(asked: Object, accepted: Object, names: Taken) -> tuple[Object, Condition]:
    """The names that the definition gets, which are its old ones where a new one is taken, and the verdict. The last conflict counts."""
    new: dict[str, Any] = {"plural": "", "kind": "", **accepted}
    verdict = _NO_CONFLICTS

    def conflict(reason: str, message: str) -> Condition:
        return Condition(conditions.NAMES_ACCEPTED, "False", reason, message)

    def take(field_name: str, reason: str, used: Container[str]) -> None:
        nonlocal verdict
        name = asked.get(field_name) or ""
        if name != (accepted.get(field_name) or "") and name in used:
            verdict = conflict(reason, _in_use(name))
        else:
            new[field_name] = name

    take("plural", "PluralConflict", names.resources)
    take("singular", "SingularConflict", names.resources)
    own = accepted.get("shortNames") or []
    conflicts = [name for name in asked.get("shortNames") or () if name not in own and name in names.resources]
    if conflicts:
        texts = list(dict.fromkeys(_in_use(name) for name in conflicts))
        verdict = conflict("ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    else:
        new["shortNames"] = asked.get("shortNames")
    take("kind", "KindConflict", names.kinds)
    take("listKind", "ListKindConflict", names.kinds)
    new["categories"] = asked.get("categories")
    return {key: value for key, value in new.items() if value or key in ("plural", "kind")}, verdict


def _in_use(name: str) -> str:
    return f"{go_json.quote(name)} is already in use"


def _same_names(a: Object, b: Object) -> bool:
    return {k: v for k, v in a.items() if v} == {k: v for k, v in b.items() if v}


# -- groups of the Kubernetes project


def is_protected(group: str) -> bool:
    return any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io"))


def approval_condition(definition: Object) -> Condition | None:
    """Groups of the project need an approval; None for other groups."""
    if not is_protected(objects.get(definition, "spec", "group", default="")):
        return None
    annotation = objects.annotations(definition).get(APPROVAL_ANNOTATION) or ""
    needed = f"protected groups must have approval annotation {go_json.quote(APPROVAL_ANNOTATION)}"
    if not annotation:
        return Condition(conditions.APPROVED, "False", "MissingAnnotation", f"{needed}, {_SEE}")
    if annotation.startswith("unapproved"):
        return Condition(conditions.APPROVED, "False", "UnapprovedAnnotation", f"not approved: {go_json.quote(annotation)}")
    if _is_url(annotation):
        return Condition(conditions.APPROVED, "True", "ApprovedAnnotation", f"approved in {annotation}")
    why = f'{needed} with either a URL or a reason starting with "unapproved", {_SEE}'
    return Condition(conditions.APPROVED, "False", "InvalidAnnotation", why)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc) and text.isprintable() and " " not in text


# -- definitions of old


def structure_condition(definition: Object) -> Condition | None:
    """Definitions that were made before schemas had to be structural may have others, and say so; None for all of today's. Those that
    keep unknown fields are the only ones that could: for the others a write has checked it."""
    if not objects.get(definition, "spec", "preserveUnknownFields"):
        return None
    from apiserver.apiextensions import definition_structure  # hardly ever needed

    errors = [field_errors.invalid("spec.preserveUnknownFields", True, "must be false")]
    for position, version in enumerate(objects.get(definition, "spec", "versions", default=())):
        schema = objects.get(version, "schema", "openAPIV3Schema")
        if schema is not None:
            errors += definition_structure.validate(schema, f"spec.versions[{position}].schema.openAPIV3Schema")
    texts = list(dict.fromkeys(error.text() for error in errors))
    return Condition(conditions.NON_STRUCTURAL, "True", "Violations", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
