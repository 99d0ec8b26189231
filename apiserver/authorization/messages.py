"""What a refused user is told."""

from __future__ import annotations

import json

from apiserver.authorization.authorizer import Attributes, EvaluationError
from apiserver.machinery import status


def cannot(attributes: Attributes) -> str:
    """``User "alice" cannot list resource "pods" in API group "" in the namespace "x"``."""
    a = attributes
    if not a.is_resource_request:
        return f"User {_quoted(a.user.name)} cannot {a.verb} path {_quoted(a.path)}"
    resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
    what = f"User {_quoted(a.user.name)} cannot {a.verb} resource {_quoted(resource)} in API group {_quoted(a.group)}"
    return f"{what} in the namespace {_quoted(a.namespace)}" if a.namespace else f"{what} at the cluster scope"


def forbidden(attributes: Attributes, reason: str) -> status.StatusError:
    """403; ``reason`` (of the authorizer) is added where there is one. 500 where it is a fault of the authorizer's."""
    if isinstance(reason, EvaluationError):
        return status.internal_error(reason)
    why = cannot(attributes)
    if reason:
        why = f"{why}: {reason}"
    a = attributes
    if not a.is_resource_request:
        error = status.forbidden("", "", "", why)
        error.status.setdefault("details", {})
    else:
        error = status.forbidden(a.group, a.resource, a.name, why)
    # its text holds what the client sent: no browser may take it for a page
    error.headers = {"X-Content-Type-Options": "nosniff"}
    return error


def _quoted(text: str) -> str:
    # names come from clients: quoting keeps a name from passing for a part of the sentence (and & < > from being markup)
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
