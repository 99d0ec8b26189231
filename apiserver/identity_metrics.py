"""What is counted of authentication, authorization and impersonation, under kube-apiserver's names and in the releases that have them.

Nothing that a client chooses becomes a label: user names are told in the few kinds that upstream tells, issuers by a hash.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from apiserver.authorization.decisions import Decisions
from apiserver.metric_families import Counters, Gauges, Histograms, exponential

if TYPE_CHECKING:
    from apiserver.metrics import Exposition

_BOUNDS = exponential(0.001, 2, 15)
_DELEGATED_BOUNDS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_TOLD_NAMES = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))
_REMAINING_BOUNDS = (
    *(0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0, 172800.0, 345600.0, 604800.0),
    *(2592000.0, 7776000.0, 15552000.0, 31104000.0),
)

AUTHORIZATION_ATTEMPTS_MINOR = 28
INVALID_LEGACY_TOKENS_MINOR = 28
STRUCTURED_MINOR = 30
KEY_SETS_MINOR = 35
CONFIG_INFO_MINOR = 35
IMPERSONATION_MINOR = 36


def hash_of(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""


def server_id() -> str:
    """The identity of this API server, as kube-apiserver makes it of the host's name."""
    digest = hashlib.sha256(socket.gethostname().encode()).digest()[:16]
    return "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()


class IdentityMetrics:
    def __init__(self, minor: int, now: Callable[[], float] = time.time) -> None:
        """``minor`` of the Kubernetes that is served; ``now``: seconds since the epoch."""
        self._minor = minor
        self._now = now
        self.decisions = Decisions()
        self.tokens = TokenCacheMetrics()
        self.service_accounts = ServiceAccountMetrics(minor)
        self.webhook_tokens = DelegatedMetrics("authn", "authentication")
        self.webhook_decisions = DelegatedMetrics("authz", "authorization")
        self.webhooks = WebhookMetrics()
        self.issuers = IssuerMetrics(minor, now)
        self.impersonation = ImpersonationMetrics()
        self.reloads = (
            ReloadMetrics("authentication", minor, now),
            ReloadMetrics("authorization", minor, now),
        )
        self._users = Counters("authenticated_user_requests", "Counter of authenticated requests broken out by username.", "username")
        self._user_counts = dict.fromkeys((*_TOLD_NAMES, "email_id", "other"), 0)
        self._attempts = Counters("authentication_attempts", "Counter of authenticated attempts.", "result")
        durations = Histograms(
            "authentication_duration_seconds", "Authentication duration in seconds broken out by result.", "result", bounds=_BOUNDS
        )
        self._authentication_durations = durations
        self._decided = Counters(
            "authorization_attempts_total",
            "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
            "result",
        )
        self._authorization_durations = Histograms(
            "authorization_duration_seconds", "Authorization duration in seconds broken out by result.", "result", bounds=_BOUNDS
        )
        self._allowed = self._authorization_durations.of("allowed")
        self._successes = durations.of("success")
        self._remaining = Histograms(
            "apiserver_client_certificate_expiration_seconds",
            "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
            bounds=_REMAINING_BOUNDS,
        )

    def authenticated(self, user_name: str, seconds: float) -> None:
        """On the path of every request: its counts are made of the histogram's when they are asked for."""
        self._successes.observe(seconds)
        kind = user_name if user_name in _TOLD_NAMES else "email_id" if "@" in user_name else "other"
        self._user_counts[kind] += 1

    def not_authenticated(self, result: str, seconds: float) -> None:
        """``result``: error where a credential was wrong, failure where there was none."""
        self._authentication_durations.observe(seconds, result)

    def allowed(self, seconds: float) -> None:
        self._allowed.observe(seconds)

    def not_allowed(self, result: str, seconds: float) -> None:
        """``result``: denied, no-opinion or error."""
        self._authorization_durations.observe(seconds, result)

    def certificate_remaining(self, seconds: float) -> None:
        self._remaining.observe(seconds)

    def expose(self, out: Exposition) -> None:
        self._users.replace({(kind,): count for kind, count in self._user_counts.items() if count})
        self._users.expose(out)
        _count_attempts(self._attempts, self._authentication_durations).expose(out)
        self._authentication_durations.expose(out)
        self._remaining.expose(out)
        self.tokens.expose(out)
        self.service_accounts.expose(out)
        self.webhook_tokens.expose(out)
        self.webhook_decisions.expose(out)
        if self._minor >= AUTHORIZATION_ATTEMPTS_MINOR:
            _count_attempts(self._decided, self._authorization_durations).expose(out)
            self._authorization_durations.expose(out)
        if self._minor >= STRUCTURED_MINOR:
            self._expose_decisions(out)
            self.webhooks.expose(out)
            self.issuers.expose(out)
            for reloads in self.reloads:
                reloads.expose(out)
        if self._minor >= IMPERSONATION_MINOR:
            self.impersonation.expose(out)

    def _expose_decisions(self, out: Exposition) -> None:
        counted = Counters(
            "apiserver_authorization_decisions_total",
            "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
            *("decision", "name", "type"),
        )
        for kind, name, decision, count in self.decisions.counts():
            counted.add(decision, name, kind, by=count)
        counted.expose(out)


