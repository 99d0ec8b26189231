"""From the configuration to the authorizers: those of ``--authorization-mode``, or of a file, which may change while the server runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from apiserver.authorization.authorization_file import AuthorizerSettings, WebhookSettings, parse
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.authorization.decisions import Decider
from apiserver.authorization.static import PrivilegedGroupAuthorizer
from apiserver.authorization.union import UnionAuthorizer, check_modes
from apiserver.authorization.webhook import Conditions, WebhookAuthorizer, WebhookPolicy
from apiserver.config import ServerConfig, WebhookConfig
from apiserver.identity_metrics import IdentityMetrics
from apiserver.outbound.review_endpoint import ReviewEndpoint
from apiserver.reloaded_file import ReloadedFile

#: of a review with all its attempts, where no file says another
WEBHOOK_TIMEOUT_SECONDS = 30.0
#: what cannot come or go while the server runs, since their data is gathered from the start on
_FIXED = frozenset(("Node", "RBAC"))


def reader(text: str) -> tuple[AuthorizerSettings, ...]:
    """Reads an AuthorizationConfiguration. Raises ConfigFileError."""
    return parse(text, _compile)


def _compile(sources: list[str]) -> Conditions:
    from apiserver.authorization import match_conditions  # CEL is loaded where a configuration has any

    return match_conditions.compile_conditions(sources)


class ConfiguredAuthorizer:
    """``system:masters`` first, then what the configuration says, in its order."""

    def __init__(self, config: ServerConfig, local: Mapping[str, Authorizer], metrics: IdentityMetrics) -> None:
        """``local``: authorizers by mode that ask nobody. Raises OSError, ValueError for files and modes that cannot be used."""
        self._metrics = metrics
        self._local = local
        self._endpoints: list[ReviewEndpoint] = []
        self._version = 0
        self._file: ReloadedFile[tuple[AuthorizerSettings, ...]] | None = None
        if config.authorization_config is not None:
            self._file = ReloadedFile(config.authorization_config, self._read, time.monotonic, metrics.reloads[1])
            self._settings = self._file.current()
        else:
            check_modes(config.authorization_mode)
            settings = [
                AuthorizerSettings(type=mode, name=_name_of(mode), webhook=_of_flags(config.authorization_webhook, mode))
                for mode in config.authorization_mode
            ]
            self._settings = tuple(settings)
        self._union = self._built(self._settings)

    def modes(self) -> tuple[str, ...]:
        """Types in the order in which they are asked."""
        return tuple(settings.type for settings in self._settings)

    def generation(self) -> int | None:
        """As of ``UnionAuthorizer``."""
        self._look()
        generation = self._union.generation()
        return None if generation is None else generation + self._version

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Raises Unanswered."""
        self._look()
        return self._union.authorize(attributes)

    @property
    def last_decider(self) -> Decider:
        """As of ``UnionAuthorizer``."""
        return self._union.last_decider

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.close()

    def _read(self, text: str) -> tuple[AuthorizerSettings, ...]:
        found = reader(text)
        fixed = {each.type for each in found} & _FIXED
        if self._file is not None and fixed != set(self.modes()) & _FIXED:
            raise ValueError("Node and RBAC cannot be added or taken away while the server runs")
        return found

    def _look(self) -> None:
        if self._file is None:
            return
        settings = self._file.current()
        if settings is not self._settings:
            # endpoints of the old webhooks stay open: requests may be waiting for them
            self._union = self._built(settings)
            self._settings = settings
            self._version += 1 << 40

    def _built(self, settings: Sequence[AuthorizerSettings]) -> UnionAuthorizer:
        deciders = [Decider(), *(self._metrics.decisions.of(each.type, each.name) for each in settings)]
        return UnionAuthorizer([PrivilegedGroupAuthorizer(), *(self._authorizer(each) for each in settings)], deciders)

    def _authorizer(self, settings: AuthorizerSettings) -> Authorizer:
        if settings.webhook is None:
            return self._local[settings.type]
        webhook = settings.webhook
        endpoint = ReviewEndpoint(
            webhook.kubeconfig, timeout_seconds=webhook.timeout_seconds, now=time.monotonic, observer=self._metrics.webhook_decisions
        )
        self._endpoints.append(endpoint)
        return WebhookAuthorizer(endpoint, webhook.policy, time.monotonic, webhook.conditions, self._metrics.webhooks)


def _name_of(mode: str) -> str:
    return "default" if mode == "Webhook" else mode.lower()


def _of_flags(config: WebhookConfig | None, mode: str) -> WebhookSettings | None:
    if mode != "Webhook":
        return None
    if config is None:
        raise ValueError("the mode Webhook needs a configuration of the webhook")
    policy = WebhookPolicy(
        name="default",
        version=config.version,
        allowed_ttl_seconds=config.authorized_ttl_seconds,
        refused_ttl_seconds=config.unauthorized_ttl_seconds,
    )
    return WebhookSettings(kubeconfig=config.config_file, timeout_seconds=WEBHOOK_TIMEOUT_SECONDS, policy=policy)
