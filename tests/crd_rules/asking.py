"""The same questions to this implementation, in process."""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apiserver.apiextensions.definition_validation import validate_definition
from apiserver.apiextensions.structural import StructuralSchema
from apiserver.machinery.field_errors import FieldError
from apiserver.registry.strategies.extension import CustomResourceDefinitionStrategy
from apiserver.registry.strategy import StrategyContext
from apiserver.schemas.schema_set import SchemaSet
from tests.crd_rules import recording
from tests.crd_rules.cases import Case

RECORDED = Path(__file__).parent / "recorded.json.gz"
#: the rule as Go shows it, and names of types that are made up anew each time
_ACCIDENTAL = re.compile(r'\{"Rule":.*?"OptionalOldSelf":(?:null|true|false)\}|selfType\d+')


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


@functools.cache
def schemas() -> SchemaSet:
    return SchemaSet.load("1.36")


def compared(case: Case, theirs: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What was asked, and both answers in one form."""
    group = recording.group_of(case)
    body = recording.definition(case, group)
    strategy = CustomResourceDefinitionStrategy()
    strategy.default(body)
    strategy.prepare_for_create(StrategyContext(namespace="", now=""), body)
    yield "definition", _theirs(theirs["definition"]), _ours(validate_definition(body, None, schemas()))
    if theirs["definition"]["code"] != 201:
        return
    schema = StructuralSchema(body["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schemas=schemas())
    for spec, answer in zip(case.objects, theirs.get("objects", ()), strict=False):
        obj = _settled(schema, recording.widget(spec, group))
        warnings: list[str] = []
        yield f"create {spec}", _theirs(answer), _ours(_errors(schema, obj, None, warnings), warnings)
    for (before, after), answer in zip(case.updates, theirs.get("updates", ()), strict=False):
        old = _settled(schema, recording.widget(before, group))
        warnings = []
        if "before" in answer:
            yield f"create {before}", _theirs(answer["before"]), _ours(_errors(schema, old, None, warnings), warnings)
            continue
        new = _settled(schema, recording.widget(after, group))
        yield f"update {before} to {after}", _theirs(answer), _ours(_errors(schema, new, old, warnings), warnings)


def _settled(schema: StructuralSchema, body: dict[str, Any]) -> dict[str, Any]:
    obj = schema.decode(json.dumps(body).encode()).obj
    schema.default(obj)
    return obj


def _errors(schema: StructuralSchema, obj: dict[str, Any], old: dict[str, Any] | None, warnings: list[str]) -> list[FieldError]:
    errors = schema.validate(obj, old)
    return errors + schema.validate_rules(obj, old, errors, warnings.append)


def _theirs(answer: dict[str, Any]) -> Any:
    warnings = [text for text in answer.get("warnings", []) if not text.startswith("unknown field ")]
    return _form(answer.get("causes", []), warnings, answer.get("message", ""))


def _ours(errors: list[FieldError], warnings: list[str] | None = None) -> Any:
    causes = [error.cause() for error in errors]
    return _form([[cause["reason"], cause["field"], cause["message"]] for cause in causes], warnings or [], "")


def _form(causes: list[list[str]], warnings: list[str], message: str) -> Any:
    """Causes in one order, since Go's maps have none; equal ones once."""
    distinct = sorted({tuple(_ACCIDENTAL.sub("<any>", text) for text in cause) for cause in causes})
    return {"causes": [list(cause) for cause in distinct], "warnings": sorted(set(warnings)), "message": message}
