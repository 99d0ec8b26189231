"""Several authorizers in order: the first that allows or denies decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from apiserver.authorization.authorizer import Attributes, Authorizer, Decision, EvaluationError
from apiserver.authorization.decisions import Decider, Decisions
from apiserver.authorization.static import PrivilegedGroupAuthorizer


@runtime_checkable
class Changing(Protocol):
    """An authorizer whose answers change while it runs. ``generation`` only grows, with each change of what it decides from. One that
    does not have it must always answer the same, or be ``Remote``."""

    @property
    def generation(self) -> int: ...


@runtime_checkable
class Remote(Protocol):
    """An authorizer that asks another server, whose answers hold for a time that only it knows."""

    def forget(self) -> None:
        """Nothing of what the server said holds any more."""


class UnionAuthorizer:
    def __init__(self, authorizers: Sequence[Authorizer], deciders: Sequence[Decider] | None = None) -> None:
        """``deciders``: what counts for each of them."""
        self._authorizers = tuple(authorizers)
        self._asked = tuple(zip(self._authorizers, deciders or [Decider() for _ in self._authorizers], strict=True))
        #: whose word was the last one that allowed or denied
        self.last_decider = Decider()
        self._changing = tuple(a for a in self._authorizers if isinstance(a, Changing))
        self._has_remote = any(isinstance(a, Remote) for a in self._authorizers)

    def generation(self) -> int | None:
        """Moves whenever any answer may have changed: as long as it stays, an answer stays. None: an answer may change at any time."""
        if self._has_remote:
            return None
        total = 0
        for part in self._changing:
            total += part.generation
        return total

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Where nobody decides, the reasons of all that had one, a line each; an EvaluationError where one of them had no answer."""
        reasons: list[str] = []
        errors: list[str] = []
        for authorizer, decider in self._asked:
            decision, reason = authorizer.authorize(attributes)
            if decision is not Decision.NO_OPINION:
                if decision is Decision.ALLOW:
                    decider.allowed += 1
                else:
                    decider.denied += 1
                self.last_decider = decider
                return decision, reason
            if reason:
                (errors if isinstance(reason, EvaluationError) else reasons).append(reason)
        if errors:
            return Decision.NO_OPINION, EvaluationError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return Decision.NO_OPINION, "\n".join(reasons)


MODES = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")


def check_modes(modes: Sequence[str], known: Iterable[str] = MODES) -> None:
    """Raises ValueError for no, unknown or doubled modes (``--authorization-mode``)."""
    if not modes:
        raise ValueError("at least one authorization mode must be passed")
    valid = sorted(known)
    for mode in modes:
        if mode not in valid:
            raise ValueError(f'"{mode}" is not a valid authorization mode; valid modes: {", ".join(valid)}')
    if len(set(modes)) != len(modes):
        raise ValueError(f"authorization modes {list(modes)} has mode specified more than once")


def build_authorizer(modes: Sequence[str], available: Mapping[str, Authorizer], decisions: Decisions | None = None) -> UnionAuthorizer:
    """The authorizer of ``--authorization-mode``, ``system:masters`` first. Raises ValueError for unknown or doubled modes."""
    check_modes(modes, available)
    counts = decisions or Decisions()
    deciders = [Decider(), *(counts.of(mode, mode.lower()) for mode in modes)]
    return UnionAuthorizer([PrivilegedGroupAuthorizer(), *(available[mode] for mode in modes)], deciders)
