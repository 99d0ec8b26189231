"""From a snapshot file to the directory of the first member, or one of the first members, of a new cluster.

All that clients wrote is taken over: versions, leases, users. What belongs to the old cluster is not: its members, how far its log
was, its alarms (they name members that are no more; a full disk or differing members will be noticed again). Every member that is
restored from one file with the same ``initial_cluster`` and token starts from the same entry of the log, so together they are a cluster.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lmdb

from storage import errors
from storage.backend import schema
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.backend.lmdb_file import LmdbFile, sync_directory
from storage.backend.write_buffer import WriteBuffer
from storage.bbolt.reader import BboltReader
from storage.config import MemberConfig
from storage.lease import lease
from storage.maintenance import ClusterMember
from storage.member.membership import encode_member, new_cluster_id, new_member_id
from storage.member.opening import Identity
from storage.mvcc import kv_codec
from storage.mvcc.revision import main_of, revision_key
from storage.mvcc.store import EMPTY_REVISION
from storage.raft.messages import ConfState, HardState, SnapshotMetadata
from storage.snapshot.snapshot_file import check_record, open_snapshot
from storage.wal.wal import Wal

logger = logging.getLogger(__name__)

BATCH_BYTES: Final = 32 * 1024 * 1024
"""Written with one transaction: bounds the memory that a restore takes."""

MAP_BYTES_PER_FILE_BYTE: Final = 4
"""The map while the file is filled; LMDB's pages may be half as full as the snapshot's. A server maps it anew by its quota."""
MAP_BYTES_MIN: Final = 256 * 1024 * 1024

KEY_BYTES_MAX: Final = 511
"""LMDB's bound for keys of buckets; revisions, leases and members are far below."""

RESTORING_SUFFIX: Final = ".restoring-"
"""Of the directory's name until it is whole; what a crash leaves of one is removed by the next restore."""

