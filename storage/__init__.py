"""The store: a Raft-replicated, multi-version key-value store with watches and leases.

Promises: an acknowledged write is durable and visible to every later linearizable read; every write has one revision; a watch
delivers every event of its range in revision order, once. The caller owes: keys and values are bytes, one door (``storage.api``)
and its errors (``storage.errors``). Not promised: anything about what the values mean; the store knows no Kubernetes word.
"""
