"""The write-ahead log: what ``Wal.save`` returned from is on disk, and ``Wal.open`` gives it back after any crash.

A directory of segment files ``<sequence>-<first index>.wal`` (both 16 hexadecimal digits). A segment is a chain of frames; a frame is
what one ``save`` wrote and synced as a whole, and holds records:

    frame  = header (32 bytes) | records | 0xA5 | zeros up to a multiple of 32
    header = "SWAL" | length of the records u32 | number of the frame u64 | checksum of the frame before u32 | checksum u32 | 0 u32 |
             checksum of the header u32                                  (little endian; checksums are CRC-32)
    record = type u8 | length u32 | data                                 (data in the protobuf layouts of raftpb)

Frames are numbered without gaps over all segments, and each holds the checksum of the one before, so a lost or swapped piece shows.
The first frame of a segment repeats the metadata, the last HardState and the last snapshot marker: older segments can be removed
once their entries are not needed.

Why frames: frame n+1 is only written after frame n was synced. So a bad frame with a good header of a later one behind it is
**damage** (``CorruptError``, names file and offset), and a bad frame at the very end that misses its end mark or a whole sector is a
**torn tail**: a write that the crash cut short, which nobody was told about. It is cut off and reported.

What the caller owes: one owner, one thread at a time; after an exception from ``save`` the Wal must not be used again.
Not promised: that the last frame, if its bits rot *after* it was synced in such a way that it looks like a cut write, is told from one.
"""
