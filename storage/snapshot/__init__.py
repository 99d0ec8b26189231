"""Snapshot files: the database as a file that etcd's tools take, and back.

    file = bbolt database with etcd's buckets | SHA-256 of it (32 bytes)

``database`` streams one from a view of the backend; ``snapshot_file`` opens one, checks it and says what is in it; ``restore`` makes a
data directory of one. Files come from this store and from etcd alike (``etcdctl snapshot save``); a file without the hash (a copy of a
data directory's ``db``) is taken only when that is asked for.

Promises: a file that is truncated, altered or no snapshot is refused with ``SnapshotFileError`` before anything is made of it, and a
restore that fails leaves no directory behind.
"""
