"""When a single container is started again: its own policy, and rules about how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery.field_errors import not_supported, required, too_many
from apiserver.registry.validation.common import Errors, each

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
RULES_MAX = 20
EXIT_CODES_MAX = 255


def of_container(out: Errors, path: str, container: Mapping[str, Any]) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            out.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy not in _POLICIES:
        out.append(not_supported(f"{path}.restartPolicy", policy, list(_POLICIES)))
    if len(rules) > RULES_MAX:
        out.append(too_many(f"{path}.restartPolicyRules", len(rules), RULES_MAX))
    for i, rule in each(out, rules):
        _rule(out, f"{path}.restartPolicyRules[{i}]", rule)


def _rule(out: Errors, path: str, rule: Mapping[str, Any]) -> None:
    action, codes = rule.get("action") or "", rule.get("exitCodes")
    if action not in _ACTIONS:
        out.append(not_supported(f"{path}.action", action, list(_ACTIONS)))
    if codes is None:
        out.append(required(f"{path}.exitCodes", "must be specified"))
        return
    operator, values = codes.get("operator") or "", codes.get("values") or ()
    if operator not in _OPERATORS:
        out.append(not_supported(f"{path}.exitCodes.operator", operator, list(_OPERATORS)))
    if len(values) > EXIT_CODES_MAX:
        out.append(too_many(f"{path}.exitCodes.values", len(values), EXIT_CODES_MAX))
