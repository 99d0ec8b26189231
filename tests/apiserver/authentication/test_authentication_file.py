"""AuthenticationConfiguration files: what is refused, in kube-apiserver's words, and what CEL makes of claims."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.authentication.authentication_file import AuthenticationConfiguration, parse
from apiserver.authentication.claim_expressions import compile_expression
from apiserver.authentication.claims import user_of_claims
from apiserver.authentication.interfaces import AuthenticationError
from apiserver.machinery.config_file import ConfigFileError

ISSUER = {"url": "https://idp.example", "audiences": ["sampan"]}
NAME = {"username": {"claim": "sub", "prefix": ""}}


def document(*jwt: dict[str, Any], **more: Any) -> str:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return json.dumps({**head, **({"jwt": list(jwt)} if jwt else {}), **more})


def read(text: str) -> AuthenticationConfiguration:
    return parse(text, ("https://own.example",), compile_expression)


def issuer(**more: Any) -> dict[str, Any]:
    return {"issuer": ISSUER, "claimMappings": NAME, **more}


def mapped(**mappings: Any) -> dict[str, Any]:
    return issuer(claimMappings={**NAME, **mappings})


@pytest.mark.parametrize(
    ("jwt", "told"),
    [
        ({"issuer": {"audiences": ["a"]}, "claimMappings": NAME}, "jwt[0].issuer.url: Required value"),
        (issuer(issuer={**ISSUER, "url": "http://a"}), 'jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https'),
        (issuer(issuer={**ISSUER, "url": "https://a:b@c"}), "URL must not contain a username or password"),
        (issuer(issuer={**ISSUER, "url": "https://a?b"}), "URL must not contain a query"),
        (issuer(issuer={**ISSUER, "url": "https://a#b"}), "URL must not contain a fragment"),
        (issuer(issuer={**ISSUER, "url": "https://own.example"}), "URL must not overlap with disallowed issuers: [https://own.example]"),
        (issuer(issuer={**ISSUER, "discoveryURL": "https://idp.example/"}), "discoveryURL must be different from URL"),
        (issuer(issuer={"url": "https://a"}), "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"),
        (issuer(issuer={**ISSUER, "audiences": ["a", "a"]}), 'jwt[0].issuer.audiences[1]: Duplicate value: "a"'),
        (issuer(issuer={**ISSUER, "audiences": ["a", "b"]}), "audienceMatchPolicy must be MatchAny for multiple audiences"),
        (issuer(issuer={**ISSUER, "certificateAuthority": "x"}), 'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>"'),
        (issuer(claimMappings={}), "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        (issuer(claimMappings={"username": {"claim": "sub"}}), "jwt[0].claimMappings.username.prefix: Required value: prefix is required"),
        (issuer(claimMappings={"username": {"claim": "sub", "expression": "'a'"}}), "claim and expression can't both be set"),
        (mapped(groups={"expression": "claims.groups", "prefix": ""}), "may not be specified when expression is set"),
        (mapped(groups={"expression": "claims."}), "jwt[0].claimMappings.groups.expression: Invalid value"),
        (mapped(groups={"expression": "user.name"}), "undeclared reference to 'user'"),
        (mapped(extra=[{"key": "foo", "valueExpression": "'a'"}]), "must be a domain-prefixed path"),
        (mapped(extra=[{"key": "Example.org/foo", "valueExpression": "'a'"}]), "must be lowercase"),
        (mapped(extra=[{"key": "x.kubernetes.io/foo", "valueExpression": "'a'"}]), "are reserved for Kubernetes use"),
        (mapped(extra=[{"key": "example.org/foo"}]), "jwt[0].claimMappings.extra[0].valueExpression: Required value"),
        (issuer(claimMappings={"username": {"expression": "claims.email"}}), "claims.email_verified must be used"),
        (issuer(claimValidationRules=[{}]), "jwt[0].claimValidationRules[0]: Required value: claim or expression is required"),
        (issuer(claimValidationRules=[{"expression": "'a'"}]), "jwt[0].claimValidationRules[0].expression: Invalid value: \"'a'\": must"),
        (issuer(claimValidationRules=[{"claim": "a"}, {"claim": "a"}]), 'claimValidationRules[1].claim: Duplicate value: "a"'),
        (issuer(userValidationRules=[{"message": "x"}]), "jwt[0].userValidationRules[0].expression: Required value"),
        (issuer(userValidationRules=[{"expression": "user.nothing == 'a'"}]), "undefined field 'nothing'"),
        (issuer(surplus=1), 'unknown field "jwt[0].surplus"'),
        (issuer(issuer={**ISSUER, "audiences": "a"}), "jwt[0].issuer.audiences: must be a list"),
    ],
)
def test_mistakes_are_told_with_their_place(jwt: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        read(document(jwt))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is no object"),
        ("[]", "it is no object"),
        ("{", "it is no YAML"),
        ("kind: AuthenticationConfiguration", "it must be of apiVersion"),
        (document(anonymous={"enabled": False, "conditions": [{"path": "/livez"}]}), "enabled should be set to true"),
        (document(issuer(), issuer()), 'jwt[1].issuer.url: Duplicate value: "https://idp.example"'),
        (document(*[issuer() for _ in range(65)]), "jwt: Too many: 65: must have at most 64 items"),
    ],
)
def test_files_that_are_none(text: str, told: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        read(text)
    assert told in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigFileError) as caught:
        read(document({"issuer": {}, "claimMappings": {}}, surplus=True))
    assert len(caught.value.problems) == 4


def test_an_empty_configuration_knows_nobody() -> None:
    assert read(document()) == AuthenticationConfiguration()


EXPRESSIONS = issuer(
    claimValidationRules=[
        {"expression": "claims.exp - claims.nbf <= 86400", "message": "total token lifetime must not exceed 24 hours"},
        {"claim": "tenant", "requiredValue": "t1"},
    ],
    claimMappings={
        "username": {"expression": "claims.?email_verified.orValue(true) ? claims.email : ''"},
        "groups": {"expression": "claims.roles.map(role, 'x:' + role)"},
        "uid": {"expression": "claims.sub"},
        "extra": [{"key": "example.org/admin", "valueExpression": "has(claims.is_admin) && claims.is_admin ? 'true' : ''"}],
    },
    userValidationRules=[{"expression": "!user.username.startsWith('system:')", "message": "username cannot use the prefix system:"}],
)
CLAIMS: dict[str, Any] = {"exp": 100, "nbf": 50, "tenant": "t1", "email": "ann@a", "sub": "7", "roles": ["dev", "ops"], "is_admin": True}


def test_expressions_make_the_user() -> None:
    (config,) = read(document(EXPRESSIONS)).jwt
    user = user_of_claims(config, CLAIMS)
    assert (user.name, user.uid, user.groups) == ("ann@a", "7", ("x:dev", "x:ops"))
    assert user.extra == {"example.org/admin": ("true",)}
    assert user_of_claims(config, CLAIMS | {"is_admin": False}).extra == {}, "an empty value is none"


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ({"exp": 100_000}, "total token lifetime must not exceed 24 hours"),
        ({"tenant": "t2"}, "required claim tenant value does not match"),
        ({"email_verified": False}, "username claim value is empty string"),
        ({"email": 7}, "username claim must be a string"),
        ({"email": "system:admin"}, "username cannot use the prefix system:"),
        ({"roles": 7}, "error evaluating groups expression"),
        ({"exp": 10**400}, "a number that is too large"),
        ({"exp": "soon"}, "error evaluating claimValidationRules expression"),
    ],
)
def test_claims_that_break_a_rule_name_nobody(claims: dict[str, Any], told: str) -> None:
    (config,) = read(document(EXPRESSIONS)).jwt
    with pytest.raises(AuthenticationError) as caught:
        user_of_claims(config, CLAIMS | claims)
    assert told in str(caught.value)
