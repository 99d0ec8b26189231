"""What plugins that are off by default are told by the configuration file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SERVER, NAMESPACE, USER, SOURCE_AND_OBJECT = "Server", "Namespace", "User", "SourceAndObject"
EVENT_LIMITS = (SERVER, NAMESPACE, USER, SOURCE_AND_OBJECT)
#: buckets that are kept of an event limit that does not say; the longest unused goes first, and is full when it comes again
BUCKETS_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLimit:
    """``type``: of what each thing has a bucket of its own, one of ``EVENT_LIMITS``."""

    type: str
    per_second: int
    burst: int
    buckets_max: int = BUCKETS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationConfiguration:
    """Of namespaces that say nothing."""

    defaults: tuple[dict[str, Any], ...] = ()
    allowed: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePolicy:
    """``default_allow``: what a server that cannot be asked, or answers nonsense, means."""

    kubeconfig: str
    allow_seconds: float = 300.0
    deny_seconds: float = 30.0
    default_allow: bool = False
