"""``PolicySource``: the stored policies that have bindings, ready to be asked (apiserver ``admission/plugin/policy/generic``).

What is stored is looked at again whenever a policy or binding has changed; what did not change keeps its matchers and programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from apiserver.admission import rule_matching
from apiserver.admission.policies.params import ServedObjects
from apiserver.machinery import labels, objects
from apiserver.machinery.objects import Object

GROUP = "admissionregistration.k8s.io"

T = TypeVar("T")


class PolicyObjects(Protocol):
    """Reads of the watch caches (``registry.CachedObjects``)."""

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]: ...

    def changed_at(self, group: str, resource: str) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyServices:
    """What policies need of a server; ``minor`` is the Kubernetes version's."""

    objects: PolicyObjects
    served: ServedObjects
    minor: int


@dataclass(slots=True)
class Binding:
    """``matcher`` is None where the binding is about all that its policy is about."""

    name: str
    spec: Object
    matcher: rule_matching.Matcher | None = None
    fault: str = ""


@dataclass(slots=True)
class Hook(Generic[T]):
    """A policy with its bindings. ``compiled`` is made at the first request that the policy is about."""

    name: str
    spec: Object
    make: Callable[[Object], T]
    matcher: rule_matching.Matcher | None = None
    fault: str = ""
    bindings: list[Binding] = field(default_factory=list)
    _compiled: T | None = None

    @property
    def compiled(self) -> T:
        if self._compiled is None:
            self._compiled = self.make(self.spec)
        return self._compiled

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class PolicySource(Generic[T]):
    """``policies`` and ``bindings`` are resources of the group; ``make`` compiles a policy's spec."""

    def __init__(self, objects: PolicyObjects, policies: str, bindings: str, make: Callable[[Object], T]) -> None:
        self._objects = objects
        self._policies = policies
        self._bindings = bindings
        self._make = make
        self._seen = (-1, -1)
        self._available = True
        self._hooks: list[Hook[T]] = []

    def hooks(self) -> Sequence[Hook[T]]:
        """By the policies' names."""
        if not self._available:
            return ()
        try:
            seen = (self._objects.changed_at(GROUP, self._policies), self._objects.changed_at(GROUP, self._bindings))
        except KeyError:  # this Kubernetes has no such policies
            self._available = False
            return ()
        if seen != self._seen:
            self._hooks = self._read()
            self._seen = seen
        return self._hooks

    def _read(self) -> list[Hook[T]]:
        known = {hook.name: hook for hook in self._hooks}
        bindings: dict[str, list[Binding]] = {}
        for stored in self._objects.list(GROUP, self._bindings):
            spec = stored.get("spec") or {}
            bindings.setdefault(spec.get("policyName") or "", []).append(_binding(objects.name(stored), spec))
        hooks = []
        for stored in self._objects.list(GROUP, self._policies):
            name, spec = objects.name(stored), stored.get("spec") or {}
            if name not in bindings:
                continue
            hook = known.get(name)
            if hook is None or hook.spec != spec:
                hook = Hook(name, spec, self._make)
                try:
                    hook.matcher = rule_matching.matcher_of_constraints(spec.get("matchConstraints"))
                except labels.SelectorError as error:
                    hook.fault = str(error)
            hook.bindings = bindings[name]
            hooks.append(hook)
        return sorted(hooks, key=lambda hook: hook.name)


def _binding(name: str, spec: Object) -> Binding:
    binding, said = Binding(name, spec), spec.get("matchResources")
    if said is not None:
        try:
            binding.matcher = rule_matching.matcher_of_constraints(said)
        except labels.SelectorError as error:
            binding.fault = str(error)
    return binding
