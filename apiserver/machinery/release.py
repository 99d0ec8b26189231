"""Which Kubernetes the work at hand answers for: 1.25 … the newest, as ``--kubernetes-version`` says.

Most rules are the same in all of them. Where a rule changed, the function that keeps it asks ``since``, next to the sentence that names
the release and where that can be read. The minor is a context variable, not an argument: the rules that ask lie below a hundred that do
not (``spec.template.spec.containers[0].env[0].name``), and servers of two releases in one process do not disturb each other.

The registry says ``serve`` at the start of each write, the endpoint at the start of each request; a task that nobody told answers as the
newest release, as do the controllers.

    with serving(29):
        assert not since(30)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: of work that no server of some release asked for
NEWEST = sys.maxsize

_minor: ContextVar[int] = ContextVar("kubernetes_minor", default=NEWEST)


def since(minor: int) -> bool:
    """Whether Kubernetes 1.``minor`` or a later one is served."""
    return _minor.get() >= minor


def serve(minor: int) -> None:
    """From here on, this task answers for Kubernetes 1.``minor``."""
    _minor.set(minor)


@contextmanager
def serving(minor: int) -> Iterator[None]:
    """The same for a block, after which it is as before."""
    token = _minor.set(minor)
    try:
        yield
    finally:
        _minor.reset(token)
