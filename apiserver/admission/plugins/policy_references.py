"""Who writes a policy or a binding must be allowed to read what it takes its parameters from: a policy could otherwise tell its author what
is in them (kubernetes ``registry/admissionregistration/*/authz.go``). No flag turns it off: kube-apiserver has it in its storage.

The check comes after all others, so that only a well-formed object is refused for it, and only where the reference changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, new_object
from apiserver.admission.policies.source import GROUP, PolicyServices
from apiserver.authentication.user import MASTERS, UserInfo
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.machinery import field_errors, objects, status
from apiserver.request.unanswered import settled

_POLICY_OF_BINDING = {
    "mutatingadmissionpolicybindings": "mutatingadmissionpolicies",
    "validatingadmissionpolicybindings": "validatingadmissionpolicies",
}
_RESOURCES = (*_POLICY_OF_BINDING, *_POLICY_OF_BINDING.values())

Part = Mapping[str, Any]


class PolicyReferences(Plugin):
    name = "PolicyReferences"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((GROUP, resource) for resource in _RESOURCES)

    def __init__(self, authorizer: Authorizer, services: PolicyServices) -> None:
        self._authorizer = authorizer
        self._objects = services.objects
        self._served = services.served

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if MASTERS in attributes.user.groups:
            return
        new, old = _spec(new_object(attributes)), _spec(attributes.old_object)
        policies = _POLICY_OF_BINDING.get(attributes.info.resource)
        if policies is None:
            kind = new.get("paramKind")
            if kind is not None and kind != old.get("paramKind"):
                await self._check_kind(attributes, kind)
            return
        reference, policy = new.get("paramRef"), new.get("policyName") or ""
        if reference is not None and (reference, policy) != (old.get("paramRef"), old.get("policyName")):
            stored = self._objects.get(GROUP, policies, "", policy)
            await self._check_reference(attributes, reference, _spec(stored).get("paramKind"))

    async def _check_kind(self, attributes: AdmissionAttributes, kind: Part) -> None:
        if await self._may_get(attributes.user, kind, name="*", namespace="*"):
            return
        what = f"(kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
        why = f'must have "get" permission on all objects of the referenced paramKind {what}'
        raise _refusal(attributes, "spec.paramKind", f"user {_told(attributes.user)} {why}")

    async def _check_reference(self, attributes: AdmissionAttributes, reference: Part, kind: Part | None) -> None:
        name, namespace = reference.get("name") or "", reference.get("namespace") or ""
        if not await self._may_get(attributes.user, kind, name=name, namespace=namespace):
            why = 'does not have "get" permission on the object referenced by paramRef'
            raise _refusal(attributes, "spec.paramRef", f"user {_told(attributes.user)} {why}")

    async def _may_get(self, user: UserInfo, kind: Part | None, *, name: str, namespace: str) -> bool:
        """What cannot be told stands for everything that it may be."""
        group = version = resource = "*"
        if kind is not None:
            group, _, version = str(kind.get("apiVersion") or "").rpartition("/")
            found = self._served.by_kind(group, version, str(kind.get("kind") or ""))
            resource = "*" if found is None else found.resource
        asked = Attributes(user=user, verb="get", group=group, version=version, resource=resource, namespace=namespace, name=name)
        decision, _ = await settled(lambda: self._authorizer.authorize(asked))
        return decision is Decision.ALLOW


def _spec(obj: objects.Object | None) -> Part:
    return {} if obj is None else obj.get("spec") or {}


def _told(user: UserInfo) -> str:
    """As Go prints it."""
    extra = " ".join(f"{key}:[{' '.join(texts)}]" for key, texts in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


def _refusal(attributes: AdmissionAttributes, path: str, why: str) -> status.StatusError:
    name = objects.name(new_object(attributes))
    return status.invalid(attributes.info.group, attributes.info.kind, name, [field_errors.forbidden(path, why)])
