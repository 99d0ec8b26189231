"""bbolt's file format: how etcd keeps its backend, and so what a snapshot of it is. Read and written here, never used as a backend.

    file     = meta page 0 | meta page 1 | pages …              every page begins at a multiple of the page size
    page     = u64 id | u16 flags | u16 count | u32 overflow | elements | their keys and values
    meta     = u32 magic | u32 version 2 | u32 page size | u32 flags | u64 root page | u64 sequence | u64 freelist page
               | u64 pages in use | u64 transaction id | u64 FNV-1a of what is before it
    branch   = (u32 position | u32 key size | u64 child page)*   the key is the least of the child's
    leaf     = (u32 flags | u32 position | u32 key size | u32 value size)*   flag 1: the value is a bucket
    bucket   = u64 root page | u64 sequence                      root 0: the bucket's only page follows inline

Numbers are little-endian; positions count from the element itself; ``overflow`` pages follow a page whose content is longer than one.
The two meta pages are written in turns: of the whole ones that with the larger transaction id counts.

Promises: what ``writer`` makes, bbolt's own check finds without fault; memory does not grow with the file, neither for writing nor for
reading; a file that is cut, altered or contradicts itself (pages that share children, keys out of order) raises ``CorruptError`` after
at most one look at each page. Not promised: that every altered byte is found; a snapshot has a checksum for that.

Source: bbolt ``internal/common`` (page, meta, bucket, inode) and ``tx_check.go``.
"""
