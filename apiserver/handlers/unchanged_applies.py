"""Applies that were seen to change nothing: controllers apply what they want again and again, and mostly it is so already.

Whether an apply changes an object follows from the object's version, the configuration, the manager and the type alone; merging a
Deployment to find it out takes most of the request's time. Only that is spared: admission and validation are asked each time, since what
they say may have changed. Kinds whose type can change (custom resources) are not remembered.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

#: applies remembered of one resource; beyond it the memory starts anew. An entry takes about 400 bytes.
REMEMBERED_MAX = 4096


class Key(NamedTuple):
    uid: str
    manager: str
    subresource: str
    force: bool


class UnchangedApplies:
    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, bytes]] = {}

    def key(self, metadata: dict[str, Any], manager: str, subresource: str, force: bool) -> Key:
        return Key(metadata["uid"], manager, subresource, force)

    def knows(self, key: Key, resource_version: str, configuration: bytes) -> bool:
        """Whether applying the configuration to this version of the object changes nothing."""
        seen = self._seen.get(key)
        return seen is not None and seen[0] == resource_version and seen[1] == _digest(configuration)

    def remember(self, key: Key, resource_version: str, configuration: bytes) -> None:
        if len(self._seen) >= REMEMBERED_MAX:
            self._seen.clear()
        self._seen[key] = resource_version, _digest(configuration)


def _digest(configuration: bytes) -> bytes:
    return hashlib.blake2b(configuration, digest_size=16).digest()
