"""Where a pod may run: node selectors, affinity, tolerations, topology spread, taints of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation.common import Errors, checked, each, equal, label_key, label_selector

Part = Mapping[str, Any]

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WEIGHT = "must be in the range 1-100"


def affinity(out: Errors, path: str, found: Part) -> None:
    if (node := found.get("nodeAffinity")) is not None:
        node_affinity(out, f"{path}.nodeAffinity", node)
    for kind in ("podAffinity", "podAntiAffinity"):
        if (part := found.get(kind)) is None:
            continue
        at = f"{path}.{kind}"
        for i, term in each(out, part.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
            _pod_affinity_term(out, f"{at}.requiredDuringSchedulingIgnoredDuringExecution[{i}]", term)
        for i, weighted in each(out, part.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
            where = f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
            _weight(out, f"{where}.weight", weighted.get("weight") or 0)
            _pod_affinity_term(out, f"{where}.podAffinityTerm", weighted.get("podAffinityTerm") or {})


def node_affinity(out: Errors, path: str, found: Part) -> None:
    if (needed := found.get("requiredDuringSchedulingIgnoredDuringExecution")) is not None:
        node_selector(out, f"{path}.requiredDuringSchedulingIgnoredDuringExecution", needed)
    for i, preferred in each(out, found.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
        _weight(out, f"{at}.weight", preferred.get("weight") or 0)
        _node_selector_term(out, f"{at}.preference", preferred.get("preference") or {})


def node_selector(out: Errors, path: str, selector: Part) -> None:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        out.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
    for i, term in each(out, terms):
        _node_selector_term(out, f"{path}.nodeSelectorTerms[{i}]", term)


def _weight(out: Errors, path: str, weight: int) -> None:
    if not 1 <= weight <= 100:
        out.append(invalid(path, weight, _WEIGHT))


def _node_selector_term(out: Errors, path: str, term: Part) -> None:
    for i, expression in each(out, term.get("matchExpressions") or ()):
        _node_requirement(out, f"{path}.matchExpressions[{i}]", expression)
    for i, expression in each(out, term.get("matchFields") or ()):
        _node_field_requirement(out, f"{path}.matchFields[{i}]", expression)


def _node_requirement(out: Errors, path: str, requirement: Part) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            out.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            out.append(forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            out.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        out.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    label_key(out, f"{path}.key", requirement.get("key") or "")


def _node_field_requirement(out: Errors, path: str, requirement: Part) -> None:
    operator, values, key = requirement.get("operator") or "", requirement.get("values") or (), requirement.get("key") or ""
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            out.append(required(f"{path}.values", words))
    else:
        out.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    if key != "metadata.name":
        out.append(invalid(f"{path}.key", key, "not a valid field selector key"))
        return
    for i, value in each(out, values):
        checked(out, f"{path}.values[{i}]", value, names.dns1123_subdomain)


def _pod_affinity_term(out: Errors, path: str, term: Part) -> None:
    label_selector(out, f"{path}.labelSelector", term.get("labelSelector"))
    label_selector(out, f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        checked(out, f"{path}.namespace", namespace, names.dns1123_label)
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        _label_keys(out, f"{path}.{field}", term.get(field) or (), term.get("labelSelector"))
    _keys_said_twice(out, path, term)
    key = term.get("topologyKey") or ""
    if not key:
        out.append(required(f"{path}.topologyKey", "can not be empty"))
    label_key(out, f"{path}.topologyKey", key)


def _keys_said_twice(out: Errors, path: str, term: Part) -> None:
    """The values of ``matchLabelKeys`` join the selector when a pod is made; it may not speak of them besides."""
    keys, selector = term.get("matchLabelKeys") or (), term.get("labelSelector")
    if not keys:
        return
    if selector is not None:
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in keys and key in seen:
                out.append(invalid(f"{path}[{list(keys).index(key)}]", key, "exists in both matchLabelKeys and labelSelector"))
            seen.add(key)
    for i, key in each(out, keys):
        if key in (term.get("mismatchLabelKeys") or ()):
            out.append(invalid(f"{path}.matchLabelKeys[{i}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"))


def _label_keys(out: Errors, path: str, keys: Sequence[str], selector: Part | None) -> None:
    if not keys:
        return
    if selector is None:
        out.append(forbidden(path, "must not be specified when labelSelector is not set"))
        return
    for i, key in each(out, keys):
        label_key(out, f"{path}[{i}]", key)


def tolerations(out: Errors, path: str, found: Sequence[Part]) -> None:
    for i, toleration in each(out, found):
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        effect, value = toleration.get("effect") or "", toleration.get("value") or ""
        if key:
            label_key(out, f"{path}[{i}].key", key)
        elif operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            out.append(invalid(f"{path}[{i}].operator", operator, words))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            out.append(invalid(f"{path}[{i}].effect", effect, words))
        if operator in ("", "Equal"):
            found_errors = names.label_value(value)
            if found_errors:
                out.append(invalid(f"{path}[{i}].operator", value, ";".join(found_errors)))
        elif operator == "Exists":
            if value:
                words = "value must be empty when `operator` is 'Exists'"
                out.append(invalid(f"{path}[{i}].operator", dict(toleration), words))
        else:
            out.append(not_supported(f"{path}[{i}].operator", operator, ["Equal", "Exists"]))
        if effect and effect not in _TAINT_EFFECTS:
            out.append(not_supported(f"{path}[{i}].effect", effect, list(_TAINT_EFFECTS)))


def only_added_tolerations(out: Errors, path: str, new: Sequence[Part], old: Sequence[Part]) -> None:
    """A pod may only get more tolerations, or other seconds for those that it has."""
    if new == old:
        return
    timeless = [_timeless(t) for t in new]
    if any(_timeless(t) not in timeless for t in old):
        words = "existing toleration can not be modified except its tolerationSeconds"
        out.append(forbidden(path, words))
        return
    tolerations(out, path, new)


def _timeless(toleration: Part) -> dict[str, Any]:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds" and v}


def topology_spread(out: Errors, path: str, found: Sequence[Part]) -> None:
    left = Counter((c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") for c in found)
    for i, constraint in each(out, found):
        at = f"{path}[{i}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            out.append(invalid(f"{at}.maxSkew", skew, "must be greater than zero"))
        key = constraint.get("topologyKey") or ""
        if not key:
            out.append(required(f"{at}.topologyKey", "can not be empty"))
        action = constraint.get("whenUnsatisfiable") or ""
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            out.append(not_supported(f"{at}.whenUnsatisfiable", action, ["DoNotSchedule", "ScheduleAnyway"]))
        left[(key, action)] -= 1
        if left[(key, action)]:
            out.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        domains = constraint.get("minDomains")
        if domains is not None:
            if domains <= 0:
                out.append(invalid(f"{at}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                out.append(invalid(f"{at}.minDomains", domains, words))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in ("Honor", "Ignore"):
                out.append(not_supported(f"{at}.{field}", policy, ["Honor", "Ignore"]))
        _label_keys(out, f"{at}.matchLabelKeys", constraint.get("matchLabelKeys") or (), constraint.get("labelSelector"))
        label_selector(out, f"{at}.labelSelector", constraint.get("labelSelector"))


def scheduling_gates(out: Errors, path: str, gates: Sequence[Part]) -> None:
    seen: set[str] = set()
    for i, gate in each(out, gates):
        name = gate.get("name") or ""
        if not name:
            out.append(required(f"{path}[{i}]", "must not be empty"))
        checked(out, f"{path}[{i}]", name, names.qualified_name)
        if name in seen:
            out.append(duplicate(f"{path}[{i}]", name))
        seen.add(name)


def taints(out: Errors, path: str, found: Sequence[Part]) -> None:
    """Of a node: one for each key and effect."""
    seen: set[tuple[str, str]] = set()
    for i, taint in each(out, found):
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        label_key(out, f"{path}[{i}].key", key)
        value_errors = names.label_value(taint.get("value") or "")
        if value_errors:
            out.append(invalid(f"{path}[{i}].value", taint.get("value"), ";".join(value_errors)))
        if not effect:
            out.append(required(f"{path}[{i}].effect"))
        elif effect not in _TAINT_EFFECTS:
            out.append(not_supported(f"{path}[{i}].effect", effect, list(_TAINT_EFFECTS)))
        if (key, effect) in seen:
            error = duplicate(f"{path}[{i}]", dict(taint))
            out.append(type(error)(error.type, error.field, error.value, "taints must be unique by key and effect pair"))
        seen.add((key, effect))


def node_affinity_narrowed(out: Errors, path: str, new: Part | None, old: Part | None) -> None:
    """A gated pod's required node affinity may only become narrower: terms keep their number and only gain requirements."""
    old_terms = _required_terms(old)
    if old is None or not old_terms:
        return
    new_terms = _required_terms(new)
    if len(new_terms) != len(old_terms):
        words = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        out.append(invalid(f"{path}.nodeSelectorTerms", list(new_terms), words))
        return
    for i, (new_term, old_term) in each(out, zip(new_terms, old_terms)):
        for field in ("matchExpressions", "matchFields"):
            have, had = new_term.get(field) or [], old_term.get(field) or []
            if len(have) < len(had) or not all(equal(a, b) for a, b in zip(have, had)):
                words = "only additions are allowed (no mutations or deletions)"
                out.append(invalid(f"{path}.nodeSelectorTerms[{i}].{field}", have, words))
                break


def _required_terms(found: Part | None) -> Sequence[Part]:
    needed = (found or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return needed.get("nodeSelectorTerms") or ()
