"""Roles and bindings (rbac.authorization.k8s.io). Whether a writer may grant what it writes (escalation) is the access room's check."""

from __future__ import annotations

from typing import ClassVar

from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import rbac


class RoleStrategy(Strategy):
    name_rule = "path_segment"
    allow_create_on_update = True
    namespaced: ClassVar[bool] = True

    def default(self, obj: Object) -> None:
        """Go writes the rules even where there are none."""
        if obj.get("rules") is None:
            obj["rules"] = []

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rbac.role(obj, namespaced=self.namespaced)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rbac.role(new, namespaced=self.namespaced)


class ClusterRoleStrategy(RoleStrategy):
    namespaced = False


class RoleBindingStrategy(Strategy):
    name_rule = "path_segment"
    allow_create_on_update = True
    namespaced: ClassVar[bool] = True

    def default(self, obj: Object) -> None:
        """Users and groups are RBAC's own; so are the roles that bindings refer to."""
        reference = obj.setdefault("roleRef", {})
        if not reference.get("apiGroup"):
            reference["apiGroup"] = rbac.GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = rbac.GROUP

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rbac.binding(obj, namespaced=self.namespaced)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rbac.binding_update(new, old, namespaced=self.namespaced)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    namespaced = False


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    (rbac.GROUP, "Role"): RoleStrategy,
    (rbac.GROUP, "ClusterRole"): ClusterRoleStrategy,
    (rbac.GROUP, "RoleBinding"): RoleBindingStrategy,
    (rbac.GROUP, "ClusterRoleBinding"): ClusterRoleBindingStrategy,
}
