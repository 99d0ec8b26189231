"""Watches over the versions: every event of a range, in revision order, once, from any kept revision on.

A watcher is *synced* (it has been given everything up to now; events are posted to it at the end of each write transaction) or
*lagging* (it reads history when its reader takes). It begins lagging if it starts in the past, and falls back to it when its buffer is
full: the buffered batches stay, what follows is read from history later, and nobody waits for it.

| queue (``watcher``, ``history``) | limit | beyond it |
|---|---|---|
| a watcher's buffer | ``BUFFERED_BATCHES_MAX`` batches and ``BUFFERED_BYTES_MAX`` bytes | lagging: caught up from history as it is taken |
| one read of history | ``SLICE_RECORDS_MAX`` records, ``SLICE_BYTES_MAX`` bytes | a batch of what was found, perhaps without events |

Promises: all events of one revision are in one batch; no gap, no repeat, no reordering; a watcher overtaken by compaction is told so
after what was buffered. The caller owes: one reader per watcher, ``cancel`` when done.
"""
