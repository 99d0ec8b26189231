"""``PolicySource``: the stored policies that have bindings, ready to be asked (apiserver ``admission/plugin/policy/generic``).

What is stored is looked at again whenever a policy or binding has changed; what did not change keeps its matchers and programs. Which
policies a request can be about follows from its operation and resource, and is found once for each combination: those about other
resources cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from apiserver.admission import expression_texts, rule_matching
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.policies.metrics import PolicyMetrics
from apiserver.admission.policies.params import ServedObjects
from apiserver.long_runs import patiently
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
    metrics: PolicyMetrics = field(default_factory=PolicyMetrics)


@dataclass(slots=True)
class Binding:
    """``matcher`` is None where the binding is about all that its policy is about."""

    name: str
    spec: Object
    matcher: rule_matching.Matcher | None = None
    fault: str = ""


@dataclass(slots=True)
class Hook(Generic[T]):
    """A policy with its bindings. ``compiled`` is None until the first request comes that the policy is about."""

    name: str
    spec: Object
    make: Callable[[Object], T]
    matcher: rule_matching.Matcher | None = None
    fault: str = ""
    bindings: list[Binding] = field(default_factory=list)
    compiled: T | None = None

    async def ready(self) -> T:
        """Compiled, beside the loop where there is much of it."""
        if self.compiled is None:
            await patiently(self._compile)
        assert self.compiled is not None
        return self.compiled

    def _compile(self, patient: bool) -> None:
        if self.compiled is None:
            expression_texts.check_patience(self.spec, patient=patient)
            self.compiled = self.make(self.spec)

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class PolicySource(Generic[T]):
    """``policies`` and ``bindings`` are resources of the group; ``make`` compiles a policy's spec."""

    def __init__(self, services: PolicyServices, policies: str, bindings: str, make: Callable[[Object], T]) -> None:
        self._objects = services.objects
        self._served = services.served
        self._policies = policies
        self._bindings = bindings
        self._make = make
        self._seen = (-1, -1)
        self._available = True
        self._hooks: list[Hook[T]] = []
        self._generation = -1
        self._concerned: dict[tuple[str, str, str, str], tuple[tuple[Hook[T], bool], ...]] = {}

    def concerned(self, attributes: AdmissionAttributes) -> Sequence[tuple[Hook[T], bool]]:
        """Those that can be about such a request, by the policies' names; True: they are, so that nothing of it has to be looked at."""
        hooks = self.hooks()
        if not hooks:
            return ()
        info, generation = attributes.info, self._served.generation
        if generation != self._generation:
            self._generation = generation
            self._concerned.clear()
        key = (attributes.operation.value, info.api_version, info.resource, attributes.subresource)
        found = self._concerned.get(key)
        if found is None:
            equivalents = self._served.equivalents(info)
            operation, subresource = attributes.operation, attributes.subresource
            found = self._concerned[key] = tuple(
                (hook, hook.matcher is not None and hook.matcher.always_concerns(operation, info, subresource))
                for hook in hooks
                if hook.matcher is None or hook.matcher.may_concern(operation, info, subresource, equivalents)
            )
        return found

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
            self._concerned.clear()
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
