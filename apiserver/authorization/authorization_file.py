"""``--authorization-config``: an AuthorizationConfiguration (apiserver.config.k8s.io v1, v1beta1, v1alpha1), read and checked.

apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: decisions
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/decisions.kubeconfig}
    matchConditions: [{expression: "has(request.resourceAttributes)"}]
- {type: Node, name: node}
- {type: RBAC, name: rbac}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apiserver.authorization.authorizer import Decision
from apiserver.authorization.webhook import VERSIONS as REVIEW_VERSIONS
from apiserver.authorization.webhook import Conditions, WebhookPolicy
from apiserver.filters.deadline import parse_duration
from apiserver.machinery import field_errors
from apiserver.machinery.config_file import ConfigFileError, Section, read_config
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.names import dns1123_subdomain

GROUP = "apiserver.config.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
TYPES = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
CONDITIONS_MAX = 64
TIMEOUT_SECONDS_MAX = 30.0
ALLOWED_TTL_SECONDS = 300.0
REFUSED_TTL_SECONDS = 30.0
_FAILURES = {"NoOpinion": Decision.NO_OPINION, "Deny": Decision.DENY}

#: (sources) → the compiled conditions; raises ValueError with (position, why) as arguments
CompileConditions = Callable[[list[str]], Conditions]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    kubeconfig: Path
    timeout_seconds: float
    policy: WebhookPolicy
    conditions: Conditions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerSettings:
    """``webhook`` of the type Webhook alone."""

    type: str
    name: str
    webhook: WebhookSettings | None = None


class ConditionCompileError(ValueError):
    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


def parse(text: str, compile_conditions: CompileConditions) -> tuple[AuthorizerSettings, ...]:
    """In the order in which they are asked. Raises ConfigFileError with a line for each mistake."""
    root = read_config(text, GROUP, VERSIONS, "AuthorizationConfiguration")
    reader = _Reader(compile_conditions)
    found = reader.read(root)
    problems = [*root.problems(), *(error.text() for error in reader.errors)]
    if problems:
        raise ConfigFileError(problems)
    return found


class _Reader:
    def __init__(self, compile_conditions: CompileConditions) -> None:
        self.errors: list[FieldError] = []
        self._compile_conditions = compile_conditions

    def read(self, root: Section) -> tuple[AuthorizerSettings, ...]:
        sections = root.sections("authorizers")
        if not sections:
            self.errors.append(field_errors.required("authorizers", "at least one authorization mode must be defined"))
        types: set[str] = set()
        names: set[str] = set()
        found: list[AuthorizerSettings] = []
        for section in sections:
            kind, name, webhook = section.text("type"), section.text("name"), section.section("webhook")
            settings = self._webhook(section, webhook, name) if webhook is not None else None
            if not self._check_type(section, kind, types):
                continue
            self._check_name(section, name, names)
            if kind == "Webhook" and webhook is None:
                self.errors.append(field_errors.required(section.path("webhook"), "required when type=Webhook"))
            if kind != "Webhook" and webhook is not None:
                why = "may only be specified when type=Webhook"
                self.errors.append(field_errors.invalid(section.path("webhook"), "non-null", why))
            found.append(AuthorizerSettings(type=kind, name=name, webhook=settings))
        return tuple(found)

    def _check_type(self, section: Section, kind: str, seen: set[str]) -> bool:
        at = section.path("type")
        if not kind:
            self.errors.append(field_errors.required(at))
        elif kind not in TYPES:
            self.errors.append(field_errors.not_supported(at, kind, sorted(TYPES)))
        elif kind in seen and kind != "Webhook":
            self.errors.append(field_errors.duplicate(at, kind))
        else:
            seen.add(kind)
            return True
        return False

    def _check_name(self, section: Section, name: str, seen: set[str]) -> None:
        at = section.path("name")
        if not name:
            self.errors.append(field_errors.required(at))
        elif name in seen:
            self.errors.append(field_errors.duplicate(at, name))
        elif problems := dns1123_subdomain(name):
            self.errors.append(field_errors.invalid(at, name, f"authorizer name is invalid: {', '.join(problems)}"))
        seen.add(name)

    def _webhook(self, section: Section, webhook: Section, name: str) -> WebhookSettings | None:
        before = len(self.errors)
        timeout = self._seconds(section, webhook, "timeout", None, TIMEOUT_SECONDS_MAX)
        allowed = self._seconds(section, webhook, "authorizedTTL", ALLOWED_TTL_SECONDS)
        refused = self._seconds(section, webhook, "unauthorizedTTL", REFUSED_TTL_SECONDS)
        if not webhook.flag("cacheAuthorizedRequests", True):
            allowed = 0.0
        if not webhook.flag("cacheUnauthorizedRequests", True):
            refused = 0.0
        version = self._chosen(section, webhook, "subjectAccessReviewVersion", REVIEW_VERSIONS)
        failure = self._chosen(section, webhook, "failurePolicy", tuple(_FAILURES))
        kubeconfig = self._kubeconfig(section, webhook.required_section("connectionInfo"))
        conditions = self._conditions(section, webhook)
        if len(self.errors) > before or kubeconfig is None:
            return None
        policy = WebhookPolicy(
            name=name, version=version, allowed_ttl_seconds=allowed, refused_ttl_seconds=refused, failure=_FAILURES[failure]
        )
        return WebhookSettings(kubeconfig=kubeconfig, timeout_seconds=timeout, policy=policy, conditions=conditions)

    def _seconds(self, section: Section, webhook: Section, field: str, default: float | None, most: float = float("inf")) -> float:
        text, at = webhook.text(field), section.path(field)
        try:
            seconds = parse_duration(text) if text else 0.0
        except ValueError as error:
            self.errors.append(field_errors.invalid(at, text, str(error)))
            return 1.0
        if not seconds:
            if default is None:
                self.errors.append(field_errors.required(at))
            return default or 1.0
        if seconds < 0 or seconds > most:
            self.errors.append(field_errors.invalid(at, text, "must be > 0s and <= 30s" if most < float("inf") else "must be > 0s"))
        return seconds

    def _chosen(self, section: Section, webhook: Section, field: str, supported: tuple[str, ...]) -> str:
        value, at = webhook.text(field), section.path(field)
        if not value:
            self.errors.append(field_errors.required(at))
        elif value not in supported:
            self.errors.append(field_errors.not_supported(at, value, list(supported)))
        else:
            return value
        return supported[0]

    def _kubeconfig(self, section: Section, connection: Section) -> Path | None:
        kind, file = connection.text("type"), connection.text("kubeConfigFile")
        at, file_at = section.path("connectionInfo.type"), section.path("connectionInfo.kubeConfigFile")
        if not kind:
            self.errors.append(field_errors.required(at))
        elif kind == "InClusterConfig":
            # this server does not run in a pod of the cluster that it serves
            self.errors.append(field_errors.invalid(at, kind, "there is no in-cluster configuration here, use KubeConfigFile"))
        elif kind != "KubeConfigFile":
            self.errors.append(field_errors.not_supported(at, kind, ["InClusterConfig", "KubeConfigFile"]))
        elif not file:
            self.errors.append(field_errors.required(file_at))
        elif not Path(file).is_absolute():
            self.errors.append(field_errors.invalid(file_at, file, "must be an absolute path"))
        elif not Path(file).exists():
            self.errors.append(field_errors.invalid(file_at, file, f"error loading file: stat {file}: no such file or directory"))
        elif not Path(file).is_file():
            self.errors.append(field_errors.invalid(file_at, file, "must be a regular file"))
        else:
            return Path(file)
        return None

    def _conditions(self, section: Section, webhook: Section) -> Conditions | None:
        version, at = webhook.text("matchConditionSubjectAccessReviewVersion"), section.path("matchConditionSubjectAccessReviewVersion")
        sections = webhook.sections("matchConditions")
        sources = [each.text("expression") for each in sections]
        if version not in ("", "v1"):
            self.errors.append(field_errors.not_supported(at, version, ["v1"]))
        if not sources:
            return None
        if not version:
            self.errors.append(field_errors.required(at, "required if match conditions are specified"))
        if len(sources) > CONDITIONS_MAX:
            self.errors.append(field_errors.too_many(section.path("matchConditions"), len(sources), CONDITIONS_MAX))
            return None
        paths = [f"{section.path('matchConditions')}[{position}].expression" for position in range(len(sources))]
        good = True
        for position, source in enumerate(sources):
            if not source.strip():
                self.errors.append(field_errors.required(paths[position]))
                good = False
            elif source in sources[:position]:
                self.errors.append(field_errors.duplicate(paths[position], source))
                good = False
        if not good:
            return None
        try:
            return self._compile_conditions(sources)
        except ConditionCompileError as error:
            self.errors.append(field_errors.invalid(paths[error.position], sources[error.position], str(error)))
            return None
