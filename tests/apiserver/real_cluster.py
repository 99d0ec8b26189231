"""A real 1.20 cluster's snapshot, restored and served; and what its API listed a moment after it was taken."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from apiserver.config import ServerConfig
from storage.config import MemberConfig
from storage.member.member import Member
from storage.snapshot.restore import RestoreOptions, restore
from tests.apiserver.api import Api, running

DATA = Path(__file__).resolve().parents[1] / "storage" / "data"
SNAPSHOT = DATA / "etcd-3.5-snapshot.db.gz"
LISTED = DATA / "etcd-3.5-objects.json.gz"


def unpacked(directory: Path) -> Path:
    """The snapshot as ``etcdctl snapshot save`` gave it."""
    path = directory / "snapshot.db"
    path.write_bytes(gzip.decompress(SNAPSHOT.read_bytes()))
    return path


def listed() -> dict[str, list[dict[str, Any]]]:
    """By ``group/version/resource``: the items that the cluster's API listed."""
    found: dict[str, list[dict[str, Any]]] = orjson.loads(gzip.decompress(LISTED.read_bytes()))
    return found


@contextlib.asynccontextmanager
async def served(config: ServerConfig, directory: Path) -> AsyncIterator[Api]:
    """An API server over a member that the snapshot was restored to."""
    member_config = MemberConfig(data_dir=directory / "restored", unsafe_no_fsync=True, expire_leases=not config.read_only)
    restore(unpacked(directory), RestoreOptions(config=member_config))
    member = Member(member_config)
    await member.start()
    try:
        async with running(config, member) as api:
            yield api
    finally:
        await member.stop()


def without_nulls(value: Any) -> Any:
    """Go says null of moments that are none (``creationTimestamp`` of templates until Kubernetes 1.33, ``eventTime``): as if not said."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def path_of(key: str) -> str:
    """Where ``group/version/resource`` is listed."""
    group_version, _, resource = key.rpartition("/")
    return f"/{'apis' if '/' in group_version else 'api'}/{group_version}/{resource}"
