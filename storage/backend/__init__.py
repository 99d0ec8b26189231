"""What is on disk between two entries of the log: an ordered map of bytes in named buckets, as etcd's backend.

Promises: a write is visible to the reads of the same thread at once; writes become durable in batches, in order, and a batch is
whole or absent after a crash, so whatever was written between two calls of ``maybe_commit``/``commit`` (an entry's data and the
consistent index that covers it) is there together or not at all. The caller owes: all calls from one thread (the one that applies
entries), no commit call in the middle of an entry, ``maybe_commit`` called often (etcd's 100 ms), ``close`` at the end.
Not promised: durability at once; the WAL is the truth until ``durable_get`` shows the consistent index.
"""
