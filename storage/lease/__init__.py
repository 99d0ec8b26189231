"""Leases: a time to live that keys can be attached to; when it runs out the keys are deleted, at one revision.

Promises: a lease is never reported expired before its whole TTL has passed since its last grant, renewal or promotion; after a
restart or a change of leader it has its full TTL again (etcd's default). The caller owes: monotonic ``now`` in seconds; grants and
revocations through the log, so that every member has the same leases; renewals and expiry only on the leader. Not promised: that a
lease is revoked at the instant it expires — the leader proposes it, which takes as long as a write takes.
"""
