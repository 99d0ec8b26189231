"""Questions to the authorizer: `authorizer.group('apps').resource('deployments').check('create').allowed()` (since 1.27).

The variable's value is an `Authorizer`, made by the caller with a function that answers. An exception of its own that this function
raises goes through the program unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.runtime_types import register
from apiserver.machinery import names

SINCE, _SELECTORS_SINCE = 27, 31


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer; `error` is the text of what went wrong, "" if nothing did."""

    allowed: bool
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What an expression asks: of a path, or of a resource. The service account is (namespace, name), None for the request's own user."""

    verb: str
    path: str | None = None
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


Answer = Callable[[Question], Decision]


@dataclass(frozen=True, slots=True)
class Authorizer:
    """The value of the variable `authorizer`."""

    answer: Answer
    service_account: tuple[str, str] | None = None

    def resource_check(self, question: Question) -> ResourceCheck:
        """The value of `authorizer.requestResource`: a question that lacks only its verb."""
        return ResourceCheck(self, replace(question, service_account=self.service_account))


@dataclass(frozen=True, slots=True)
class PathCheck:
    """`authorizer.path(…)`."""

    authorizer: Authorizer
    path: str


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """`authorizer.group(…)`."""

    authorizer: Authorizer
    group: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    """`authorizer.group(…).resource(…)`."""

    authorizer: Authorizer
    question: Question


for _class, _type in (
    (Authorizer, types.AUTHORIZER),
    (PathCheck, types.PATH_CHECK),
    (GroupCheck, types.GROUP_CHECK),
    (ResourceCheck, types.RESOURCE_CHECK),
    (Decision, types.DECISION),
):
    register(_class, _type)


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.dns1123_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer(authorizer.answer, (namespace, name))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    service_account = check.authorizer.service_account
    return ResourceCheck(check.authorizer, Question("", group=check.group, resource=resource, service_account=service_account))


def _with(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def narrowed(check: ResourceCheck, value: str) -> ResourceCheck:
        changes: dict[str, Any] = {field: value}
        return ResourceCheck(check.authorizer, replace(check.question, **changes))

    return narrowed


def _check_path(check: PathCheck, verb: str) -> Decision:
    return check.authorizer.answer(Question(verb, path=check.path, service_account=check.authorizer.service_account))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return check.authorizer.answer(replace(check.question, verb=verb))


def overloads(minor: int) -> list[Overload]:
    """The functions, where the version has them."""
    if minor < SINCE:
        return []
    found = [
        overload("authorizer_path Authorizer.path(string): PathCheck", _path),
        overload("authorizer_group Authorizer.group(string): GroupCheck", GroupCheck),
        overload("authorizer_serviceaccount Authorizer.serviceAccount(string, string): Authorizer", _service_account),
        overload("groupcheck_resource GroupCheck.resource(string): ResourceCheck", _resource),
        overload("resourcecheck_subresource ResourceCheck.subresource(string): ResourceCheck", _with("subresource")),
        overload("resourcecheck_namespace ResourceCheck.namespace(string): ResourceCheck", _with("namespace")),
        overload("resourcecheck_name ResourceCheck.name(string): ResourceCheck", _with("name")),
        overload("pathcheck_check PathCheck.check(string): Decision", _check_path),
        overload("resourcecheck_check ResourceCheck.check(string): Decision", _check_resource),
        overload("decision_errored Decision.errored(): bool", lambda decision: decision.error != ""),
        overload("decision_error Decision.error(): string", lambda decision: decision.error),
        overload("decision_allowed Decision.allowed(): bool", lambda decision: decision.allowed),
        overload("decision_reason Decision.reason(): string", lambda decision: decision.reason),
    ]
    if minor >= _SELECTORS_SINCE:
        found += [
            overload("authorizer_fieldselector ResourceCheck.fieldSelector(string): ResourceCheck", _with("field_selector")),
            overload("authorizer_labelselector ResourceCheck.labelSelector(string): ResourceCheck", _with("label_selector")),
        ]
    return found
