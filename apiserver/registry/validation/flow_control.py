"""FlowSchemas and PriorityLevelConfigurations (flowcontrol ``validation``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation.common import Errors, checked, each

Part = Mapping[str, Any]

PRECEDENCE_MAX = 10_000
QUEUES_MAX = 10_000_000
BORROWING_PERCENT_MAX = 100
HASH_BITS_MAX = 60
EXEMPT = "exempt"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_NOTHING: Part = {}
#: the schemas and levels without which the server would not run
MANDATORY = ("exempt", "catch-all")


def flow_schema(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec, name = obj.get("spec") or _NOTHING, (obj.get("metadata") or _NOTHING).get("name") or ""
    precedence = spec.get("matchingPrecedence") or 0
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        out.append(invalid(path, precedence, "must be a positive value"))
    if precedence > PRECEDENCE_MAX:
        out.append(invalid(path, precedence, f"must not be greater than {PRECEDENCE_MAX}"))
    if precedence == 1 and name != EXEMPT:
        out.append(invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        out.append(not_supported("spec.distinguisherMethod.type", dict(method), ["ByNamespace", "ByUser"]))
    level = (spec.get("priorityLevelConfiguration") or _NOTHING).get("name") or ""
    if level:
        checked(out, "spec.priorityLevelConfiguration.name", level, names.dns1123_subdomain)
    else:
        out.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    for i, rule in each(out, spec.get("rules") or ()):
        _policy(out, f"spec.rules[{i}]", rule)
    if name in MANDATORY:
        _fixed_schema(out, name, spec)
    return out + conditions(obj)


def _fixed_schema(out: Errors, name: str, spec: Part) -> None:
    """An administrator has no say in what the server relies on; ``flowcontrol.upkeep`` would put it back at once."""
    from apiserver.flowcontrol import bootstrap

    (wanted,) = (each["spec"] for each in bootstrap.mandatory_schemas() if each["metadata"]["name"] == name)
    if _said(spec) != _said(wanted):
        out.append(invalid("spec", dict(spec), f"spec of '{name}' must equal the fixed value"))


def _fixed_level(out: Errors, name: str, spec: Part) -> None:
    """What the exempt level lends is an administrator's (since Kubernetes 1.28)."""
    from apiserver.flowcontrol import bootstrap

    (wanted,) = (each["spec"] for each in bootstrap.mandatory_levels() if each["metadata"]["name"] == name)
    given = dict(spec)
    if (limited := given.get("limited")) and "assuredConcurrencyShares" in limited:
        # its name until v1beta2
        given["limited"] = {**limited, "nominalConcurrencyShares": limited["assuredConcurrencyShares"], "assuredConcurrencyShares": None}
    words = f"spec of '{name}' must equal the fixed value"
    if name == EXEMPT:
        words = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
        given["exempt"] = wanted["exempt"]
    if _said(given) != _said(wanted):
        out.append(invalid("spec", dict(spec), words))


def _said(value: Any) -> Any:
    """Without what is as good as absent: Go knows no difference between nothing and an empty list, false or 0 here."""
    if isinstance(value, Mapping):
        return {key: said for key, part in value.items() if (said := _said(part)) not in (None, False, 0, [], {})}
    if isinstance(value, (list, tuple)):
        return [_said(part) for part in value]
    return value


def _policy(out: Errors, path: str, rule: Part) -> None:
    subjects = rule.get("subjects") or ()
    if not subjects:
        out.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for i, subject in each(out, subjects):
        _subject(out, f"{path}.subjects[{i}]", subject)
    resources, urls = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not urls:
        out.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for i, entry in each(out, resources):
        _resource_rule(out, f"{path}.resourceRules[{i}]", entry)
    for i, entry in each(out, urls):
        _non_resource_rule(out, f"{path}.nonResourceRules[{i}]", entry)


_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}


