"""Raft consensus as a pure state machine (Ongaro & Ousterhout, "In Search of an Understandable Consensus Algorithm").

What it promises: fed with proposals, messages of peers and ticks, it says what must be written, sent and applied, such that all
members apply the same entries in the same order. It touches no socket, file, clock, thread or global random.

What the caller owes (``rawnode.RawNode``):

1. Call ``tick`` at even intervals, ``step`` for each message of a peer, ``propose`` for each request.
2. While ``has_ready()``: take ``ready()``. Send ``messages`` at once. Hand ``hard_state`` and ``entries`` to the disk in the order of
   the Readys. Apply ``committed_entries`` in order, then call ``advance_applied``.
3. When what a Ready holds is durable, append its entries to the log storage and call ``advance_persisted(ready)``; then send its
   ``messages_after_append`` (they promise that it is durable). Several Readys may be at the disk at a time; they are advanced in order.

So writing and the rest run side by side: a leader counts its own copy of an entry as one of the quorum only in ``advance_persisted``,
and only entries that are durable here are given out to be applied.

Not promised: transport, membership changes, snapshots to peers. Message and entry numbers are those of etcd's ``raftpb``.
"""
