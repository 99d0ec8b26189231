"""How often which authorizer has decided, by its type and name."""

from __future__ import annotations

from collections.abc import Iterator


class Decider:
    """An authorizer whose word was the last one. ``allowed`` counts what was remembered as well: whoever remembers adds to it."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0


class Decisions:
    """They outlive the authorizers, which a changed configuration makes anew."""

    def __init__(self) -> None:
        self._deciders: dict[tuple[str, str], Decider] = {}

    def of(self, kind: str, name: str) -> Decider:
        return self._deciders.setdefault((kind, name), Decider())

    def counts(self) -> Iterator[tuple[str, str, str, int]]:
        """(type, name, allowed or denied, how often)."""
        for (kind, name), decider in sorted(self._deciders.items()):
            for decision, count in (("allowed", decider.allowed), ("denied", decider.denied)):
                if count:
                    yield kind, name, decision, count
