"""Label selectors in their structured form (``metav1.LabelSelector``) and as plain maps. Pure."""

from __future__ import annotations

from typing import Any

from apiserver.machinery.objects import Object


def matches_map(wanted: dict[str, str] | None, labels: dict[str, str]) -> bool:
    """A Service's or ReplicationController's selector. An empty one matches nothing here: callers treat it apart."""
    return bool(wanted) and all(labels.get(k) == v for k, v in wanted.items())  # type: ignore[union-attr]


def matches(selector: Object | None, labels: dict[str, str]) -> bool:
    """A missing selector matches nothing, an empty one everything (API conventions, LabelSelector)."""
    if selector is None:
        return False
    if any(labels.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    return all(matches_requirement(r, labels) for r in selector.get("matchExpressions") or [])


def is_empty(selector: Object | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def matches_requirement(requirement: dict[str, Any], labels: dict[str, str]) -> bool:
    """One expression: In, NotIn, Exists, DoesNotExist; Gt and Lt (node selectors only) compare integers."""
    key, operator = requirement.get("key") or "", requirement.get("operator")
    values = requirement.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt") and key in labels and values:
        try:
            have, bound = int(labels[key]), int(values[0])
        except ValueError:
            return False
        return have > bound if operator == "Gt" else have < bound
    return False


def to_string(selector: Object | None) -> str:
    """The selector as the API's labelSelector parameter and ``scale.status.selector`` write it; terms sorted by key."""
    if not selector:
        return ""
    terms = [(k, f"{k}={v}") for k, v in (selector.get("matchLabels") or {}).items()]
    for requirement in selector.get("matchExpressions") or []:
        key, operator, values = requirement["key"], requirement["operator"], sorted(requirement.get("values") or [])
        text = {
            "In": f"{key} in ({','.join(values)})",
            "NotIn": f"{key} notin ({','.join(values)})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }[operator]
        terms.append((key, text))
    return ",".join(text for _, text in sorted(terms))
