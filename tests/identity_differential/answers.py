"""What is compared of an answer: its status, and of its body what identity and rights decide."""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")


def compared(status: int, body: Any) -> dict[str, Any]:
    """Texts that are no JSON (health checks, redirects) only count by their status."""
    if not isinstance(body, dict):
        return {"status": status}
    kind = body.get("kind")
    if kind == "Status":
        details = {key: value for key, value in (body.get("details") or {}).items() if key in ("kind", "group", "name")}
        return {
            "status": status,
            "reason": body.get("reason", ""),
            "message": _TOKEN.sub("<token>", body.get("message", "")),
            "details": details,
        }
    if kind in ("SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "TokenReview"):
        return {"status": status, "kind": kind, "answer": body.get("status")}
    if kind == "SelfSubjectRulesReview":
        return {"status": status, "kind": kind, "answer": _sorted_rules(body["status"])}
    return {"status": status, "kind": kind}


def _sorted_rules(status: dict[str, Any]) -> dict[str, Any]:
    rules = sorted((status.get("resourceRules") or []), key=str)
    return {"resourceRules": rules, "evaluationError": status.get("evaluationError", ""), "incomplete": status.get("incomplete")}