def _count_attempts(counters: Counters, durations: Histograms) -> Counters:
    """An attempt is counted where its duration is: both are told of one number."""
    counters.replace(durations.numbers())
    return counters


class TokenCacheMetrics:
    """Of the tokens that are remembered once they were looked into."""

    def __init__(self) -> None:
        prefix = "authentication_token_cache_"
        self._requests = Counters(f"{prefix}request_total", "", "status")
        self._durations = Histograms(f"{prefix}request_duration_seconds", "", "status")
        self._fetches = Counters(f"{prefix}fetch_total", "", "status")
        self._active = Gauges(f"{prefix}active_fetch_count", "", "status")
        self._hits = self._durations.of("hit")
        #: (questions under way, requests that wait for them) of those who ask other servers
        self.waiting: list[Callable[[], tuple[int, int]]] = []

    def hit(self) -> None:
        self._hits.observe(0.0)

    def fetched(self, seconds: float, *, good: bool) -> None:
        """A token that was not remembered; ``good``: whether it could be looked into, whatever came of it."""
        self._durations.observe(seconds, "miss")
        self._fetches.add("ok" if good else "error")

    def expose(self, out: Exposition) -> None:
        _count_attempts(self._requests, self._durations).expose(out)
        self._durations.expose(out)
        self._fetches.expose(out)
        in_flight, blocked = (sum(numbers) for numbers in zip((0, 0), *(each() for each in self.waiting), strict=True))
        self._active.replace({("blocked",): blocked, ("in_flight",): in_flight})
        self._active.expose(out)


class ServiceAccountMetrics:
    def __init__(self, minor: int) -> None:
        self._minor = minor
        self.legacy = Counters("serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used")
        self.stale = Counters("serviceaccount_stale_tokens_total", "Cumulative stale projected service account tokens used")
        self.valid = Counters("serviceaccount_valid_tokens_total", "Cumulative valid projected service account tokens used")
        self.legacy_manual = Counters("serviceaccount_legacy_manual_token_uses_total", "Cumulative manually created legacy tokens used")
        self.legacy_auto = Counters("serviceaccount_legacy_auto_token_uses_total", "Cumulative auto-generated legacy tokens used")
        self.invalid_legacy = Counters(
            "serviceaccount_invalid_legacy_auto_token_uses_total", "Cumulative invalid auto-generated legacy tokens used"
        )

    def expose(self, out: Exposition) -> None:
        for family in (self.legacy, self.stale, self.valid, self.legacy_manual, self.legacy_auto):
            family.expose(out)
        if self._minor >= INVALID_LEGACY_TOKENS_MINOR:
            self.invalid_legacy.expose(out)


