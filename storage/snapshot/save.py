"""Takes a snapshot into a file: from a member that runs, by etcd's API, or from the directory of one that does not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from storage import errors
from storage.config import MemberConfig
from storage.etcdclient.config import ClientConfig
from storage.snapshot.snapshot_file import SnapshotStatus, open_snapshot, status

CATCH_UP_SECONDS_MAX: Final = 600.0
"""For carrying out what a log holds: with the largest logs that are kept it takes seconds."""


async def save_from_endpoint(config: ClientConfig, path: Path) -> SnapshotStatus:
    """Of the member at the first endpoint that answers; a real etcd or this store. Raises StoreError, of it UnavailableError and
    SnapshotFileError (what came is not whole)."""
    import grpc
    import grpc.aio

    from storage.etcdclient.connections import Connections
    from storage.etcdpb import etcdserverpb

    config.validate()
    connections = Connections(config)
    await connections.open()
    try:
        endpoint = await connections.ready()
        call = endpoint.call("/etcdserverpb.Maintenance/Snapshot")(etcdserverpb.SnapshotRequest())

        async def blobs() -> AsyncIterator[bytes]:
            async for response in call:
                yield response.blob

        try:
            return await _write(path, blobs())
        except grpc.aio.AioRpcError as error:
            raise errors.UnavailableError(f"{endpoint.url}: {error.details()}") from error
        finally:
            call.cancel()
    finally:
        await connections.close()


async def save_from_data_dir(config: MemberConfig, path: Path) -> SnapshotStatus:
    """Of a member that is not running. What its log holds beyond its backend is carried out first: all of it by the only member of its
    cluster; by one of several as much as it knows to be agreed on. Raises DataDirError, DataDirLockedError, CorruptError,
    SnapshotFileError."""
    from storage.member.member import Member

    for needed in (config.backend_file(), config.log_dir()):
        if not needed.exists():
            raise errors.DataDirError(f"{needed}: no member is there")
    member = Member(config)
    await member.start()
    try:
        async with asyncio.timeout(CATCH_UP_SECONDS_MAX):
            while (metrics := member.collect_metrics()).proposals_applied < metrics.proposals_committed:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stream = await member.snapshot()
        return await _write(path, stream.chunks)
    finally:
        await member.stop()


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> SnapshotStatus:
    """Write beside ``path``, check, and only then give it its name. Nothing else runs on this loop, so files may be waited for."""
    part = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: ASYNC230
            async for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        with open_snapshot(part):
            pass  # its hash is there and right
        found = status(part)
        os.replace(part, path)
        return found
    except OSError as error:
        raise errors.SnapshotFileError(f"{error.filename or path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
