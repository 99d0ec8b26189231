"""``storage.api.KV`` over an external etcd cluster (3.4 and later) by gRPC.

    kv = EtcdKV(ClientConfig(endpoints=("https://10.0.0.1:2379", "https://10.0.0.2:2379"), ca_file=…, cert_file=…, key_file=…))
    await kv.start()          # connected, and the cluster answers
    ...
    await kv.close()

Promised:

* Calls go to one endpoint, the one that last worked; where it fails, to another. A read is tried again elsewhere until its deadline. A
  write is sent at most once: what went wrong before it was sent is ``UnavailableError`` (nothing happened), whatever comes after that is
  ``RequestTimeoutError`` (the outcome is unknown). So no write is ever applied twice by this client.
* Watches survive broken connections, restarted servers and changes of the endpoint: they go on from the revision after the last one
  delivered, without gap or repeat; a compaction in between is a ``CompactedError``.
* ``read_revision`` calls at the same time share one request. After it a watcher comes to have a batch of at least that revision
  soon, where ``progress_on_request`` is true.
* A changed certificate, key or CA file is used by the next connection.

Not promised: that events are there with a write's answer (``events_are_immediate`` is false). Importing this package loads gRPC and
protobuf, so it is imported where an external etcd is asked for, and nowhere else.
"""

from __future__ import annotations

import os

# gRPC would look after forked children, of which there are none here, and complain of each process that is started.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from storage.etcdclient.client import EtcdKV
from storage.etcdclient.config import ClientConfig

__all__ = ["ClientConfig", "EtcdKV"]
