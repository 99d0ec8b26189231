"""Raft consensus as a pure state machine (Ongaro & Ousterhout, "In Search of an Understandable Consensus Algorithm").

What it promises: fed with proposals, messages of peers and ticks, it says what must be written, sent and applied, such that all
members apply the same entries in the same order. It touches no socket, file, clock, thread or global random.

What the caller owes (``rawnode.RawNode``):

1. Call ``tick`` at even intervals, ``step`` for each message of a peer, ``propose`` for each request. Messages may be lost, doubled and
   reordered, but not altered, and must be of the member that their ``sender`` names (READ_INDEX and PROPOSE may be passed on by another).
2. While ``has_ready()``: take ``ready()``. Send ``messages`` at once, serve ``read_states`` once their index is applied. Hand the rest
   to the disk in the order of the Readys, and within one in this order: ``snapshot``, ``hard_state`` and ``entries``. Apply
   ``committed_entries`` in order, then call ``advance_applied``.
3. When what a Ready holds is durable, append its entries to the log storage and call ``advance_persisted(ready)``; then send its
   ``messages_after_append`` (they promise that it is durable). Several Readys may be at the disk at a time; they are advanced in order.

So writing and the rest run side by side: a leader counts its own copy of an entry as one of the quorum only in ``advance_persisted``,
and only entries that are durable here are given out to be applied.

**Snapshots.** A Ready with a ``snapshot`` asks to put that state in place of the state machine and of the whole log:

1. It is at the disk after all Readys before it and before all behind it, as any Ready. Everything given out before is applied, and
   ``advance_applied`` called for it, before the snapshot is installed. Committed entries come only after it is advanced.
2. Have the state durable beside the old one, where a restart finds it. Then write the snapshot's metadata to the log, then the Ready's
   ``hard_state`` (its commit index is that of the snapshot, so it must not be durable without it) and ``entries`` (they follow the
   snapshot). Then put the state in the place of the old one. A restart that finds the metadata in the log and the state machine behind
   it finishes the last step first; one that does not find the metadata throws the new state away. In the other order a state machine
   ahead of its log could not be told from a log that has lost entries, which must not start. ``Config.applied`` and the configuration
   given at the start are those of the state machine.
3. Call ``log_storage.apply_snapshot(metadata)``, append the entries, then ``advance_persisted``: the snapshot counts as applied, no
   ``advance_applied`` is due for it. The answer to the leader is among ``messages_after_append``.

The configuration of the snapshot is in force here from the Ready on. A leader asks ``LogStorage.snapshot()`` for what to send; the
state may travel beside the message, and each SNAPSHOT message is owed a ``report_snapshot``. When the state that is sent is newer than
the message says, the transport puts its metadata (index, term, configuration) into the message.

**Configuration changes.** ``committed_entries`` of type CONF_CHANGE and CONF_CHANGE_V2 are passed to ``apply_conf_change`` in their
place among the others; the change is in force when it is applied. The ConfState that is returned is kept durably with the state
machine. A member that is removed learns of it only if it applies the entry that removes it. A leader that is removed or demoted steps
down when it applies that.

**Reads.** ``read_index`` confirms leadership by a round of heartbeats (thesis §6.4), never by a clock.

Not promised: transport. Message and entry numbers are those of etcd's ``raftpb``.
"""