def _subject(out: Errors, path: str, subject: Part) -> None:
    kind = subject.get("kind") or ""
    field = _SUBJECTS.get(kind)
    if field is None:
        out.append(not_supported(f"{path}.kind", kind, sorted(_SUBJECTS)))
        return
    part = subject.get(field)
    if part is None:
        out.append(required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'"))
    else:
        name = part.get("name") or ""
        if not name:
            out.append(required(f"{path}.{field}.name"))
        elif kind == "ServiceAccount" and name != "*":
            checked(out, f"{path}.{field}.name", name, names.dns1123_subdomain)
        if kind == "ServiceAccount":
            if part.get("namespace"):
                checked(out, f"{path}.{field}.namespace", part["namespace"], names.dns1123_label)
            else:
                out.append(required(f"{path}.{field}.namespace", "must specify namespace for service account"))
    for other_kind, other in _SUBJECTS.items():
        if other != field and subject.get(other) is not None:
            out.append(forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'"))


def _verbs(out: Errors, path: str, verbs: list[str]) -> None:
    if not verbs:
        out.append(required(path, "verbs must contain at least one value"))
    elif "*" in verbs:
        if len(verbs) > 1:
            out.append(invalid(path, verbs, "if '*' is present, must not specify other verbs"))
    elif not set(verbs) <= set(_VERBS):
        out.append(not_supported(path, verbs, list(_VERBS)))


def _non_resource_rule(out: Errors, path: str, rule: Part) -> None:
    _verbs(out, f"{path}.verbs", list(rule.get("verbs") or ()))
    urls = list(rule.get("nonResourceURLs") or ())
    if not urls:
        out.append(required(f"{path}.nonResourceURLs", "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        if len(urls) > 1:
            words = "if '*' is present, must not specify other non-resource URLs"
            out.append(invalid(f"{path}.nonResourceURLs", urls, words))
    else:
        for i, url in each(out, urls):
            wrong = _bad_url(url)
            if wrong:
                out.append(invalid(f"{path}.nonResourceURLs[{i}]", url, wrong))


def _bad_url(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _resource_rule(out: Errors, path: str, rule: Part) -> None:
    _verbs(out, f"{path}.verbs", list(rule.get("verbs") or ()))
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = list(rule.get(field) or ())
        if not values:
            out.append(required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        elif len(values) > 1 and "*" in values:
            out.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {many}"))
    namespaces = list(rule.get("namespaces") or ())
    if not namespaces and not rule.get("clusterScope"):
        words = "resource rules that are not cluster scoped must supply at least one namespace"
        out.append(required(f"{path}.namespaces", words))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            out.append(invalid(f"{path}.namespaces", namespaces, "if '*' is present, must not specify other namespaces"))
    else:
        for i, namespace in each(out, namespaces):
            for message in names.dns1123_label(namespace):
                words = f"each member of this list must be '*' or a DNS-1123 label; {message}"
                out.append(invalid(f"{path}.namespaces[{i}]", namespace, words))


def conditions(obj: Part) -> Errors:
    out: Errors = []
    seen: set[str] = set()
    for i, condition in each(out, (obj.get("status") or _NOTHING).get("conditions") or ()):
        kind = condition.get("type") or ""
        if kind in seen:
            out.append(duplicate(f"status.conditions[{i}].type", kind))
        seen.add(kind)
        if not kind:
            out.append(required(f"status.conditions[{i}].type", "must not be empty"))
    return out


def priority_level(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec, name = obj.get("spec") or _NOTHING, (obj.get("metadata") or _NOTHING).get("name") or ""
    kind = spec.get("type") or ""
    if (name == EXEMPT) != (kind == "Exempt"):
        out.append(invalid("spec.type", kind, "type must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if spec.get("limited") is not None:
            out.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        if (exempt := spec.get("exempt")) is not None:
            _shares(out, "spec.exempt", exempt)
    elif kind == "Limited":
        if spec.get("exempt") is not None:
            out.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if spec.get("limited") is None:
            out.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            _limited(out, "spec.limited", spec["limited"])
    else:
        out.append(not_supported("spec.type", kind, ["Exempt", "Limited"]))
    if name in MANDATORY:
        _fixed_level(out, name, spec)
    return out + conditions(obj)


def _shares(out: Errors, path: str, found: Part) -> None:
    shares = found.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        out.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    percent = found.get("lendablePercent")
    if percent is not None and not 0 <= percent <= BORROWING_PERCENT_MAX:
        out.append(invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive"))


def _limited(out: Errors, path: str, limited: Part) -> None:
    _shares(out, path, limited)
    response = limited.get("limitResponse") or _NOTHING
    kind, queuing, at = response.get("type") or "", response.get("queuing"), f"{path}.limitResponse"
    if kind == "Reject":
        if queuing is not None:
            out.append(forbidden(f"{at}.queuing", "must be nil if limited.limitResponse.type is not Limited"))
    elif kind == "Queue":
        if queuing is None:
            out.append(required(f"{at}.queuing", "must not be empty if limited.limitResponse.type is Limited"))
        else:
            _queuing(out, f"{at}.queuing", queuing)
    else:
        out.append(not_supported(f"{at}.type", kind, ["Queue", "Reject"]))
    percent = limited.get("borrowingLimitPercent")
    if percent is not None and percent < 0:
        out.append(invalid(f"{path}.borrowingLimitPercent", percent, "if specified, must be a non-negative integer"))


def _queuing(out: Errors, path: str, queuing: Part) -> None:
    length, queues, hand = (queuing.get(field) or 0 for field in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        out.append(invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        out.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > QUEUES_MAX:
        out.append(invalid(f"{path}.queues", queues, f"must not be greater than {QUEUES_MAX}"))
    if hand <= 0:
        out.append(invalid(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        out.append(invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif queues > 0 and hand * math.ceil(math.log2(queues)) > HASH_BITS_MAX:
        words = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS_MAX}"
        out.append(invalid(f"{path}.handSize", hand, words))
