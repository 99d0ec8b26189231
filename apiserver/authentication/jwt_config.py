"""What is known of a JWT issuer and of how its claims become a user (apiserver.config.k8s.io ``JWTAuthenticator``), whether from flags
(``--oidc-*``) or from a file (``authentication_file``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class ExpressionError(Exception):
    """A compiled expression could not be evaluated for these claims."""


class Expression(Protocol):
    """A compiled CEL expression over ``claims`` or ``user``."""

    def __call__(self, value: Mapping[str, Any], /) -> Any:
        """Plain values: str, bool, list, None. Raises ExpressionError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRule:
    """A claim must have a value, or an expression over all claims be true."""

    claim: str = ""
    required_value: str = ""
    expression: Expression | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRule:
    expression: Expression
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMapping:
    """A claim and what is put before its values, or an expression; neither: nothing."""

    claim: str = ""
    prefix: str = ""
    expression: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraMapping:
    key: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtConfig:
    """``ca``: PEM, b"" for the system's authorities. A token must be for one of ``audiences``."""

    issuer_url: str
    discovery_url: str = ""
    ca: bytes = b""
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    username: ClaimMapping
    groups: ClaimMapping = ClaimMapping()
    uid: ClaimMapping = ClaimMapping()
    extra: tuple[ExtraMapping, ...] = ()
    claim_rules: tuple[ClaimRule, ...] = ()
    user_rules: tuple[UserRule, ...] = ()


def of_flags(
    *,
    issuer_url: str,
    client_id: str,
    username_claim: str,
    username_prefix: str | None,
    groups_claim: str,
    groups_prefix: str,
    required_claims: Mapping[str, str],
    signing_algs: tuple[str, ...],
    ca: bytes,
) -> JwtConfig:
    """The issuer of ``--oidc-*``. A username prefix that is not said is the issuer's URL and ``#``, unless names are e-mail addresses;
    ``-`` says that there is none."""
    if username_prefix is None:
        prefix = "" if username_claim == "email" else f"{issuer_url}#"
    else:
        prefix = "" if username_prefix == "-" else username_prefix
    return JwtConfig(
        issuer_url=issuer_url,
        ca=ca,
        audiences=(client_id,),
        algorithms=signing_algs,
        username=ClaimMapping(claim=username_claim, prefix=prefix),
        groups=ClaimMapping(claim=groups_claim, prefix=groups_prefix if groups_claim else ""),
        claim_rules=tuple(ClaimRule(claim=name, required_value=value) for name, value in required_claims.items()),
    )
