"""Roles and bindings (rbac ``validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, invalid, not_supported, required
from apiserver.registry.validation.common import Errors, checked, each, label_selector, selector_is_valid

Part = Mapping[str, Any]

GROUP = "rbac.authorization.k8s.io"


def role(obj: Part, *, namespaced: bool) -> list[FieldError]:
    out: Errors = []
    for i, rule in each(out, obj.get("rules") or ()):
        _rule(out, f"rules[{i}]", rule, namespaced)
    aggregation = None if namespaced else obj.get("aggregationRule")
    if aggregation is not None:
        path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or ()
        if not selectors:
            out.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
        for i, selector in each(out, selectors):
            label_selector(out, f"{path}[{i}]", selector)
            if not selector_is_valid(selector):
                out.append(invalid(f"{path}[{i}]", None, "invalid label selector."))
    return out


def _rule(out: Errors, path: str, rule: Part, namespaced: bool) -> None:
    if not rule.get("verbs"):
        out.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            out.append(invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            words = "rules cannot apply to both regular resources and non-resource URLs"
            out.append(invalid(f"{path}.nonResourceURLs", urls, words))
        return
    if not rule.get("apiGroups"):
        out.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        out.append(required(f"{path}.resources", "resource rules must supply at least one resource"))


def binding(obj: Part, *, namespaced: bool) -> list[FieldError]:
    out: Errors = []
    reference = obj.get("roleRef") or {}
    group, kind, name = (reference.get(field) or "" for field in ("apiGroup", "kind", "name"))
    if group != GROUP:
        out.append(not_supported("roleRef.apiGroup", group, [GROUP]))
    kinds = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if kind not in kinds:
        out.append(not_supported("roleRef.kind", kind, kinds))
    if not name:
        out.append(required("roleRef.name"))
    else:
        checked(out, "roleRef.name", name, names.path_segment)
    for i, subject in each(out, obj.get("subjects") or ()):
        _subject(out, f"subjects[{i}]", subject, namespaced)
    return out


def _subject(out: Errors, path: str, subject: Part, namespaced: bool) -> None:
    name, kind, group = (subject.get(field) or "" for field in ("name", "kind", "apiGroup"))
    if not name:
        out.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            checked(out, f"{path}.name", name, names.dns1123_subdomain)
        if group:
            out.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            out.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            out.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        out.append(not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))


def binding_update(new: Part, old: Part, *, namespaced: bool) -> list[FieldError]:
    out = binding(new, namespaced=namespaced)
    if (new.get("roleRef") or {}) != (old.get("roleRef") or {}):
        out.append(invalid("roleRef", new.get("roleRef"), "cannot change roleRef"))
    return out
