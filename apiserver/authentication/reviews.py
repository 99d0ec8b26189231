"""TokenReview and SelfSubjectReview: virtual resources that tell who somebody is. Pure functions from body to answer."""

from __future__ import annotations

from typing import Any

from apiserver.authentication.interfaces import AuthenticationError, TokenAuthenticator
from apiserver.authentication.union import with_authenticated_group
from apiserver.authentication.user import UserInfo
from apiserver.machinery import objects, status

GROUP_VERSION = "authentication.k8s.io/v1"


def user_to_json(user: UserInfo) -> dict[str, Any]:
    """authentication.k8s.io/v1 UserInfo."""
    out: dict[str, Any] = {"username": user.name}
    if user.uid:
        out["uid"] = user.uid
    if user.groups:
        out["groups"] = list(user.groups)
    if user.extra:
        out["extra"] = {key: list(values) for key, values in user.extra.items()}
    return out


def self_subject_review(body: objects.Object, user: UserInfo) -> objects.Object:
    """Who the requester is."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": body.get("apiVersion") or GROUP_VERSION,
        "metadata": objects.unstored_metadata(),
        "status": {"userInfo": user_to_json(user)},
    }


def token_review(body: objects.Object, tokens: TokenAuthenticator) -> objects.Object:
    """Who a token stands for, for servers that delegate authentication to this one. Raises StatusError 400 without a token."""
    spec = dict(body.get("spec") or {})
    token = str(spec.get("token") or "")
    if not token:
        raise status.bad_request("token is required for TokenReview in authentication")
    if objects.namespace(body):
        raise status.bad_request("namespace is not allowed on this type: " + objects.namespace(body))
    audiences = tuple(str(a) for a in spec.get("audiences") or ())
    answer: dict[str, Any] = {"user": {}}
    try:
        found = tokens.authenticate_token(token, audiences)
    except AuthenticationError as error:
        answer["error"] = str(error)
    else:
        if found is not None:
            answer = {"authenticated": True, "user": user_to_json(with_authenticated_group(found.user))}
            if found.audiences:
                answer["audiences"] = list(found.audiences)
    return {
        "kind": "TokenReview",
        "apiVersion": body.get("apiVersion") or GROUP_VERSION,
        "metadata": objects.unstored_metadata(),
        "spec": spec,
        "status": answer,
    }
