"""Which requests a webhook or an admission policy is about: rules, scope, selectors (apiserver ``admission/plugin/webhook/predicates``).

``Rules`` are what ``rules`` of a webhook or ``resourceRules`` of a policy say; ``Selectors`` the namespace and object selectors; and
``Matcher`` puts them together with ``matchPolicy: Equivalent``, which also finds a resource by its other groups and versions. A matcher
is made once for each stored configuration and asked for every write, so that what it says of a resource is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.machinery import labels, objects, status
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo

Part = Mapping[str, Any]
#: Of a resource: the same stored objects as other groups and versions serve them, itself not included.
Equivalents = Callable[[ResourceInfo], Sequence[ResourceInfo]]

_ALL = "*"
_GROUP = "admissionregistration.k8s.io"
#: They say themselves what is admitted, so that no webhook and no policy may keep an administrator from mending them.
_EXEMPT_KINDS = frozenset(
    (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    )
)
#: Questions that nothing stores, and that clients ask in order to get in at all.
_EXEMPT_REVIEWS = frozenset(
    (
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)


def is_exempt(info: ResourceInfo) -> bool:
    """Whether requests of a resource never meet webhooks and policies."""
    if info.group == _GROUP:
        return info.kind in _EXEMPT_KINDS
    return (info.group, info.resource) in _EXEMPT_REVIEWS


def is_namespace(info: ResourceInfo) -> bool:
    return info.resource == "namespaces" and info.group == ""


def namespace_of(attributes: AdmissionAttributes) -> str:
    """The namespace that a request is told to be in: of a namespace itself, its own."""
    return attributes.name if is_namespace(attributes.info) else attributes.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of ``rules`` or ``resourceRules``. ``resources`` are (resource, subresource) pairs; ``names`` empty: all."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str = _ALL
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, said: Part) -> Rule:
        pairs = (name.partition("/") for name in said.get("resources") or ())
        return cls(
            operations=frozenset(said.get("operations") or ()),
            groups=frozenset(said.get("apiGroups") or ()),
            versions=frozenset(said.get("apiVersions") or ()),
            resources=tuple((resource, subresource) for resource, _, subresource in pairs),
            scope=said.get("scope") or _ALL,
            names=frozenset(said.get("resourceNames") or ()),
        )

    def concerns(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        """Everything but scope and names, which differ from request to request."""
        return (
            _has(self.operations, operation.value)
            and _has(self.groups, info.group)
            and _has(self.versions, info.version)
            and any(resource in (_ALL, info.resource) and sub in (_ALL, subresource) for resource, sub in self.resources)
        )

    def admits(self, attributes: AdmissionAttributes) -> bool:
        """Scope and names. Namespaces themselves are of the cluster."""
        if self.scope != _ALL:
            in_namespace = bool(attributes.namespace) and not is_namespace(attributes.info)
            if in_namespace != (self.scope == "Namespaced"):
                return False
        return not self.names or attributes.name in self.names


def _has(said: frozenset[str], wanted: str) -> bool:
    return wanted in said or _ALL in said


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """``namespaceSelector`` and ``objectSelector``. An object is selected by what it was or by what it becomes."""

    namespaces: labels.Selector
    objects: labels.Selector

    @classmethod
    def of(cls, said: Part) -> Selectors:
        """Absent selectors select everything, as an empty one does. Raises labels.SelectorError."""
        return cls(
            namespaces=labels.from_label_selector(said.get("namespaceSelector") or {}),
            objects=labels.from_label_selector(said.get("objectSelector") or {}),
        )

    @property
    def select_everything(self) -> bool:
        return self.objects.empty and self.namespaces.empty

    def select_object(self, attributes: AdmissionAttributes) -> bool:
        if self.objects.empty:
            return True
        return any(obj is not None and self.objects.matches(objects.labels(obj)) for obj in (attributes.object, attributes.old_object))

    def select_namespace(self, attributes: AdmissionAttributes, getter: ObjectGetter) -> bool:
        """Objects of the cluster are always selected, but for namespaces: those by their own labels. Raises 404 where the namespace is
        not there."""
        name = namespace_of(attributes)
        if self.namespaces.empty or (not name and not is_namespace(attributes.info)):
            return True
        own = is_namespace(attributes.info) and not attributes.subresource and attributes.object is not None
        found = attributes.object if own else getter.get("", "namespaces", "", name)
        if found is None:
            raise status.not_found("", "namespaces", name)
        return self.namespaces.matches(objects.labels(found))


class Matcher:
    """All that says whether one webhook or policy is about a request. ``match`` answers in which group and version it wants it."""

    def __init__(self, rules: Iterable[Rule], selectors: Selectors, *, excluded: Iterable[Rule] = (), equivalent: bool = True) -> None:
        """``equivalent``: ``matchPolicy`` is not ``Exact``."""
        self._rules = tuple(rules)
        self._excluded = tuple(excluded)
        self._selectors = selectors
        self._equivalent = equivalent

    def match(self, attributes: AdmissionAttributes, getter: ObjectGetter, equivalents: Equivalents) -> ResourceInfo | None:
        """The resource as the first rule that matches names it: the request's own, or an equivalent one; None: not concerned.

        Raises StatusError where all but the namespace is known to match, and that is not there.
        """
        wanted = self._by_rules(self._rules, attributes, equivalents)
        if wanted is None or not self._selectors.select_object(attributes):
            return None
        if self._excluded and self._by_rules(self._excluded, attributes, equivalents) is not None:
            return None
        return wanted if self._selectors.select_namespace(attributes, getter) else None

    def may_concern(self, operation: Operation, info: ResourceInfo, subresource: str, equivalents: Sequence[ResourceInfo]) -> bool:
        """Whether any request of a resource can match, whatever the object."""
        others = equivalents if self._equivalent else ()
        return any(
            rule.concerns(operation, info, subresource)
            or any(_has_subresource(other, subresource) and rule.concerns(operation, other, subresource) for other in others)
            for rule in self._rules
        )

    def always_concerns(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        """Whether every such request matches as it is, whatever its object, name and namespace."""
        if self._excluded or not self._selectors.select_everything:
            return False
        return any(rule.concerns(operation, info, subresource) and rule.scope == _ALL and not rule.names for rule in self._rules)

    def _by_rules(self, rules: Sequence[Rule], attributes: AdmissionAttributes, equivalents: Equivalents) -> ResourceInfo | None:
        operation, info, subresource = attributes.operation, attributes.info, attributes.subresource
        for rule in rules:
            if rule.concerns(operation, info, subresource) and rule.admits(attributes):
                return info
        if not self._equivalent:
            return None
        for rule in rules:
            if not rule.admits(attributes):
                continue
            for other in equivalents(info):
                if _has_subresource(other, subresource) and rule.concerns(operation, other, subresource):
                    return other
        return None


def _has_subresource(info: ResourceInfo, name: str) -> bool:
    return not name or any(sub.name == name for sub in info.subresources)


def matcher_of_webhook(webhook: Part) -> Matcher:
    """Of one entry of ``webhooks``. Raises labels.SelectorError."""
    return Matcher(
        [Rule.of(rule) for rule in webhook.get("rules") or ()],
        Selectors.of(webhook),
        equivalent=webhook.get("matchPolicy") != "Exact",
    )


def matcher_of_constraints(constraints: Part | None) -> Matcher:
    """Of a policy's ``matchConstraints`` or a binding's ``matchResources``; a binding without rules is about all that its policy is about.
    Raises labels.SelectorError."""
    said = constraints or {}
    rules = [Rule.of(rule) for rule in said.get("resourceRules") or ()]
    return Matcher(
        rules or [_EVERYTHING],
        Selectors.of(said),
        excluded=[Rule.of(rule) for rule in said.get("excludeResourceRules") or ()],
        equivalent=said.get("matchPolicy") != "Exact",
    )


_EVERYTHING = Rule(operations=frozenset((_ALL,)), groups=frozenset((_ALL,)), versions=frozenset((_ALL,)), resources=((_ALL, _ALL),))


def kind_of(info: ResourceInfo, subresource: str) -> tuple[str, str, str]:
    """Group, version and kind of the object that a request of a resource carries: some subresources have kinds of their own."""
    for sub in info.subresources:
        if sub.name == subresource and sub.kind and sub.kind != info.kind:
            return sub.group, sub.version or info.version, sub.kind
    return info.group, info.version, info.kind


def internal(error: Exception) -> StatusError:
    """500 for a stored configuration that no current server would have taken."""
    return status.internal_error(str(error))
