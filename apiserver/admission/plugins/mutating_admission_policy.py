"""MutatingAdmissionPolicy: what the stored policies and their bindings make of an object (apiserver
``admission/plugin/policy/mutating/dispatcher.go``).

Policies run one after the other, each on what those before it made. Where one changed the object, plugins that change objects run once
more, and with them the policies before it that want it (``reinvocationPolicy: IfNeeded``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes, Operation, Reinvocation
from apiserver.admission.plugin import Plugin, forbidden
from apiserver.admission.policies import metrics, params
from apiserver.admission.policies.params import ConfigurationError
from apiserver.admission.policies.source import Binding, Hook, PolicyServices, PolicySource
from apiserver.authorization.authorizer import Authorizer
from apiserver.long_runs import patiently
from apiserver.machinery import objects as object_reading
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.resources.resource_info import ResourceInfo

if TYPE_CHECKING:
    from apiserver.admission.policies.request_view import RequestView

KIND = "MutatingAdmissionPolicy"

#: policy, binding, and namespace and name of the parameter
_Key = tuple[str, str, str]


@dataclass(slots=True)
class _Memory:
    """Of one request, between the first time and the second."""

    invoked: set[_Key] = field(default_factory=set)
    again: set[_Key] = field(default_factory=set)
    last: Object | None = None

    def require(self) -> None:
        """Something was changed: whoever ran before and wants to see it runs again."""
        self.again |= self.invoked
        self.invoked = set()


@dataclass(slots=True, kw_only=True)
class _Invocation:
    hook: Hook[Any]
    binding: Binding
    wanted: ResourceInfo
    param: Object | None

    @property
    def key(self) -> _Key:
        named = "" if self.param is None else f"{object_reading.namespace(self.param)}/{object_reading.name(self.param)}"
        return (self.hook.name, self.binding.name, named)


@dataclass(slots=True)
class _Problem:
    hook: Hook[Any]
    binding: str
    message: str
    reason: str = ""

    def text(self) -> str:
        if self.binding:
            return f"policy '{self.hook.name}' with binding '{self.binding}' denied request: {self.message}"
        return f'policy "{self.hook.name}" denied request: {self.message}'


class MutatingAdmissionPolicy(Plugin):
    name = KIND
    operations = frozenset((Operation.CREATE, Operation.UPDATE, Operation.CONNECT))
    subresources = None

    def __init__(self, services: PolicyServices, authorizer: Authorizer) -> None:
        self._objects = services.objects
        self._served = services.served
        self._authorizer = authorizer
        self._metrics = services.metrics
        self._source: PolicySource[Any] = PolicySource(
            services, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", _maker(services.minor)
        )

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        return operation in self.operations and not rule_matching.is_exempt(info)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        hooks = self._source.concerned(attributes)
        if not hooks or attributes.object is None:
            return
        from apiserver.admission.policies.request_view import RequestView  # with it comes CEL

        problems: list[_Problem] = []
        invocations: list[_Invocation] = []
        view = RequestView(attributes, self._objects, self._served, self._authorizer)
        for hook, always in hooks:
            await self._gather(hook, always, attributes, view, invocations, problems)
        if invocations:
            await self._run(invocations, attributes, view, problems)
        refused = [problem for problem in problems if not problem.hook.ignores_failures]
        if refused:
            raise _refusal(attributes, refused)

    async def _gather(
        self,
        hook: Hook[Any],
        always: bool,
        attributes: AdmissionAttributes,
        view: RequestView,
        invocations: list[_Invocation],
        problems: list[_Problem],
    ) -> None:
        try:
            wanted = attributes.info if always else view.matched(hook)
            if wanted is None:
                return
            kind = hook.spec.get("paramKind")
            info = None if kind is None else params.kind_of_params(kind, self._served)
        except ConfigurationError as error:
            problems.append(_Problem(hook, "", f"failed to configure policy: {error}"))
            return
        for binding in hook.bindings:
            try:
                if (binding.matcher is not None or binding.fault) and view.matched(binding) is None:
                    continue
                given = await params.collect(info, binding.spec.get("paramRef"), attributes.namespace, self._served)
            except ConfigurationError as error:
                problems.append(_Problem(hook, binding.name, f"failed to configure binding: {error}"))
                continue
            invocations += [_Invocation(hook=hook, binding=binding, wanted=wanted, param=param) for param in given]

    async def _run(
        self, invocations: list[_Invocation], attributes: AdmissionAttributes, view: RequestView, problems: list[_Problem]
    ) -> None:
        if attributes.reinvocation is None:
            attributes.reinvocation = Reinvocation()
        reinvocation = attributes.reinvocation
        memory: _Memory = reinvocation.memo.setdefault(KIND, _Memory())
        if reinvocation.second and memory.last != attributes.object:
            memory.require()
        for invocation in invocations:
            policy = invocation.hook.compiled or await invocation.hook.ready()
            try:
                changed, faults = await self._invoke(invocation, policy, attributes, view, reinvocation.second, memory)
            except ConfigurationError as error:
                changed, faults = False, [str(error)]
            problems += [_Problem(invocation.hook, invocation.binding.name, fault, "Invalid") for fault in faults]
            if changed:
                memory.require()
                reinvocation.wanted = True
            if policy.reinvoked:
                memory.invoked.add(invocation.key)
        assert attributes.object is not None
        memory.last = object_reading.deep_copy(attributes.object)

    async def _invoke(
        self, invocation: _Invocation, policy: Any, attributes: AdmissionAttributes, view: RequestView, second: bool, memory: _Memory
    ) -> tuple[bool, list[str]]:
        """Whether the object was changed, and which mutations could not be made: the others are. Raises ConfigurationError."""
        from apiserver.admission.policies.mutations import MutationError

        info, wanted = attributes.info, invocation.wanted
        policy_name, binding_name = invocation.hook.name, invocation.binding.name
        values = {**await view.values(wanted), "params": invocation.param}
        if policy.has_conditions:
            # kube-apiserver tells conditions nothing about the namespace
            verdict = await patiently(functools.partial(policy.matches, {**values, "namespaceObject": None}))
            if not verdict.matches:
                labels = (policy_name, "policy", "validate", attributes.operation.value)
                self._metrics.conditions.observe(verdict.seconds, *labels)
                if not verdict.error:
                    return False, []
                self._metrics.condition_errors.observe(0.0, *labels)
                raise ConfigurationError(verdict.error)
        if second and invocation.key not in memory.again:
            return False, []
        group, version, kind = rule_matching.kind_of(wanted, attributes.subresource)
        type_ = self._served.type_of(group, version, kind)
        current = values["object"]
        changed = False
        faults: list[str] = []
        for position in range(len(policy.mutations)):
            began, error = time.perf_counter(), metrics.NO_ERROR
            try:
                seen = {**values, "object": current}
                after = await patiently(functools.partial(policy.change, position, seen, type_))
                if after is not current and after != current:
                    current = self._served.settled(after, wanted, attributes.subresource)
                    changed = True
            except MutationError as fault:
                faults.append(str(fault))
                error = metrics.error_type(str(fault))
            self._metrics.mutated.observe(time.perf_counter() - began, policy_name, binding_name, error)
        if changed:
            await self._take(current, attributes, info, wanted)
            view.changed()
        return changed, faults

    async def _take(self, changed: Object, attributes: AdmissionAttributes, info: ResourceInfo, wanted: ResourceInfo) -> None:
        assert attributes.object is not None
        if wanted.api_version != info.api_version and attributes.subresource in ("", "status"):
            changed = await self._served.converted(changed, wanted, info)
        attributes.object.clear()
        attributes.object.update(changed)


def _maker(minor: int) -> Callable[[Object], Any]:
    def make(spec: Object) -> Any:
        from apiserver.admission.policies.mutations import MutatingPolicy

        return MutatingPolicy(spec, minor)

    return make


def _refusal(attributes: AdmissionAttributes, problems: list[_Problem]) -> StatusError:
    """The first problem's words, and all of them as causes."""
    error = forbidden(attributes, "admission request denied by policy")
    error.status["message"] = problems[0].text()
    if problems[0].reason:
        error.status["reason"] = problems[0].reason
    error.status["details"].setdefault("causes", []).extend({"message": problem.text()} for problem in problems)
    return error
