"""The escalation check on roles and bindings as a step of admission. No flag turns it off: kube-apiserver has it in its storage of RBAC
objects, and without it whoever may write roles may do everything."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, new_object
from apiserver.authorization.authorizer import Authorizer
from apiserver.authorization.escalation import check_binding, check_role
from apiserver.authorization.rbac_data import GROUP, RESOURCES, RbacData
from apiserver.request.unanswered import settled


class PrivilegeEscalation(Plugin):
    name = "PrivilegeEscalation"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((GROUP, resource) for resource in RESOURCES)

    def __init__(self, authorizer: Authorizer, data: RbacData) -> None:
        self._authorizer = authorizer
        self._data = data

    async def admit(self, attributes: AdmissionAttributes) -> None:
        check = check_binding if attributes.info.resource.endswith("bindings") else check_role
        new = new_object(attributes)
        if attributes.namespace and not (new.get("metadata") or {}).get("namespace"):
            # a new object's namespace may still be only in its path
            new = {**new, "metadata": {**(new.get("metadata") or {}), "namespace": attributes.namespace}}
        await settled(
            lambda: check(
                new,
                attributes.old_object,
                resource=attributes.info.resource,
                user=attributes.user,
                authorizer=self._authorizer,
                data=self._data,
            )
        )
