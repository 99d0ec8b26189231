"""Who belongs to the cluster: ids, and the list that every member keeps in its backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def new_member_id(peer_urls: Iterable[str], token: str, *, added_at: int | None = None) -> int:
    """etcd's rule: of the first members every one must compute the same ids, from what is configured everywhere; one that is added
    later gets an id of its own by the time (whole seconds since 1970), so that an address may be used again."""
    text = "".join(sorted(peer_urls)) + token + ("" if added_at is None else str(added_at))
    return int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:8], "big")


def new_cluster_id(member_ids: Iterable[int]) -> int:
    """etcd's rule: from the ids of the first members."""
    text = b"".join(member_id.to_bytes(8, "big") for member_id in sorted(member_ids))
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:8], "big")
