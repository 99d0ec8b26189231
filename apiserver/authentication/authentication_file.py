"""``--authentication-config``: an AuthenticationConfiguration (apiserver.config.k8s.io v1, v1beta1, v1alpha1), read, checked and compiled.

apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [sampan]}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
anonymous:
  enabled: true
  conditions: [{path: /livez}]
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Collection
from dataclasses import dataclass

from apiserver.authentication.issuer_keys import ALGORITHMS
from apiserver.authentication.jwt_config import ClaimMapping, ClaimRule, Expression, ExtraMapping, JwtConfig, UserRule
from apiserver.machinery import field_errors
from apiserver.machinery.config_file import ConfigFileError, Section, read_config
from apiserver.machinery.field_errors import FieldError

GROUP = "apiserver.config.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
ISSUERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousConfig:
    """``paths`` None: everywhere."""

    enabled: bool
    paths: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationConfiguration:
    """``anonymous`` None: as ``--anonymous-auth`` says."""

    jwt: tuple[JwtConfig, ...] = ()
    anonymous: AnonymousConfig | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """``fields``: what is selected from ``claims`` somewhere in the expression."""

    expression: Expression
    fields: frozenset[str] = frozenset()


#: (source, variable: "claims" or "user", must it be true or false) → the compiled expression; raises ValueError
Compile = Callable[[str, str, bool], Compiled]


def parse(text: str, disallowed_issuers: Collection[str], compile_expression: Compile) -> AuthenticationConfiguration:
    """Raises ConfigFileError, with a line for each mistake. ``disallowed_issuers``: those of ServiceAccount tokens."""
    root = read_config(text, GROUP, VERSIONS, "AuthenticationConfiguration")
    reader = _Reader(frozenset(disallowed_issuers), compile_expression)
    configuration = reader.read(root)
    problems = [*root.problems(), *(error.text() for error in reader.errors)]
    if problems:
        raise ConfigFileError(problems)
    return configuration


class _Reader:
    def __init__(self, disallowed_issuers: frozenset[str], compile_expression: Compile) -> None:
        self.errors: list[FieldError] = []
        self._disallowed = disallowed_issuers
        self._compile_expression = compile_expression

    def read(self, root: Section) -> AuthenticationConfiguration:
        sections = root.sections("jwt")
        if len(sections) > ISSUERS_MAX:
            self.errors.append(field_errors.too_many("jwt", len(sections), ISSUERS_MAX))
            return AuthenticationConfiguration()
        jwt = tuple(self._issuer(section) for section in sections)
        self._check_unique([config.issuer_url for config in jwt], "jwt[{}].issuer.url")
        self._check_unique([config.discovery_url for config in jwt], "jwt[{}].issuer.discoveryURL")
        anonymous = root.section("anonymous")
        return AuthenticationConfiguration(jwt=jwt, anonymous=self._anonymous(anonymous) if anonymous is not None else None)

    def _check_unique(self, values: list[str], path: str) -> None:
        seen: set[str] = set()
        for position, value in enumerate(values):
            if value and value in seen:
                self.errors.append(field_errors.duplicate(path.format(position), value))
            seen.add(value)

    def _anonymous(self, section: Section) -> AnonymousConfig:
        enabled = section.flag("enabled")
        conditions = section.sections("conditions")
        paths = tuple(condition.text("path") for condition in conditions)
        if conditions and not enabled:
            why = "enabled should be set to true when conditions are defined"
            self.errors.append(field_errors.invalid("anonymous.conditions", [{"path": path} for path in paths], why))
        return AnonymousConfig(enabled=enabled, paths=paths if conditions else None)

    def _issuer(self, section: Section) -> JwtConfig:
        issuer = section.required_section("issuer")
        url, discovery_url = issuer.text("url"), issuer.text("discoveryURL")
        self._check_url(url, issuer.path("url"), self._disallowed, required=True)
        if discovery_url:
            if url.rstrip("/") == discovery_url.rstrip("/"):
                why = "discoveryURL must be different from URL"
                self.errors.append(field_errors.invalid(issuer.path("discoveryURL"), discovery_url, why))
            self._check_url(discovery_url, issuer.path("discoveryURL"), frozenset())
        if selector := issuer.text("egressSelectorType"):
            # there is no egress selector here: what it asks for could only be ignored
            self.errors.append(field_errors.invalid(issuer.path("egressSelectorType"), selector, "egress selectors are not supported"))
        ca = issuer.text("certificateAuthority")
        self._check_authority(ca, issuer.path("certificateAuthority"))
        fields: set[str] = set()
        claim_rules = self._claim_rules(section, fields)
        mappings = section.required_section("claimMappings")
        name_fields: set[str] = set()
        username_section = mappings.required_section("username")
        username = self._mapping(username_section, name_fields, required=True)
        groups_section, uid_section = mappings.section("groups"), mappings.section("uid")
        groups = self._mapping(groups_section, set()) if groups_section is not None else ClaimMapping()
        uid = self._uid(uid_section) if uid_section is not None else ClaimMapping()
        extra = self._extra(mappings, fields)
        if "email" in name_fields and "email_verified" not in name_fields | fields:
            why = (
                "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
                "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
            )
            at = username_section.path("expression")
            self.errors.append(field_errors.invalid(at, username_section.text("expression"), why))
        return JwtConfig(
            issuer_url=url,
            discovery_url=discovery_url,
            ca=ca.encode(),
            audiences=self._audiences(issuer),
            algorithms=ALGORITHMS,
            username=username,
            groups=groups,
            uid=uid,
            extra=extra,
            claim_rules=claim_rules,
            user_rules=self._user_rules(section),
        )

    def _check_url(self, url: str, path: str, disallowed: frozenset[str], *, required: bool = False) -> None:
        if not url:
            if required:
                self.errors.append(field_errors.required(path))
            return
        for why in url_problems(url, disallowed):
            self.errors.append(field_errors.invalid(path, url, why))

    def _check_authority(self, ca: str, path: str) -> None:
        if not ca:
            return
        from cryptography import x509

        try:
            x509.load_pem_x509_certificates(ca.encode())
        except ValueError:
            self.errors.append(field_errors.invalid(path, "<omitted>", "data does not contain any valid RSA or ECDSA certificates"))

    def _audiences(self, issuer: Section) -> tuple[str, ...]:
        audiences, policy = issuer.texts("audiences"), issuer.text("audienceMatchPolicy")
        at, policy_at = issuer.path("audiences"), issuer.path("audienceMatchPolicy")
        if not audiences:
            self.errors.append(field_errors.required(at, f"at least one {at} is required"))
            return ()
        seen: set[str] = set()
        for position, audience in enumerate(audiences):
            if not audience:
                self.errors.append(field_errors.required(f"{at}[{position}]"))
            if audience in seen:
                self.errors.append(field_errors.duplicate(f"{at}[{position}]", audience))
            seen.add(audience)
        if len(audiences) > 1 and policy != "MatchAny":
            why = "audienceMatchPolicy must be MatchAny for multiple audiences"
            self.errors.append(field_errors.invalid(policy_at, policy, why))
        if len(audiences) == 1 and policy not in ("", "MatchAny"):
            why = "audienceMatchPolicy must be empty or MatchAny for single audience"
            self.errors.append(field_errors.invalid(policy_at, policy, why))
        return audiences

    def _claim_rules(self, section: Section, fields: set[str]) -> tuple[ClaimRule, ...]:
        rules: list[ClaimRule] = []
        seen: set[tuple[str, str]] = set()
        for rule in section.sections("claimValidationRules"):
            claim, value = rule.text("claim"), rule.text("requiredValue")
            source, message = rule.text("expression"), rule.text("message")
            if claim and source:
                self.errors.append(field_errors.invalid(rule.path(), claim, "claim and expression can't both be set"))
            elif not claim and not source:
                self.errors.append(field_errors.required(rule.path(), "claim or expression is required"))
            elif claim:
                if message:
                    self.errors.append(field_errors.invalid(rule.path("message"), message, "may not be specified when claim is set"))
                if ("claim", claim) in seen:
                    self.errors.append(field_errors.duplicate(rule.path("claim"), claim))
                seen.add(("claim", claim))
                rules.append(ClaimRule(claim=claim, required_value=value))
            else:
                if value:
                    why = "may not be specified when expression is set"
                    self.errors.append(field_errors.invalid(rule.path("requiredValue"), value, why))
                if ("expression", source) in seen:
                    self.errors.append(field_errors.duplicate(rule.path("expression"), source))
                    continue
                seen.add(("expression", source))
                compiled = self._compiled(source, rule.path("expression"), "claims", is_condition=True)
                if compiled is not None:
                    fields |= compiled.fields
                    rules.append(ClaimRule(expression=compiled.expression, message=message))
        return tuple(rules)

    def _mapping(self, section: Section, fields: set[str], *, required: bool = False) -> ClaimMapping:
        claim, source, prefix = section.text("claim"), section.text("expression"), section.optional_text("prefix")
        if claim and source:
            self.errors.append(field_errors.invalid(section.path(), "", "claim and expression can't both be set"))
        elif source:
            if prefix is not None:
                self.errors.append(field_errors.invalid(section.path("prefix"), prefix, "may not be specified when expression is set"))
            compiled = self._compiled(source, section.path("expression"), "claims")
            if compiled is not None:
                fields |= compiled.fields
                return ClaimMapping(expression=compiled.expression)
        elif claim:
            if prefix is None:
                why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                self.errors.append(field_errors.required(section.path("prefix"), why))
        elif required:
            self.errors.append(field_errors.required(section.path(), "claim or expression is required"))
        return ClaimMapping(claim=claim, prefix=prefix or "")

    def _uid(self, section: Section) -> ClaimMapping:
        claim, source = section.text("claim"), section.text("expression")
        if claim and source:
            self.errors.append(field_errors.invalid(section.path(), "", "claim and expression can't both be set"))
        elif source:
            compiled = self._compiled(source, section.path("expression"), "claims")
            return ClaimMapping(expression=compiled.expression if compiled is not None else None)
        return ClaimMapping(claim=claim)

    def _extra(self, mappings: Section, fields: set[str]) -> tuple[ExtraMapping, ...]:
        found: list[ExtraMapping] = []
        seen: set[str] = set()
        for section in mappings.sections("extra"):
            key, source = section.text("key"), section.text("valueExpression")
            at = section.path("key")
            for why in _extra_key_problems(key):
                self.errors.append(field_errors.invalid(at, key, why) if key else field_errors.required(at))
            if key in seen:
                self.errors.append(field_errors.duplicate(at, key))
                continue
            seen.add(key)
            if not source:
                self.errors.append(field_errors.required(section.path("valueExpression")))
                continue
            compiled = self._compiled(source, section.path("valueExpression"), "claims")
            if compiled is not None:
                fields |= compiled.fields
                found.append(ExtraMapping(key=key, expression=compiled.expression))
        return tuple(found)

    def _user_rules(self, section: Section) -> tuple[UserRule, ...]:
        rules: list[UserRule] = []
        seen: set[str] = set()
        for rule in section.sections("userValidationRules"):
            source, message = rule.text("expression"), rule.text("message")
            at = rule.path("expression")
            if not source:
                self.errors.append(field_errors.required(at))
            elif source in seen:
                self.errors.append(field_errors.duplicate(at, source))
            else:
                seen.add(source)
                compiled = self._compiled(source, at, "user", is_condition=True)
                if compiled is not None:
                    rules.append(UserRule(expression=compiled.expression, message=message))
        return tuple(rules)

    def _compiled(self, source: str, path: str, variable: str, *, is_condition: bool = False) -> Compiled | None:
        try:
            return self._compile_expression(source, variable, is_condition)
        except ValueError as error:
            self.errors.append(field_errors.invalid(path, source, str(error)))
            return None


def url_problems(url: str, disallowed: Collection[str] = ()) -> list[str]:
    """What keeps ``url`` from being an issuer's."""
    found: list[str] = []
    if url in disallowed:
        found.append(f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed))}]")
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        return [*found, str(error)]
    if parts.scheme != "https":
        found.append("URL scheme must be https")
    if "@" in parts.netloc:
        found.append("URL must not contain a username or password")
    if parts.query:
        found.append("URL must not contain a query")
    if parts.fragment:
        found.append("URL must not contain a fragment")
    return found


_PATH = re.compile(r"\A[A-Za-z0-9/\-._~%!$&'()*+,;=:]+\Z")


def _extra_key_problems(key: str) -> list[str]:
    """``example.org/foo``: a domain that is not Kubernetes' own, and a path."""
    from apiserver.machinery.names import dns1123_subdomain

    if not key:
        return [""]
    domain, slash, path = key.partition("/")
    found: list[str] = []
    if not slash:
        found.append('must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        found += dns1123_subdomain(domain)
        if not path:
            found.append('must be a domain-prefixed path (such as "acme.io/foo")')
        elif not _PATH.match(path):
            found.append("Invalid path")
    if key != key.lower():
        found.append("must be lowercase")
    if slash and any(domain == own or domain.endswith("." + own) for own in ("kubernetes.io", "k8s.io")):
        found.append("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use")
    return found
