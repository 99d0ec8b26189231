"""Probes and lifecycle hooks of containers (core ``validateProbe``, ``validateLifecycle``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import forbidden, invalid, not_supported, required
from apiserver.registry.validation.common import Errors, nonnegative, port_number_or_name

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NAMED_SIGNALS = (
    "SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR "
    "SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 "
    "SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ"
)
_REAL_TIME_SIGNALS = (*(f"SIGRTMIN+{n}" for n in range(1, 16)), *(f"SIGRTMAX-{n}" for n in range(1, 15)))
#: what a container may be told to stop by, by operating system
_SIGNALS: dict[str, tuple[str, ...]] = {
    "windows": ("SIGKILL", "SIGTERM"),
    "linux": tuple(sorted((*_NAMED_SIGNALS.split(), *_REAL_TIME_SIGNALS))),
}
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def liveness(out: Errors, path: str, probe: Mapping[str, Any]) -> None:
    """Of liveness and startup probes: one success is enough."""
    _probe(out, path, probe)
    success = probe.get("successThreshold") or 0
    if success != 1:
        out.append(invalid(f"{path}.successThreshold", success, "must be 1"))


def readiness(out: Errors, path: str, probe: Mapping[str, Any]) -> None:
    _probe(out, path, probe)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        out.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"))


def lifecycle(out: Errors, path: str, hooks: Mapping[str, Any], grace_period_seconds: int | None, system: str) -> None:
    """``system`` is the name of the pod's operating system, "" where it does not say."""
    for hook in ("postStart", "preStop"):
        if hooks.get(hook) is not None:
            _handler(out, f"{path}.{hook}", hooks[hook], grace_period_seconds)
    if (signal := hooks.get("stopSignal")) is not None:
        known = _SIGNALS.get(system)
        if known is None:
            out.append(forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`"))
        elif signal not in known:
            out.append(not_supported(f"{path}.stopSignal", signal, list(known)))


def _probe(out: Errors, path: str, probe: Mapping[str, Any]) -> None:
    _handler(out, path, probe, None)
    for number in _PROBE_NUMBERS:
        nonnegative(out, f"{path}.{number}", probe.get(number))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        out.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))


def _handler(out: Errors, path: str, found: Mapping[str, Any], grace_period_seconds: int | None) -> None:
    given = 0
    for kind in _HANDLERS:
        action = found.get(kind)
        if action is None:
            continue
        if given:
            out.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
            continue
        given += 1
        _action(out, f"{path}.{kind}", kind, action, grace_period_seconds)
    if not given:
        out.append(required(path, "must specify a handler type"))


def _action(out: Errors, path: str, kind: str, action: Mapping[str, Any], grace_period_seconds: int | None) -> None:
    if kind == "exec":
        if not action.get("command"):
            out.append(required(f"{path}.command"))
    elif kind == "httpGet":
        if not action.get("path"):
            out.append(required(f"{path}.path"))
        port_number_or_name(out, f"{path}.port", action.get("port"))
        scheme = action.get("scheme") or ""
        if scheme not in ("HTTP", "HTTPS"):
            out.append(not_supported(f"{path}.scheme", scheme, ["HTTP", "HTTPS"]))
        for header in action.get("httpHeaders") or ():
            name = header.get("name") or ""
            for message in names.http_header_name(name):
                out.append(invalid(f"{path}.httpHeaders", name, message))
    elif kind in ("tcpSocket", "grpc"):
        port_number_or_name(out, f"{path}.port", action.get("port"))
    else:
        seconds, limit = action.get("seconds") or 0, grace_period_seconds if grace_period_seconds is not None else 0
        if not 0 <= seconds <= limit:
            words = f"must be non-negative and less than terminationGracePeriodSeconds ({limit})"
            out.append(invalid(path, seconds, words))
