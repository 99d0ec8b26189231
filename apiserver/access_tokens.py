"""From the configuration to the token authenticators that ask other servers, and to who may come without any credential."""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable

from apiserver.authentication import jwt_config
from apiserver.authentication.anonymous import AnonymousAuthenticator, AnonymousForPaths
from apiserver.authentication.authentication_file import AnonymousConfig, AuthenticationConfiguration, Compiled, parse
from apiserver.authentication.interfaces import RequestAuthenticator, TokenAuthentication
from apiserver.authentication.issuer_keys import IssuerKeys, IssuerLocation
from apiserver.authentication.jwt_config import JwtConfig
from apiserver.authentication.oidc import Issuer, JwtAuthenticator
from apiserver.authentication.user import UserInfo
from apiserver.authentication.webhook import WebhookTokenAuthenticator
from apiserver.config import OidcConfig, ServerConfig, WebhookConfig
from apiserver.identity_metrics import IdentityMetrics
from apiserver.outbound.json_client import JsonClient
from apiserver.outbound.review_endpoint import ReviewEndpoint
from apiserver.reloaded_file import ReloadedFile
from apiserver.request.request_context import RequestContext

Close = Callable[[], Awaitable[None]]

#: of one document of an issuer
ISSUER_TIMEOUT_SECONDS = 10.0
#: of a token review with all its attempts, as kube-apiserver's client has it
TOKEN_WEBHOOK_TIMEOUT_SECONDS = 30.0


class JwtIssuers:
    """The issuers of flags or of a file, which may change while the server runs, and the file's word on anonymous requests."""

    def __init__(self, config: ServerConfig, audiences: tuple[str, ...], metrics: IdentityMetrics) -> None:
        """Raises OSError, ValueError for files that cannot be used."""
        self._metrics = metrics
        self._audiences = audiences
        self._client = JsonClient(timeout_seconds=ISSUER_TIMEOUT_SECONDS)
        self.close: Close = self._client.close
        self._file: ReloadedFile[AuthenticationConfiguration] | None = None
        self._anonymous_by_flag: RequestAuthenticator | None = AnonymousAuthenticator() if config.anonymous_auth else None
        if config.authentication_config is not None:
            self._file = ReloadedFile(
                config.authentication_config, reader(config.service_account_issuer), time.monotonic, metrics.reloads[0]
            )
            self._configuration = self._file.current()
        elif config.oidc is not None:
            self._configuration = AuthenticationConfiguration(jwt=(_of_flags(config.oidc),))
        else:
            self._configuration = AuthenticationConfiguration()
        self._use(self._configuration)

    def _use(self, configuration: AuthenticationConfiguration) -> None:
        self._configuration = configuration
        issuers = [self._issuer(config) for config in configuration.jwt]
        self._authenticator = JwtAuthenticator(issuers, self._audiences, time.time, self._metrics)
        self._anonymous = self._anonymous_by_flag
        if configuration.anonymous is not None:
            self._anonymous = _anonymous(configuration.anonymous)

    def _issuer(self, config: JwtConfig) -> Issuer:
        context = ssl.create_default_context(cadata=config.ca.decode("ascii") if config.ca else None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        location = IssuerLocation(url=config.issuer_url, discovery_url=config.discovery_url, context=context)
        return Issuer(config=config, keys=IssuerKeys(location, self._client, time.monotonic, self._metrics.issuers.keys_fetched))

    def _look(self) -> None:
        if self._file is not None:
            configuration = self._file.current()
            if configuration is not self._configuration:
                self._use(configuration)

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """Raises AuthenticationError, Unanswered."""
        self._look()
        return self._authenticator.authenticate_token(token, audiences)

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        """Of a request without any credential: the anonymous user, or None."""
        self._look()
        return self._anonymous.authenticate(context) if self._anonymous is not None else None


def reader(disallowed_issuers: tuple[str, ...]) -> Callable[[str], AuthenticationConfiguration]:
    """What reads an AuthenticationConfiguration. Raises ConfigFileError."""
    return lambda text: parse(text, disallowed_issuers, _compile)


def _compile(source: str, variable: str, is_condition: bool) -> Compiled:
    from apiserver.authentication import claim_expressions  # CEL is loaded where a configuration has any

    return claim_expressions.compile_expression(source, variable, is_condition)


def _anonymous(config: AnonymousConfig) -> RequestAuthenticator | None:
    if not config.enabled:
        return None
    return AnonymousAuthenticator() if config.paths is None else AnonymousForPaths(config.paths)


def _of_flags(oidc: OidcConfig) -> JwtConfig:
    return jwt_config.of_flags(
        issuer_url=oidc.issuer_url,
        client_id=oidc.client_id,
        username_claim=oidc.username_claim,
        username_prefix=oidc.username_prefix,
        groups_claim=oidc.groups_claim,
        groups_prefix=oidc.groups_prefix,
        required_claims=oidc.required_claim,
        signing_algs=oidc.signing_algs,
        ca=oidc.ca_file.read_bytes() if oidc.ca_file is not None else b"",
    )


def webhook_authenticator(
    config: WebhookConfig, audiences: tuple[str, ...], metrics: IdentityMetrics
) -> tuple[WebhookTokenAuthenticator, Close]:
    """Raises OSError, ValueError for a file that cannot be used."""
    endpoint = ReviewEndpoint(
        config.config_file, timeout_seconds=TOKEN_WEBHOOK_TIMEOUT_SECONDS, now=time.monotonic, observer=metrics.webhook_tokens
    )
    authenticator = WebhookTokenAuthenticator(
        endpoint,
        version=config.version,
        api_audiences=audiences,
        cache_ttl_seconds=config.authorized_ttl_seconds,
        now=time.monotonic,
        observer=metrics.tokens,
    )
    metrics.tokens.waiting.append(authenticator.waiting)
    return authenticator, endpoint.close
