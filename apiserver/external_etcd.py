"""The API server's client of an external etcd: made from the configuration, and waited for at start."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from apiserver.config import EtcdConfig
from storage import errors
from storage.etcdclient import ClientConfig, EtcdKV

logger = logging.getLogger(__name__)

#: As kube-apiserver: an attempt each second for a minute, so that etcd may be started beside the API server; then whoever started this
#: process should hear of it.
RETRY_SECONDS = 1.0
START_SECONDS_MAX = 60.0


async def connected(config: EtcdConfig, stop: asyncio.Event) -> EtcdKV | None:
    """A started client; None where ``stop`` was set before etcd answered. Raises UnavailableError after a minute of attempts, and at once
    what no further attempt would mend (files, permissions)."""
    kv = EtcdKV(ClientConfig(endpoints=config.servers, ca_file=config.cafile, cert_file=config.certfile, key_file=config.keyfile))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + START_SECONDS_MAX
    told = ""
    try:
        while not stop.is_set():
            try:
                await kv.start()
                if told:
                    logger.warning("etcd answers now: servers=%s", ",".join(config.servers))
                return kv
            except errors.UnavailableError as error:
                if loop.time() >= deadline:
                    message = f"etcd did not answer within {START_SECONDS_MAX:.0f} s ({error}); see --etcd-servers"
                    raise errors.UnavailableError(message) from error
                if str(error) != told:
                    told = str(error)
                    logger.warning("etcd does not answer yet, trying again every second: error=%s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RETRY_SECONDS)
    except BaseException:
        await kv.close()
        raise
    await kv.close()
    return None
