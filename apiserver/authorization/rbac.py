"""Role based access control (``--authorization-mode=RBAC``): allowed is what some rule of a role bound to the user says.

A decision is the answer to (user, namespace, verb, group, resource, subresource); the object's name only chooses among rules with
``resourceNames``. So what is remembered is, for each such question, the list of matching rules in order, cut after the first that holds
for every name: usually one entry. It is forgotten as soon as any role or binding changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.rbac_data import RbacData

#: questions remembered before the table starts anew (some 300 bytes each)
ANSWERS_MAX = 16_384


@dataclass(frozen=True, slots=True)
class _Match:
    """``names`` None: for every name."""

    names: frozenset[str] | None
    answer: tuple[Decision, str]


_Question = tuple[str, tuple[str, ...], str, str, str, str, str]


class RbacAuthorizer:
    def __init__(self, data: RbacData) -> None:
        self._data = data
        self._generation = data.generation
        self._answers: dict[_Question, tuple[tuple[_Match, ...], tuple[Decision, str]]] = {}

    @property
    def generation(self) -> int:
        return self._data.generation

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if self._generation != self._data.generation or len(self._answers) >= ANSWERS_MAX:
            self._answers.clear()
            self._generation = self._data.generation
        a, user = attributes, attributes.user
        if a.is_resource_request:
            question = (user.name, user.groups, a.namespace, a.verb, a.group, a.resource, a.subresource)
        else:
            question = (user.name, user.groups, "", a.verb, "", "", a.path)
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = self._find(attributes)
        matches, otherwise = found
        for match in matches:
            if match.names is None or a.name in match.names:
                return match.answer
        return otherwise

    def _find(self, a: Attributes) -> tuple[tuple[_Match, ...], tuple[Decision, str]]:
        matches: list[_Match] = []
        errors: list[str] = []
        for grant in self._data.grants(a.user, a.namespace if a.is_resource_request else ""):
            if grant.error:
                errors.append(grant.error)
            for rule in grant.rules:
                if a.is_resource_request:
                    if not rule.matches_resource(a.verb, a.group, a.resource, a.subresource):
                        continue
                elif not rule.matches_path(a.verb, a.path):
                    continue
                answer = (Decision.ALLOW, f"RBAC: allowed by {grant.binding.description(grant.subject)}")
                names = frozenset(rule.resource_names) if rule.resource_names and a.is_resource_request else None
                matches.append(_Match(names, answer))
                if names is None:
                    return tuple(matches), answer
        distinct = list(dict.fromkeys(errors))
        text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
        return tuple(matches), (Decision.NO_OPINION, f"RBAC: {text}" if distinct else "")