class DelegatedMetrics:
    """Reviews that a webhook was asked for, by the code of its answer."""

    def __init__(self, short: str, long: str) -> None:
        name = f"apiserver_delegated_{short}_request"
        self._requests = Counters(f"{name}_total", "Number of HTTP requests partitioned by status code.", "code")
        self._durations = Histograms(
            f"{name}_duration_seconds", "Request latency in seconds. Broken down by status code.", "code", bounds=_DELEGATED_BOUNDS
        )

    def answered(self, code: str, seconds: float) -> None:
        self._durations.observe(seconds, code)

    def expose(self, out: Exposition) -> None:
        _count_attempts(self._requests, self._durations).expose(out)
        self._durations.expose(out)


class WebhookMetrics:
    """A ``WebhookObserver`` of authorizers."""

    def __init__(self) -> None:
        prefix = "apiserver_authorization_"
        self._evaluations = Counters(f"{prefix}webhook_evaluations_total", "Round-trips to authorization webhooks.", "name", "result")
        self._durations = Histograms(f"{prefix}webhook_duration_seconds", "Request latency in seconds.", "name", "result")
        self._fail_open = Counters(
            f"{prefix}webhook_evaluations_fail_open_total", "NoOpinion results due to webhook timeout or error.", "name", "result"
        )
        self._errors = Counters(
            f"{prefix}match_condition_evaluation_errors_total",
            "Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
            *("name", "type"),
        )
        self._exclusions = Counters(
            f"{prefix}match_condition_exclusions_total",
            "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
            *("name", "type"),
        )
        self._condition_durations = Histograms(
            f"{prefix}match_condition_evaluation_seconds",
            "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
            *("name", "type"),
            bounds=(0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
        )

    def evaluated(self, name: str, result: str, seconds: float) -> None:
        self._durations.observe(seconds, name, result)

    def failed_open(self, name: str, result: str) -> None:
        self._fail_open.add(name, result)

    def conditions_evaluated(self, name: str, seconds: float, *, excluded: bool, failed: bool) -> None:
        self._condition_durations.observe(seconds, name, "Webhook")
        if excluded:
            self._exclusions.add(name, "Webhook")
        if failed:
            self._errors.add(name, "Webhook")

    def expose(self, out: Exposition) -> None:
        _count_attempts(self._evaluations, self._durations).expose(out)
        for family in (self._durations, self._fail_open, self._errors, self._exclusions, self._condition_durations):
            family.expose(out)


class IssuerMetrics:
    """Of JWT issuers, each by a hash of its URL."""

    def __init__(self, minor: int, now: Callable[[], float]) -> None:
        self._minor = minor
        self._now = now
        self._server = hash_of(server_id())
        prefix = "apiserver_authentication_jwt_authenticator_"
        self._durations = Histograms(
            f"{prefix}latency_seconds",
            "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for cache miss only "
            "(i.e. when the token is not found in the cache).",
            *("jwt_issuer_hash", "result"),
            bounds=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        )
        self._fetched = Gauges(
            f"{prefix}jwks_fetch_last_timestamp_seconds",
            "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the JWT "
            "authenticator.",
            *("apiserver_id_hash", "jwt_issuer_hash", "result"),
        )
        self._key_sets = Gauges(
            f"{prefix}jwks_fetch_last_key_set_info",
            "Information about the last JWKS fetched by the JWT authenticator with hash as label, split by api server identity and jwt "
            "issuer.",
            *("apiserver_id_hash", "hash", "jwt_issuer_hash"),
        )
        self._hashes: dict[str, str] = {}

    def looked_into(self, issuer_url: str, seconds: float, *, good: bool) -> None:
        self._durations.observe(seconds, hash_of(issuer_url), "success" if good else "failure")

    def keys_fetched(self, issuer_url: str, key_set: str | None) -> None:
        """``key_set`` None: they could not be had."""
        issuer = hash_of(issuer_url)
        self._fetched.set(self._now(), self._server, issuer, "failure" if key_set is None else "success")
        if key_set is not None:
            self._hashes[issuer] = hash_of(key_set)
            self._key_sets.replace({(self._server, hashed, of): 1 for of, hashed in self._hashes.items()})

    def expose(self, out: Exposition) -> None:
        self._durations.expose(out)
        if self._minor >= KEY_SETS_MINOR:
            self._fetched.expose(out)
            self._key_sets.expose(out)


class ReloadMetrics:
    """Of a configuration file that takes effect while the server runs."""

    def __init__(self, what: str, minor: int, now: Callable[[], float]) -> None:
        self._minor = minor
        self._now = now
        self._server = hash_of(server_id())
        prefix = f"apiserver_{what}_config_controller_"
        self._reloads = Counters(
            f"{prefix}automatic_reloads_total",
            f"Total number of automatic reloads of {what} configuration split by status and apiserver identity.",
            *("apiserver_id_hash", "status"),
        )
        self._last = Gauges(
            f"{prefix}automatic_reload_last_timestamp_seconds",
            f"Timestamp of the last automatic reload of {what} configuration split by status and apiserver identity.",
            *("apiserver_id_hash", "status"),
        )
        self._info = Gauges(
            f"{prefix}last_config_info",
            f"Information about the last applied {what} configuration with hash as label, split by apiserver identity.",
            *("apiserver_id_hash", "hash"),
        )

    def read(self, text: str) -> None:
        """At the start."""
        self._info.replace({(self._server, hash_of(text)): 1})

    def reloaded(self, text: str | None) -> None:
        """``text`` None: the file as it is now cannot be used."""
        status = "failure" if text is None else "success"
        self._reloads.add(self._server, status)
        self._last.set(self._now(), self._server, status)
        if text is not None:
            self.read(text)

    def expose(self, out: Exposition) -> None:
        self._reloads.expose(out)
        self._last.expose(out)
        if self._minor >= CONFIG_INFO_MINOR:
            self._info.expose(out)


class ImpersonationMetrics:
    """``mode`` is legacy for the verb impersonate, "" where nothing was allowed."""

    def __init__(self) -> None:
        prefix = "apiserver_impersonation_"
        self._attempts = Counters(
            f"{prefix}attempts_total", "Total number of impersonation attempts split by mode and decision.", "decision", "mode"
        )
        self._durations = Histograms(
            f"{prefix}attempts_duration_seconds",
            "Latency of impersonation attempts in seconds split by mode and decision.",
            *("decision", "mode"),
            bounds=_BOUNDS,
        )
        self._checks = Counters(
            f"{prefix}authorization_attempts_total",
            "Total number of authorization checks made by the impersonation handler split by mode and decision.",
            *("decision", "mode"),
        )
        self._check_durations = Histograms(
            f"{prefix}authorization_attempts_duration_seconds",
            "Latency of authorization checks made by the impersonation handler in seconds split by mode and decision.",
            *("decision", "mode"),
            bounds=_BOUNDS,
        )

    def attempted(self, constraint: str | None, seconds: float) -> None:
        """``constraint``: the verb that allowed it, "" for the verb impersonate; None where it was refused."""
        mode = "" if constraint is None else constraint.partition(":")[2] or "legacy"
        self._durations.observe(seconds, "denied" if constraint is None else "allowed", mode)

    def checked(self, verb: str, seconds: float, *, allowed: bool) -> None:
        parts = verb.split(":", 2)
        self._check_durations.observe(seconds, "allowed" if allowed else "denied", parts[1] if len(parts) > 1 else "legacy")

    def expose(self, out: Exposition) -> None:
        _count_attempts(self._attempts, self._durations).expose(out)
        self._durations.expose(out)
        _count_attempts(self._checks, self._check_durations).expose(out)
        self._check_durations.expose(out)
