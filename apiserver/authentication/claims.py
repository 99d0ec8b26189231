"""From the claims of a verified token to a user, by the rules of a ``JwtConfig``. Errors are in kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.authentication.interfaces import CREDENTIAL_ID_KEY, AuthenticationError
from apiserver.authentication.jwt_config import ClaimMapping, ClaimRule, Expression, ExpressionError, JwtConfig
from apiserver.authentication.user import UserInfo, check_encodable

Claims = Mapping[str, Any]


def user_of_claims(config: JwtConfig, claims: Claims) -> UserInfo:
    """Raises AuthenticationError where a rule is broken or a claim is not what it should be."""
    for rule in config.claim_rules:
        _check_claim(rule, claims)
    name = _name(config.username, claims)
    groups = _groups(config.groups, claims)
    uid = _text(config.uid, claims, "uid")
    extra = _extra(config, claims)
    user = UserInfo(name=name, uid=uid, groups=groups, extra=extra)
    try:
        check_encodable(user)
    except ValueError as error:
        raise AuthenticationError("oidc: the claims hold characters that are none") from error
    _check_user(config, user)
    return user


def _check_claim(rule: ClaimRule, claims: Claims) -> None:
    if rule.expression is not None:
        if _evaluated(rule.expression, claims, "claimValidationRules") is not True:
            why = rule.message or "validation expression failed"
            raise AuthenticationError(f"oidc: error evaluating claim validation expression: {why}")
        return
    if rule.claim not in claims:
        raise AuthenticationError(f"oidc: required claim {rule.claim} not present in ID token")
    value = claims[rule.claim]
    if not isinstance(value, str):
        raise AuthenticationError(f"oidc: parse claim {rule.claim}: it is no text")
    if value != rule.required_value:
        raise AuthenticationError(f"oidc: required claim {rule.claim} value does not match. Got = {value}, want = {rule.required_value}")


def _name(mapping: ClaimMapping, claims: Claims) -> str:
    if mapping.expression is not None:
        name = _evaluated(mapping.expression, claims, "username")
        if not isinstance(name, str):
            raise AuthenticationError("oidc: error evaluating username claim expression: username claim must be a string")
        if not name:
            raise AuthenticationError("oidc: error evaluating username claim expression: username claim value is empty string")
        return name
    if mapping.claim not in claims:
        raise AuthenticationError(f'oidc: parse username claims "{mapping.claim}": claim not present')
    name = claims[mapping.claim]
    if not isinstance(name, str) or not name:
        raise AuthenticationError(f'oidc: parse username claims "{mapping.claim}": it is no text with characters in it')
    # an address that nobody has checked may be anybody's
    if mapping.claim == "email" and "email_verified" in claims:
        verified = claims["email_verified"]
        if not isinstance(verified, bool):
            raise AuthenticationError("oidc: parse 'email_verified' claim: it is neither true nor false")
        if not verified:
            raise AuthenticationError("oidc: email not verified")
    return mapping.prefix + name


def _groups(mapping: ClaimMapping, claims: Claims) -> tuple[str, ...]:
    if mapping.expression is not None:
        return texts_of(_evaluated(mapping.expression, claims, "groups"), "oidc: error evaluating group claim expression")
    if not mapping.claim or mapping.claim not in claims:
        return ()
    value = claims[mapping.claim]
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(group, str) for group in value):
        raise AuthenticationError(f'oidc: parse groups claim "{mapping.claim}": it is neither a text nor a list of texts')
    return tuple(mapping.prefix + group for group in value)


def _text(mapping: ClaimMapping, claims: Claims, what: str) -> str:
    value: Any
    if mapping.expression is not None:
        value = _evaluated(mapping.expression, claims, what)
    elif not mapping.claim:
        return ""
    elif mapping.claim not in claims:
        raise AuthenticationError(f'oidc: parse {what} claim "{mapping.claim}": claim not present')
    else:
        value = claims[mapping.claim]
    if not isinstance(value, str):
        raise AuthenticationError(f"oidc: error evaluating {what} claim expression: {what} claim must be a string")
    return value


def _extra(config: JwtConfig, claims: Claims) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    jti = claims.get("jti")
    if isinstance(jti, str) and jti:
        extra[CREDENTIAL_ID_KEY] = (f"JTI={jti}",)
    for mapping in config.extra:
        values = texts_of(_evaluated(mapping.expression, claims, "extra"), "oidc: error evaluating extra claim expression")
        if values:
            extra[mapping.key] = values
    return extra


def texts_of(value: Any, problem: str) -> tuple[str, ...]:
    """A text or a list of them as a tuple; none, empty texts and empty lists are nothing."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise AuthenticationError(f"{problem}: it is neither a text nor a list of texts")


def _check_user(config: JwtConfig, user: UserInfo) -> None:
    if not config.user_rules:
        return
    shown = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    for rule in config.user_rules:
        if _evaluated(rule.expression, shown, "userValidationRules") is not True:
            raise AuthenticationError(f"oidc: error evaluating user info validation rule: {rule.message or 'validation expression failed'}")


def _evaluated(expression: Expression, value: Claims, what: str) -> Any:
    try:
        return expression(value)
    except ExpressionError as error:
        raise AuthenticationError(f"oidc: error evaluating {what} expression: {error}") from error
