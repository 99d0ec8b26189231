"""A member of the store: the Raft node, its log on disk and the state machine that the log drives, as one ``api.KV``.

| file | job |
|---|---|
| ``member`` | the doors: ``api.KV``, ``maintenance.Cluster``, ``maintenance.Maintenance`` |
| ``replica`` | its life: start, peers, what it does by itself, failure, stop |
| ``environment`` | what it needs of the world; a simulation gives its own |
| ``bootstrap``, ``opening``, ``data_dir`` | how it begins, or finds itself in its directory |
| ``raft_loop``, ``disk_worker`` | proposals and messages in; entries to the disk, messages to peers, committed entries out |
| ``state_machine``, ``applier``, ``txn`` | what an entry does |
| ``request``, ``proposals``, ``wait`` | what an entry says, and who waits for it |
| ``read_index``, ``lease_service``, ``cluster_service`` | linearizable reads; leases; the list of members and who leads |
| ``membership`` | who belongs to the cluster, in the log and in the backend |
| ``snapshotter``, ``snapshot_transfer``, ``database_stream`` | releasing the log; sending the database to whom lacks it |
| ``housekeeping``, ``upkeep``, ``alarms``, ``quota``, … | what a member does now and then, and what operators ask of it |
| ``transport``, ``peer_calls``, ``peer_*`` | how members reach each other |

Promises: what is acknowledged is on the disks of a quorum and applied where it was asked for; a linearizable read anywhere sees it. A
member that cannot keep its promises stops: its disk or state machine failed, its log lacks what it acknowledged, it was removed.
Without a quorum nothing is answered but serializable reads; writes and reads wait for one until their time is over.

A cluster begins with the same entries in every first member's log, one for each of them, all committed (etcd's way); the snapshot marker
at the log's beginning names the same voters, so that members elect before they have applied them. One that is added later begins with
nothing but its id, and is told everything by the leader. What the configuration says of the cluster counts only where there is no log.

The caller owes: one event loop for all calls; ``stop``; an end of the process when ``wait_failed`` returns. Not promised: that a write
whose caller got an error did not take place, but for those errors that say so.
"""
