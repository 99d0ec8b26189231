"""From a client's certificate to an authority that is trusted, over the intermediates that the client sent along (RFC 5280 §6, as far as
clients of an API server need it): names and signatures, validity, the right to issue and how deep, extended key usage of each
certificate, name constraints, and no critical extension that is not understood.

What a client sends is bounded here, not trusted: a path has ``DEPTH_MAX`` certificates at most, and ``SIGNATURES_MAX`` signatures are
looked at in all, however many intermediates of one name there are.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from apiserver.authentication.interfaces import AuthenticationError

#: certificates of a path with both its ends
DEPTH_MAX = 8
#: of one verification (Go's number)
SIGNATURES_MAX = 100
#: intermediates of a client that are looked at; real ones send one or two
INTERMEDIATES_MAX = 16

_UNDERSTOOD_CRITICAL = frozenset(
    (
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
        ExtensionOID.NAME_CONSTRAINTS,
    )
)
_DATES = "certificate has expired or is not yet valid"


class NotYetValidError(AuthenticationError):
    """The certificate's time has not come; ``not_before`` in seconds of the wall clock."""

    def __init__(self, not_before: float) -> None:
        super().__init__(f"x509: {_DATES}")
        self.not_before = not_before


def verify_chain(
    leaf: x509.Certificate, authorities: Sequence[x509.Certificate], now: float, intermediates: Sequence[x509.Certificate] = ()
) -> list[x509.Certificate]:
    """The leaf, what lies between, and an issuer among ``authorities``, each of which is a trust anchor (so an intermediate of the file
    ends the chain). ``now``: seconds since the epoch.

    Raises AuthenticationError where there is no such chain or a rule is broken.
    """
    _check_dates(leaf, now)
    _check_extensions(leaf)
    _check_client_usage(leaf)
    if leaf in authorities:
        return [leaf]
    search = _Search(authorities, intermediates[:INTERMEDIATES_MAX], now)
    for chain in search.chains([leaf]):
        return chain
    if search.refusal is not None:
        raise search.refusal
    raise AuthenticationError("certificate signed by unknown authority")


@dataclass(slots=True)
class _Search:
    """Depth first; ``refusal`` tells why the first issuer that fits in name and key would not do."""

    authorities: Sequence[x509.Certificate]
    intermediates: Sequence[x509.Certificate]
    now: float
    signatures: int = 0
    refusal: AuthenticationError | None = None

    def chains(self, path: list[x509.Certificate]) -> Iterator[list[x509.Certificate]]:
        for authority in self.authorities:
            if self._may_follow(path, authority):
                yield [*path, authority]
        if len(path) + 1 >= DEPTH_MAX:
            return
        for intermediate in self.intermediates:
            if intermediate not in path and self._may_follow(path, intermediate):
                yield from self.chains([*path, intermediate])

    def _may_follow(self, path: list[x509.Certificate], issuer: x509.Certificate) -> bool:
        if issuer.subject != path[-1].issuer or not _may_issue(issuer):
            return False
        self.signatures += 1
        if self.signatures > SIGNATURES_MAX:
            raise AuthenticationError("signature check attempts exceeds limit while verifying certificate chain")
        try:
            path[-1].verify_directly_issued_by(issuer)
        except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
            return False
        try:
            _check_dates(issuer, self.now)
            _check_extensions(issuer)
            _check_client_usage(issuer)
            _check_depth(issuer, len(path) - 1)
            _check_names(issuer, path[0])
        except AuthenticationError as error:
            self.refusal = self.refusal or error
            return False
        return True


def _may_issue(authority: x509.Certificate) -> bool:
    try:
        if not authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
    except x509.ExtensionNotFound:
        return authority.version == x509.Version.v1
    try:
        return authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _check_dates(certificate: x509.Certificate, now: float) -> None:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    if moment < certificate.not_valid_before_utc:
        raise NotYetValidError(certificate.not_valid_before_utc.timestamp())
    if moment > certificate.not_valid_after_utc:
        raise AuthenticationError(_DATES)


def _check_extensions(certificate: x509.Certificate) -> None:
    for extension in certificate.extensions:
        if extension.critical and extension.oid not in _UNDERSTOOD_CRITICAL:
            raise AuthenticationError(f"unhandled critical extension {extension.oid.dotted_string}")


def _check_client_usage(certificate: x509.Certificate) -> None:
    """Of an authority too: one that issues for servers alone vouches for no client."""
    try:
        usages = set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return
    if not usages & {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}:
        raise AuthenticationError("certificate specifies an incompatible key usage")


def _check_depth(issuer: x509.Certificate, between: int) -> None:
    """``between``: intermediates below the issuer."""
    try:
        longest = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
    except x509.ExtensionNotFound:
        return
    if longest is not None and between > longest:
        raise AuthenticationError("too many intermediates for path length constraint")


def _check_names(issuer: x509.Certificate, leaf: x509.Certificate) -> None:
    """The leaf's alternative names against the issuer's name constraints (RFC 5280 §4.2.1.10)."""
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.NameConstraints).value
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for name in names:
        if any(_is_within(name, excluded) for excluded in constraints.excluded_subtrees or ()):
            raise AuthenticationError("a root or intermediate certificate is not authorized to sign for this name: it is excluded")
        of_its_kind = [each for each in constraints.permitted_subtrees or () if type(each) is type(name)]
        if of_its_kind and not any(_is_within(name, permitted) for permitted in of_its_kind):
            raise AuthenticationError("a root or intermediate certificate is not authorized to sign for this name: it is not permitted")


def _is_within(name: x509.GeneralName, subtree: x509.GeneralName) -> bool:
    if type(name) is not type(subtree):
        return False
    if isinstance(name, x509.IPAddress) and isinstance(subtree, x509.IPAddress):
        network = subtree.value
        if not isinstance(network, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
            return False
        address = name.value
        return isinstance(address, (ipaddress.IPv4Address, ipaddress.IPv6Address)) and address in network
    if isinstance(name, x509.DNSName) and isinstance(subtree, x509.DNSName):
        return _is_below(name.value, subtree.value)
    if isinstance(name, x509.RFC822Name) and isinstance(subtree, x509.RFC822Name):
        if "@" in subtree.value:
            return name.value == subtree.value
        return _is_host_below(name.value.rpartition("@")[2], subtree.value)
    if isinstance(name, x509.UniformResourceIdentifier) and isinstance(subtree, x509.UniformResourceIdentifier):
        host = name.value.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
        return _is_host_below(host, subtree.value)
    # other kinds are compared as a whole
    return name == subtree


def _is_below(host: str, domain: str) -> bool:
    host, domain = host.lower(), domain.lower().removeprefix(".")
    return not domain or host == domain or host.endswith("." + domain)


def _is_host_below(host: str, domain: str) -> bool:
    """Of addresses and URLs, where a domain without a dot before it means one host."""
    if domain.startswith("."):
        return host.lower().endswith(domain.lower())
    return not domain or host.lower() == domain.lower()
