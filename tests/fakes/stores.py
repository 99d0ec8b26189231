"""Which store the API server is tested over: ``SAMPAN_TEST_STORE`` is

* ``memory`` (the default): events are there with the answer, as with the embedded store;
* ``travelling``, ``travelling-old``: events come over the network; ``old`` cannot be asked how far a watch is;
* ``follower``: one of several members, where what the others wrote is applied a while later;
* ``etcd``: a real etcd, a process for each store.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from storage import api
from tests.fakes.follower_kv import FollowerKV
from tests.fakes.memory_kv import MemoryKV
from tests.fakes.travelling_kv import TravellingKV

KIND = os.environ.get("SAMPAN_TEST_STORE", "memory")


@contextlib.asynccontextmanager
async def store() -> AsyncIterator[api.KV]:
    """An empty store."""
    if KIND == "etcd":
        from storage.etcdclient import ClientConfig, EtcdKV
        from tests.storage.etcd_process import EtcdProcess

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory, EtcdProcess(Path(directory) / "data") as process:
            etcd = EtcdKV(ClientConfig(endpoints=(f"http://{process.target}",)))
            await etcd.start()
            try:
                yield etcd
            finally:
                await etcd.close()
    elif KIND == "memory":
        yield MemoryKV()
    elif KIND == "follower":
        follower = FollowerKV()
        yield follower
        follower.close()
    else:
        assert KIND in ("travelling", "travelling-old"), KIND
        travelling = TravellingKV(progress_on_request=KIND == "travelling")
        yield travelling
        travelling.close()