_RESTORED_TERM: Final = 1
_OF_OLD_CLUSTER: Final = (schema.CONSISTENT_INDEX, schema.TERM, schema.CONF_STATE)
_AUTH_ENABLED: Final = (b"authEnabled", b"\1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """``config`` names the directory, this member and the cluster. A ``token`` of None is made of the file: equal for all members that
    are restored from it, and different from the old cluster's. ``bump_revision`` is added to the newest revision, and with it everything
    before is marked compacted, so that whoever watched the old history learns that it is gone instead of missing events."""

    config: MemberConfig
    token: str | None = None
    bump_revision: int = 0
    mark_compacted: bool = False
    skip_hash_check: bool = False

    def validate(self) -> None:
        """Raises ValueError, worded for the person who set the flag."""
        self.config.validate()
        self.config.validate_bootstrap()
        if self.bump_revision < 0:
            raise ValueError(f"--bump-revision must not be negative: {self.bump_revision}")
        if bool(self.bump_revision) is not self.mark_compacted:
            raise ValueError("--bump-revision and --mark-compacted go together: a watch must not take old revisions for the new ones")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    member_id: int
    cluster_id: int
    revision: int
    auth_enabled: bool
    """The snapshot has etcd's authentication switched on, which this store does not know: access is by client certificate."""


def restore(path: Path, options: RestoreOptions) -> Restored:
    """Raises SnapshotFileError, DataDirError (the directory holds a member already, or cannot be written), ValueError (options)."""
    options.validate()
    config = options.config
    target = config.member_dir()
    for existing in (target, config.log_dir()):
        if existing.exists():
            raise errors.DataDirError(f"{existing}: exists; a snapshot is restored only where no member is")
    with open_snapshot(path, skip_hash_check=options.skip_hash_check) as reader:
        work = target.with_name(f"{target.name}{RESTORING_SUFFIX}{os.getpid()}")
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in target.parent.glob(f"{target.name}{RESTORING_SUFFIX}*"):
                shutil.rmtree(left, ignore_errors=True)
            (work / "snap").mkdir(mode=0o700, parents=True)
            restored = _restore_into(work, reader, path, options)
            os.rename(work, target)
            sync_directory(target.parent)
        except OSError as error:
            raise errors.DataDirError(f"{error.filename or target}: {error.strerror or error}") from error
        except lmdb.Error as error:
            raise errors.DataDirError(f"{target}: the database cannot be written: {error}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
    logger.info("restored %s to %s: member %016x, revision %d", path, target, restored.member_id, restored.revision)
    return restored


def _restore_into(work: Path, reader: BboltReader, path: Path, options: RestoreOptions) -> Restored:
    config = options.config
    token = options.token if options.token is not None else _token_of(path)
    urls_of = dict(config.initial_cluster) or {config.name: config.peer_urls()}
    names = {new_member_id(urls, token): name for name, urls in urls_of.items()}
    member_id = new_member_id(config.peer_urls(), token)
    cluster_id = new_cluster_id(names)
    start = SnapshotMetadata(ConfState(tuple(sorted(names))), index=len(names), term=_RESTORED_TERM)

    file_bytes = reader.meta.page_count * reader.meta.page_bytes
    database = LmdbFile(work / "snap" / "db", max(file_bytes * MAP_BYTES_PER_FILE_BYTE, MAP_BYTES_MIN), sync=False)
    try:
        filler = _Filler(database, path)
        _copy(reader, filler, path)
        revision = max(filler.revision, EMPTY_REVISION)
        if options.bump_revision:
            revision += options.bump_revision
            filler.put(Bucket.META, schema.SCHEDULED_COMPACT_REVISION, revision_key(revision))
        filler.put(Bucket.META, schema.CONSISTENT_INDEX, schema.uint64_to_bytes(start.index))
        filler.put(Bucket.META, schema.TERM, schema.uint64_to_bytes(start.term))
        for each, name in sorted(names.items()):
            member = ClusterMember(id=each, name=name, peer_urls=tuple(urls_of[name]))
            filler.put(Bucket.MEMBERS, b"%x" % each, json.dumps(encode_member(member), separators=(",", ":")).encode())
        filler.flush()
        database.env.sync(True)
    finally:
        database.close()

    wal = Wal.create(work / "wal" if config.wal_dir is None else config.wal_dir, metadata=_metadata(member_id, cluster_id), snapshot=start)
    wal.save(HardState(term=start.term, commit=start.index), [])
    wal.close()
    sync_directory(work / "snap")
    sync_directory(work)
    return Restored(member_id=member_id, cluster_id=cluster_id, revision=revision, auth_enabled=filler.auth_enabled)


def _metadata(member_id: int, cluster_id: int) -> bytes:
    return Identity(member_id=member_id, cluster_id=cluster_id).encode()


def _copy(reader: BboltReader, filler: _Filler, path: Path) -> None:
    """What the clients wrote. Raises SnapshotFileError."""
    names = reader.buckets()
    for bucket in (Bucket.KEY, Bucket.META):
        if BUCKET_NAMES[bucket] not in names:
            raise errors.SnapshotFileError(f"{path}: it has no {BUCKET_NAMES[bucket].decode()} bucket, so etcd did not make it")
    for key, value in reader.items(BUCKET_NAMES[Bucket.META]):
        if key not in _OF_OLD_CLUSTER:
            filler.put(Bucket.META, key, value)
    for record, value in reader.items(BUCKET_NAMES[Bucket.KEY]):
        check_record(path, record)
        # An empty one is what ``etcdutl snapshot restore --bump-revision`` leaves.
        kv_codec.decode(value, with_value=False)
        filler.put(Bucket.KEY, record, value)
        filler.revision = main_of(record)
    filler.revision = max(filler.revision, *(main_of(filler.meta(name)) for name in schema.COMPACT_REVISIONS))
    for key, value in reader.items(BUCKET_NAMES[Bucket.LEASE]):
        lease.decode(value)
        filler.put(Bucket.LEASE, key, value)
    for bucket in (Bucket.CLUSTER, Bucket.AUTH, Bucket.AUTH_USERS, Bucket.AUTH_ROLES):
        for key, value in reader.items(BUCKET_NAMES[bucket]):
            filler.put(bucket, key, value)
            if bucket == Bucket.AUTH and (key, value) == _AUTH_ENABLED:
                filler.auth_enabled = True
    ignored = sorted(set(names) - set(BUCKET_NAMES))
    if ignored:
        logger.warning("%s has buckets that are not taken over: %s", path, ignored)


class _Filler:
    """Writes a database in batches."""

    def __init__(self, database: LmdbFile, path: Path) -> None:
        self._database = database
        self._path = path
        self._batch = self._empty()
        self._bytes = 0
        self._meta: dict[bytes, bytes] = {}
        self.revision = 0
        self.auth_enabled = False

    def put(self, bucket: Bucket, key: bytes, value: bytes) -> None:
        """Raises SnapshotFileError."""
        if not 0 < len(key) <= KEY_BYTES_MAX:
            raise errors.SnapshotFileError(f"{self._path}: bucket {bucket.name.lower()} has a key of {len(key)} bytes")
        if bucket == Bucket.META:
            self._meta[key] = value
        self._batch[bucket].write(key, value)
        self._bytes += len(key) + len(value)
        if self._bytes >= BATCH_BYTES:
            self.flush()

    def meta(self, key: bytes) -> bytes:
        """What was put into the meta bucket, or nothing."""
        return self._meta.get(key, b"")

    def flush(self) -> None:
        self._database.commit(self._batch)
        self._batch = self._empty()
        self._bytes = 0

    @staticmethod
    def _empty() -> tuple[WriteBuffer, ...]:
        return tuple(WriteBuffer() for _ in Bucket)


def _token_of(path: Path) -> str:
    """Made of the bytes of the database, so that every member gets the same."""
    sha256 = hashlib.sha256()
    for data in _read(path):
        sha256.update(data)
    return f"restored-{sha256.hexdigest()[:16]}"


def _read(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while data := file.read(1024 * 1024):
            yield data
