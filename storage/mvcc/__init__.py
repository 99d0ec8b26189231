"""The multi-version map: every write makes a revision, every kept revision can be read.

A revision is (main, sub): main counts the write transactions of the whole store, sub the changes within one. The first write is
main 2, since an empty store is at 1 (etcd's numbering). The ``key`` bucket holds revision → key and value; the index in memory
holds key → its revisions and is rebuilt from the bucket at start.

Promises: a transaction's changes have one main revision; a read at a revision sees all of it or nothing; compaction at r keeps
what a read at r or later, or a watch from r on, needs. The caller owes: all calls from one thread, transactions one at a time,
checks before writes (there is no rollback). Not promised: reads below the compact revision.
"""
