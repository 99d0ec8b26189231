"""CEL in an AuthorizationConfiguration: conditions over ``request`` (kubernetes.SubjectAccessReviewSpec) on which a webhook is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from apiserver import cel
from apiserver.authorization.authorization_file import ConditionCompileError
from apiserver.authorization.webhook import ConditionError, Conditions

_RESOURCE_TEXTS = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


@lru_cache(maxsize=1)
def _environment() -> cel.Environment:
    texts = cel.list_of(cel.STRING)
    requirement = cel.ObjectType("kubernetes.SelectorRequirement", {"key": cel.STRING, "operator": cel.STRING, "values": texts})

    def selector(name: str) -> cel.ObjectType:
        return cel.ObjectType(f"kubernetes.{name}", {"rawSelector": cel.STRING, "requirements": cel.list_of(requirement)})

    resource: dict[str, cel.Type] = dict.fromkeys(_RESOURCE_TEXTS, cel.STRING)
    resource |= {"fieldSelector": selector("FieldSelectorAttributes"), "labelSelector": selector("LabelSelectorAttributes")}
    path = {"path": cel.STRING, "verb": cel.STRING}
    spec = cel.ObjectType(
        "kubernetes.SubjectAccessReviewSpec",
        {
            "resourceAttributes": cel.ObjectType("kubernetes.ResourceAttributes", resource),
            "nonResourceAttributes": cel.ObjectType("kubernetes.NonResourceAttributes", path),
            "user": cel.STRING,
            "groups": texts,
            "extra": cel.map_of(cel.STRING, texts),
            "uid": cel.STRING,
        },
    )
    return cel.Environment({"request": spec})


def compile_conditions(sources: list[str]) -> Conditions:
    """All of them together. Raises ConditionCompileError for the first that cannot be used."""
    programs: list[cel.Program] = []
    for position, source in enumerate(sources):
        try:
            program = _environment().compile(source)
        except cel.ProgramError as error:
            raise ConditionCompileError(position, f"program instantiation failed: {error}") from error
        except cel.CompileError as error:
            raise ConditionCompileError(position, f"compilation failed: {error}") from error
        if program.result_type != cel.BOOL:
            raise ConditionCompileError(position, f"must evaluate to bool but got {program.result_type}")
        programs.append(program)
    return _Conditions(programs)


class _Conditions:
    def __init__(self, programs: list[cel.Program]) -> None:
        self._programs = programs

    def __call__(self, spec: dict[str, Any]) -> bool:
        """False as soon as one is false, whatever else fails. Raises ConditionError where one cannot be evaluated and none is false."""
        given = {"request": _complete(spec)}
        errors: list[str] = []
        budget = cel.Budget()
        for program in self._programs:
            try:
                if program.evaluate(given, budget) is not True:
                    return False
            except cel.CelError as error:
                errors.append(f"cel evaluation error: expression '{program.source}' resulted in error: {error}")
        if errors:
            raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return True


def _complete(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the fields that are empty, which expressions may read as well."""
    found: dict[str, Any] = {"user": "", "uid": "", "groups": [], "extra": {}, **spec}
    if "resourceAttributes" in found:
        found["resourceAttributes"] = {**dict.fromkeys(_RESOURCE_TEXTS, ""), **found["resourceAttributes"]}
    if "nonResourceAttributes" in found:
        found["nonResourceAttributes"] = {"path": "", "verb": "", **found["nonResourceAttributes"]}
    return found
