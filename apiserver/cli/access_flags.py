"""Flags of authentication and authorization, as kube-apiserver names them, and the part of ``ServerConfig`` that they make."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from apiserver.authentication.token_file import parse_token_file
from apiserver.authorization.union import MODES, check_modes
from apiserver.cli import pem_files
from apiserver.cli.datadir import DataDirError
from apiserver.cli.errors import UsageError
from apiserver.cli.go_values import Accumulate, switch
from apiserver.config import OidcConfig, RequestHeaderConfig, WebhookConfig

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_MODES = ("Node", "RBAC")
#: a ServiceAccount token may not be shorter or longer at the most (kube-apiserver's bounds of the flag)
MAX_TOKEN_EXPIRATION_SECONDS_MIN = 3600
MAX_TOKEN_EXPIRATION_SECONDS_MAX = 2**32

_SWITCH: dict[str, Any] = {"type": switch, "nargs": "?", "const": "true", "metavar": "BOOL"}

Duration = Callable[[str], float]
Names = Callable[[str], tuple[str, ...]]

_OIDC = ("issuer_url", "client_id", "username_claim", "username_prefix", "groups_claim", "groups_prefix", "required_claim", "signing_algs",
         "ca_file")  # fmt: skip


def add_access_flags(parser: argparse.ArgumentParser, duration: Duration, names: Names) -> None:
    """``duration`` and ``names`` parse values."""
    _add_authentication(parser.add_argument_group("authentication"), duration, names)
    _add_service_accounts(parser.add_argument_group("authentication: service accounts"), duration, names)
    _add_authorization(parser.add_argument_group("authorization"), duration, names)


def _add_authentication(group: argparse._ArgumentGroup, duration: Duration, names: Names) -> None:
    add = group.add_argument
    add("--client-ca-file", type=Path, help="further CA bundle for client certificates")
    add("--token-auth-file", type=Path, help='CSV of token,user,uid,"group1,group2"')
    add("--anonymous-auth", **_SWITCH, help="let requests without credentials in (default true)")
    add("--enable-bootstrap-token-auth", default="true", **_SWITCH, help="nodes join by bootstrap tokens (default true)")
    add("--authentication-config", type=Path, metavar="FILE", help="an AuthenticationConfiguration: JWT issuers, anonymous requests")
    add("--oidc-issuer-url", help="an OpenID Connect issuer (https) whose ID tokens name users")
    add("--oidc-client-id", help="the audience that its tokens must have")
    add("--oidc-ca-file", type=Path, help="who may vouch for the issuer's server (default: the system's authorities)")
    add("--oidc-username-claim", help="the claim that names the user (default sub)")
    add("--oidc-username-prefix", help='put before user names (default the issuer and "#", none for email; "-": none)')
    add("--oidc-groups-claim", help="the claim that names the user's groups")
    add("--oidc-groups-prefix", help="put before group names")
    add("--oidc-required-claim", action="append", metavar="CLAIM=VALUE", help="what a token must say (any number of times)")
    add("--oidc-signing-algs", type=names, action=Accumulate, help="algorithms of its signatures (default RS256)")
    add("--authentication-token-webhook-config-file", type=Path, metavar="KUBECONFIG", help="a server that reviews tokens")
    add("--authentication-token-webhook-version", choices=("v1", "v1beta1"), default="v1beta1", help="of its TokenReviews")
    add("--authentication-token-webhook-cache-ttl", type=duration, default=120.0, help="how long its answers hold (default 2m)")
    add("--requestheader-client-ca-file", type=Path, help="who signed the certificate of the authenticating proxy; no other may name users")
    add("--requestheader-allowed-names", type=names, action=Accumulate, default=(), help="common names of its certificate (default: any)")
    add("--requestheader-username-headers", type=names, action=Accumulate, default=(), help="headers that name the user, X-Remote-User")
    add("--requestheader-uid-headers", type=names, action=Accumulate, default=(), help="its uid, X-Remote-Uid")
    add("--requestheader-group-headers", type=names, action=Accumulate, default=(), help="its groups, X-Remote-Group")
    add("--requestheader-extra-headers-prefix", type=names, action=Accumulate, default=(), help="what else is said of it, X-Remote-Extra-")


def _add_service_accounts(group: argparse._ArgumentGroup, duration: Duration, names: Names) -> None:
    add = group.add_argument
    add("--service-account-issuer", action="append", help="iss of tokens; the first signs, all are accepted (any number of times)")
    add("--service-account-key-file", type=Path, action="append", help="keys that check tokens (default: made; any number of times)")
    add("--service-account-signing-key-file", type=Path, help="private key that signs tokens (default: made)")
    add("--service-account-jwks-uri", default="", help="where others find the keys (default: this server)")
    add("--service-account-max-token-expiration", type=duration, default=0.0, help="longest life of a token (default: what is asked for)")
    add("--service-account-extend-token-expiration", default="true", **_SWITCH,
        help="tokens mounted automatically work for a year (default true)")  # fmt: skip
    add("--service-account-lookup", default="true", **_SWITCH, help="a token ends with its account (default true)")
    add("--api-audiences", type=names, action=Accumulate, default=(), help="audiences of tokens (default the issuer)")


def _add_authorization(group: argparse._ArgumentGroup, duration: Duration, names: Names) -> None:
    add = group.add_argument
    add("--authorization-mode", type=names, action=Accumulate, help=f"of {','.join(MODES)} (default Node,RBAC)")
    add("--authorization-config", type=Path, metavar="FILE", help="an AuthorizationConfiguration, in place of modes and webhook flags")
    add("--authorization-webhook-config-file", type=Path, metavar="KUBECONFIG", help="a server that reviews access, for the mode Webhook")
    add("--authorization-webhook-version", choices=("v1", "v1beta1"), help="of its SubjectAccessReviews (default v1beta1)")
    add("--authorization-webhook-cache-authorized-ttl", type=duration, help="how long what it allows holds (default 5m)")
    add("--authorization-webhook-cache-unauthorized-ttl", type=duration, help="how long what it refuses holds (default 30s)")


def access_settings(flags: argparse.Namespace, public_key: Path, private_key: Path) -> dict[str, Any]:
    """Fields of ``ServerConfig``. ``public_key``, ``private_key``: of ServiceAccount tokens where no flag says others. Raises one line
    that names the flag: DataDirError for files that cannot be used, UsageError for values."""
    for flag in _FILES:
        for path in _paths(getattr(flags, flag)):
            pem_files.readable(f"--{flag.replace('_', '-')}", path, DataDirError)
    issuers = tuple(flags.service_account_issuer or (DEFAULT_ISSUER,))
    settings: dict[str, Any] = {
        "token_auth_file": flags.token_auth_file,
        "anonymous_auth": flags.anonymous_auth != "false",
        "enable_bootstrap_token_auth": flags.enable_bootstrap_token_auth == "true",
        "service_account_issuer": issuers,
        # a key that signs checks as well, where no other is named
        "service_account_key_file": tuple(flags.service_account_key_file or (flags.service_account_signing_key_file or public_key,)),
        "service_account_signing_key_file": flags.service_account_signing_key_file or private_key,
        "service_account_jwks_uri": flags.service_account_jwks_uri,
        "service_account_max_token_expiration_seconds": _max_expiration(flags.service_account_max_token_expiration),
        "service_account_extend_token_expiration": flags.service_account_extend_token_expiration == "true",
        "service_account_lookup": flags.service_account_lookup == "true",
        "api_audiences": flags.api_audiences,
        "oidc": _oidc(flags, issuers),
        "authentication_config": flags.authentication_config,
        "request_header": _request_header(flags),
    }
    if flags.service_account_jwks_uri and not flags.service_account_jwks_uri.startswith("https://"):
        raise UsageError("--service-account-jwks-uri: it must be an https URL")
    for issuer in issuers:
        if not issuer or (":" in issuer and not issuer.split(":")[0]):
            raise UsageError("--service-account-issuer: it must be a name or a URL")
    if flags.authentication_token_webhook_config_file is not None:
        ttl = flags.authentication_token_webhook_cache_ttl
        settings["authentication_token_webhook"] = WebhookConfig(
            config_file=flags.authentication_token_webhook_config_file,
            version=flags.authentication_token_webhook_version,
            authorized_ttl_seconds=ttl,
            unauthorized_ttl_seconds=ttl,
        )
    settings |= _authorization(flags)
    _check_contents(flags, issuers)
    return settings


_FILES = (
    "token_auth_file",
    "authentication_config",
    "oidc_ca_file",
    "authentication_token_webhook_config_file",
    "requestheader_client_ca_file",
    "service_account_key_file",
    "service_account_signing_key_file",
    "authorization_config",
    "authorization_webhook_config_file",
)


def _paths(value: Path | Sequence[Path] | None) -> Sequence[Path]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Path) else value


def _max_expiration(seconds: float) -> int:
    if seconds and not MAX_TOKEN_EXPIRATION_SECONDS_MIN <= seconds <= MAX_TOKEN_EXPIRATION_SECONDS_MAX:
        raise UsageError("--service-account-max-token-expiration: it must be between 1h and 2^32 seconds")
    return int(seconds)


def _oidc(flags: argparse.Namespace, issuers: Sequence[str]) -> OidcConfig | None:
    given = {name: value for name in _OIDC if (value := getattr(flags, f"oidc_{name}")) is not None}
    if not given:
        return None
    if flags.authentication_config is not None:
        raise UsageError("--authentication-config and --oidc-* exclude each other: the file names the issuers")
    if not given.get("issuer_url") or not given.get("client_id"):
        raise UsageError("--oidc-issuer-url and --oidc-client-id go together, and with every other --oidc-* flag")
    from apiserver.authentication.authentication_file import url_problems
    from apiserver.authentication.issuer_keys import ALGORITHMS

    if problems := url_problems(given["issuer_url"], issuers):
        raise UsageError(f"--oidc-issuer-url: {problems[0]}")
    for algorithm in given.get("signing_algs", ()):
        if algorithm not in ALGORITHMS:
            raise UsageError(f"--oidc-signing-algs: unsupported signing algorithm {algorithm!r}; of {', '.join(ALGORITHMS)}")
    given["required_claim"] = _pairs(given.get("required_claim", ()))
    return OidcConfig(**given)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name:
                raise UsageError(f"--oidc-required-claim: {part!r} is no CLAIM=VALUE")
            if name in found:
                raise UsageError(f"--oidc-required-claim: {name} is required twice")
            found[name] = value
    return found


def _request_header(flags: argparse.Namespace) -> RequestHeaderConfig | None:
    others = ("allowed_names", "username_headers", "uid_headers", "group_headers", "extra_headers_prefix")
    if flags.requestheader_client_ca_file is None:
        for other in others:
            if getattr(flags, f"requestheader_{other}"):
                raise UsageError(f"--requestheader-{other.replace('_', '-')} is of use only with --requestheader-client-ca-file")
        return None
    if not flags.requestheader_username_headers:
        raise UsageError("--requestheader-client-ca-file needs --requestheader-username-headers")
    pem_files.check("--requestheader-client-ca-file", flags.requestheader_client_ca_file, _certificates, "certificate", DataDirError)
    values = {other: getattr(flags, f"requestheader_{other}") for other in others}
    return RequestHeaderConfig(client_ca_file=flags.requestheader_client_ca_file, **values)


def _certificates(content: bytes) -> object:
    from cryptography import x509

    return x509.load_pem_x509_certificates(content)


def _authorization(flags: argparse.Namespace) -> dict[str, Any]:
    webhook = {
        name: getattr(flags, f"authorization_webhook_{name}")
        for name in ("config_file", "version", "cache_authorized_ttl", "cache_unauthorized_ttl")
    }
    if flags.authorization_config is not None:
        if flags.authorization_mode is not None or any(value is not None for value in webhook.values()):
            raise UsageError("--authorization-config stands in place of --authorization-mode and --authorization-webhook-*")
        return {"authorization_config": flags.authorization_config}
    modes = DEFAULT_MODES if flags.authorization_mode is None else flags.authorization_mode
    try:
        check_modes(modes)
    except ValueError as error:
        raise UsageError(f"--authorization-mode: {error}") from error
    settings: dict[str, Any] = {"authorization_mode": modes}
    if "Webhook" in modes and webhook["config_file"] is None:
        raise UsageError("--authorization-mode Webhook needs --authorization-webhook-config-file")
    if "Webhook" not in modes and webhook["config_file"] is not None:
        raise UsageError("--authorization-webhook-config-file needs Webhook in --authorization-mode")
    if webhook["config_file"] is not None:
        allowed, refused = webhook["cache_authorized_ttl"], webhook["cache_unauthorized_ttl"]
        settings["authorization_webhook"] = WebhookConfig(
            config_file=webhook["config_file"],
            version=webhook["version"] or "v1beta1",
            authorized_ttl_seconds=300.0 if allowed is None else allowed,
            unauthorized_ttl_seconds=30.0 if refused is None else refused,
        )
    return settings


def _check_contents(flags: argparse.Namespace, issuers: Sequence[str]) -> None:
    """Files hold what they should: what would otherwise only fail while the server is built."""
    from apiserver.authentication import service_account

    def checked(flag: str, path: Path | None, load: Callable[[Path], object]) -> None:
        if path is None:
            return
        try:
            load(path)
        except (ValueError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise DataDirError(f"--{flag} {path}: {why}") from error

    checked("token-auth-file", flags.token_auth_file, lambda path: parse_token_file(path.read_text(encoding="utf-8")))
    for path in flags.service_account_key_file or ():
        pem_files.check("--service-account-key-file", path, service_account.load_public_keys, "public key", DataDirError)
    if flags.oidc_ca_file is not None:
        pem_files.check("--oidc-ca-file", flags.oidc_ca_file, _certificates, "certificate", DataDirError)
    if flags.authentication_token_webhook_config_file is not None or flags.authorization_webhook_config_file is not None:
        from apiserver.outbound import kubeconfig

        checked("authentication-token-webhook-config-file", flags.authentication_token_webhook_config_file, kubeconfig.load)
        checked("authorization-webhook-config-file", flags.authorization_webhook_config_file, kubeconfig.load)
    if flags.authentication_config is not None:
        from apiserver.access_tokens import reader

        def load(path: Path) -> None:
            configuration = reader(tuple(issuers))(path.read_text(encoding="utf-8"))
            if configuration.anonymous is not None and flags.anonymous_auth is not None:
                raise ValueError("it says who may come without credentials, and so does --anonymous-auth")

        checked("authentication-config", flags.authentication_config, load)
    if flags.authorization_config is not None:
        from apiserver.access_authorizers import reader as authorization_reader

        checked("authorization-config", flags.authorization_config, lambda path: authorization_reader(path.read_text(encoding="utf-8")))
