"""``RbacData``: the roles and bindings of the cluster in the form in which decisions need them, fed by the watch caches.

Call ``object_changed`` for every event of the four RBAC resources (and for the initial list). ``generation`` moves with each real
change; whoever caches a decision keeps the generation it was made at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apiserver.authentication.user import UserInfo, service_account_name
from apiserver.authorization.rules import Rule, rules_from_json
from apiserver.machinery import objects

GROUP = "rbac.authorization.k8s.io"
RESOURCES = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")

_USER, _GROUP = "user", "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """``user`` is set for users and service accounts (by their user name), ``group`` for groups."""

    user: str = ""
    group: str = ""
    description: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (_GROUP, self.group) if self.group else (_USER, self.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """``namespace`` is "" for a ClusterRoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]

    def description(self, subject: Subject) -> str:
        """``ClusterRoleBinding "a" of ClusterRole "b" to User "c"``."""
        kind, name = ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else ("ClusterRoleBinding", self.name)
        return f'{kind} "{name}" of {self.role_kind} "{self.role_name}" to {subject.description}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rules that one binding gives a user, or what went wrong on the way to them."""

    binding: Binding
    subject: Subject
    rules: tuple[Rule, ...] = ()
    error: str = ""


_Bound = tuple[int, Subject, Binding]
"""(position of the subject in its binding, subject, binding)"""
_NOTHING: dict[str, _Bound] = {}


class RbacData:
    """Bindings are kept by who they are for as well: a decision looks at those of its user only, however many there are."""

    def __init__(self) -> None:
        self.generation = 0
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._bindings: dict[str, dict[str, Binding]] = {}
        #: namespace → subject → name of the binding
        self._by_subject: dict[str, dict[tuple[str, str], dict[str, _Bound]]] = {}

    def object_changed(self, resource: str, namespace: str, name: str, obj: objects.Object | None) -> None:
        """Take note of an object of ``resource`` as it is now; None: it was deleted."""
        assert resource in RESOURCES, resource
        if resource in ("roles", "clusterroles"):
            self._role_changed((namespace, name), obj)
        else:
            self._binding_changed(namespace, name, obj)

    def _role_changed(self, key: tuple[str, str], obj: objects.Object | None) -> None:
        rules = None if obj is None else rules_from_json(obj.get("rules"))
        if self._roles.get(key) == rules:
            return
        self.generation += 1
        if rules is None:
            del self._roles[key]
        else:
            self._roles[key] = rules

    def _binding_changed(self, namespace: str, name: str, obj: objects.Object | None) -> None:
        there = self._bindings.setdefault(namespace, {})
        binding = None if obj is None else _binding(namespace, name, obj)
        old = there.get(name)
        if old == binding:
            return
        self.generation += 1
        index = self._by_subject.setdefault(namespace, {})
        if old is not None:
            del there[name]
            for subject in old.subjects:
                bound = index.get(subject.key)
                if bound is not None:
                    bound.pop(name, None)
                    if not bound:
                        del index[subject.key]
        if binding is not None:
            there[name] = binding
            for position, subject in enumerate(binding.subjects):
                # of a subject that stands there twice the first one counts
                index.setdefault(subject.key, {}).setdefault(name, (position, subject, binding))

    def grants(self, user: UserInfo, namespace: str) -> Iterator[Grant]:
        """What the user has at the cluster's level and, where ``namespace`` is not "", in it; one for each binding, in the order of their
        names, so that reasons do not depend on history."""
        for scope in ("", namespace) if namespace else ("",):
            index = self._by_subject.get(scope)
            if not index:
                continue
            found: dict[str, _Bound] = {}
            for key in ((_USER, user.name), *((_GROUP, group) for group in user.groups)):
                for name, bound in index.get(key, _NOTHING).items():
                    known = found.get(name)
                    if known is None or bound[0] < known[0]:
                        found[name] = bound
            for name in sorted(found):
                _, subject, binding = found[name]
                rules = self.rules_of(binding.role_kind, binding.role_name, scope)
                if rules is None:
                    yield Grant(binding=binding, subject=subject, error=_missing(binding.role_kind, binding.role_name))
                else:
                    yield Grant(binding=binding, subject=subject, rules=rules)

    def rules_of(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role reference of a binding in ``namespace``; None where there is no such role."""
        return self._roles.get((namespace if kind == "Role" else "", name)) if kind in ("Role", "ClusterRole") else None

    def rules_for(self, user: UserInfo, namespace: str) -> list[Rule]:
        return [rule for grant in self.grants(user, namespace) for rule in grant.rules]


def _missing(kind: str, name: str) -> str:
    if kind not in ("Role", "ClusterRole"):
        return f'unsupported role reference kind: "{kind}"'
    return f'{kind.lower()}.{GROUP} "{name}" not found'


def _binding(namespace: str, name: str, obj: objects.Object) -> Binding:
    reference = obj.get("roleRef") or {}
    subjects = (_subject(subject, namespace) for subject in obj.get("subjects") or ())
    return Binding(
        namespace=namespace,
        name=name,
        role_kind=str(reference.get("kind") or ""),
        role_name=str(reference.get("name") or ""),
        subjects=tuple(subject for subject in subjects if subject is not None),
    )


def _subject(subject: objects.Object, binding_namespace: str) -> Subject | None:
    """None for kinds that no user can be."""
    kind, name = str(subject.get("kind") or ""), str(subject.get("name") or "")
    if not name:
        return None
    if kind == "User":
        return Subject(user=name, description=f'User "{name}"')
    if kind == "Group":
        return Subject(group=name, description=f'Group "{name}"')
    if kind == "ServiceAccount":
        # in a RoleBinding the binding's own namespace is meant where none is said; a ClusterRoleBinding has none to offer
        namespace = str(subject.get("namespace") or "") or binding_namespace
        if namespace:
            return Subject(user=service_account_name(namespace, name), description=f'ServiceAccount "{name}/{namespace}"')
    return None
