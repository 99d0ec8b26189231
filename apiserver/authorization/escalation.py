"""Nobody may grant rights through roles and bindings that they do not have themselves (Kubernetes documentation, "Privilege escalation
prevention and bootstrapping"). ``escalate`` on a role and ``bind`` on a role reference are the ways round it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.authentication.user import MASTERS, UserInfo
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.rbac_data import GROUP, RbacData
from apiserver.authorization.rules import Rule, compact, quoted_list, rules_from_json, uncovered
from apiserver.machinery import objects, status


def check_role(
    new: objects.Object, old: objects.Object | None, *, resource: str, user: UserInfo, authorizer: Authorizer, data: RbacData
) -> None:
    """Before a Role or ClusterRole (``resource``: roles, clusterroles) is created or updated. Raises StatusError 403."""
    if old is not None and _changes_only_collection_fields(new, old):
        return
    name, namespace = objects.name(new), objects.namespace(new)
    # a create has no name in its path, so a rule for one name does not let it escalate
    if _is_allowed(authorizer, user, "escalate", resource, namespace, name if old is not None else ""):
        return
    owned = data.rules_for(user, namespace)
    if missing := uncovered(owned, rules_from_json(new.get("rules"))):
        raise status.forbidden(GROUP, resource, name, _told(user, missing, data, namespace))
    # what an aggregation gathers is not known beforehand, so only who may do everything may set or lift one
    if _aggregates(new) or (old is not None and _aggregates(old)):
        if uncovered(owned, _EVERYTHING):
            raise status.forbidden(GROUP, resource, name, "must have cluster-admin privileges to use the aggregationRule")


def check_binding(
    new: objects.Object, old: objects.Object | None, *, resource: str, user: UserInfo, authorizer: Authorizer, data: RbacData
) -> None:
    """Before a binding (``resource``: rolebindings, clusterrolebindings) is created or updated. Raises StatusError 403, 404."""
    if old is not None and _changes_only_collection_fields(new, old):
        return
    reference: dict[str, Any] = new.get("roleRef") or {}
    kind, role_name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    namespace = objects.namespace(new)
    role_resource = _PLURALS.get(kind, "")
    if not role_resource:
        return  # such a reference is refused when the object is checked
    if _is_allowed(authorizer, user, "bind", role_resource, namespace, role_name):
        return
    rules = data.rules_of(kind, role_name, namespace)
    if rules is None:
        raise status.not_found(GROUP, role_resource, role_name)
    if missing := uncovered(data.rules_for(user, namespace), rules):
        raise status.forbidden(GROUP, resource, objects.name(new), _told(user, missing, data, namespace))


_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}

_EVERYTHING = (Rule(verbs=("*",), api_groups=("*",), resources=("*",)), Rule(verbs=("*",), non_resource_urls=("*",)))


def _aggregates(role: objects.Object) -> bool:
    return bool(objects.get(role, "aggregationRule", "clusterRoleSelectors"))


#: what the garbage collector, which holds no rights to grant, must be able to change on every object
_COLLECTION_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


def _changes_only_collection_fields(new: objects.Object, old: objects.Object) -> bool:
    def rest(obj: objects.Object) -> objects.Object:
        return {**obj, "metadata": {k: v for k, v in objects.metadata(obj).items() if k not in _COLLECTION_FIELDS}}

    return rest(new) == rest(old)


def _is_allowed(authorizer: Authorizer, user: UserInfo, verb: str, resource: str, namespace: str, name: str) -> bool:
    if MASTERS in user.groups:
        return True
    attributes = Attributes(user=user, verb=verb, group=GROUP, version="v1", resource=resource, namespace=namespace, name=name)
    return authorizer.authorize(attributes)[0] is Decision.ALLOW


def _told(user: UserInfo, missing: Sequence[Rule], data: RbacData, namespace: str) -> str:
    lines = sorted({rule.text() for rule in compact(missing)})
    who = f'user "{user.name}" (groups={quoted_list(user.groups)})'
    told = f"{who} is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
    # rights may be missing only because a role is: the binding to it would have given them
    broken = [grant.binding for grant in data.grants(user, namespace) if grant.error]
    errors = [f'{_PLURALS.get(b.role_kind, b.role_kind)}.{GROUP} "{b.role_name}" not found' for b in broken]
    return f"{told}; resolution errors: [{', '.join(dict.fromkeys(errors))}]" if errors else told
