"""The store and its client port alone, without an API server: ``bare_store DIRECTORY NAME CLIENT_PORT [INITIAL_CLUSTER]``."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from apiserver import garbage_collection
from apiserver.cli.client_port import bind
from apiserver.cli.cluster_flags import initial_cluster
from apiserver.config import StoreConfig
from apiserver.embedded_store import running_member
from apiserver.store_door import run


async def main() -> None:
    garbage_collection.pause()
    directory, name, port, *cluster = sys.argv[1:]
    members = initial_cluster(cluster[0]) if cluster else {}
    url = f"http://127.0.0.1:{port}"
    own = members.get(name, ())
    store = StoreConfig(
        data_dir=Path(directory), name=name, listen_client_urls=(url,), advertise_client_urls=(url,),
        initial_cluster=members, listen_peer_urls=own, initial_advertise_peer_urls=own,
        heartbeat_interval=100, election_timeout=1000,
    )  # fmt: skip
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    listener = bind(url)
    async with running_member(store, stop, None) as member:
        if member is not None:
            garbage_collection.settle()
            serving = asyncio.create_task(run(store, member, (listener,)))
            await stop.wait()
            serving.cancel()
            await asyncio.wait((serving,))


if __name__ == "__main__":
    uvloop.run(main())
