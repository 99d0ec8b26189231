"""The one error tree of the store. Texts are etcd's (``etcdserver/api/v3rpc/rpctypes``), since operators and clients match on them.

StoreError
 ├─ CompactedError            the revision asked for is compacted; carries ``compact_revision``
 ├─ FutureRevisionError       the revision asked for does not exist yet
 ├─ InvalidRequestError       the request contradicts itself (empty key, duplicate key in a txn, too many operations)
 ├─ RequestTooLargeError      over the request size limit
 ├─ NoSpaceError              the backend quota is used up; deletes and compaction still work
 ├─ LeaseNotFoundError / LeaseExistsError / LeaseTtlTooLargeError
 ├─ KeyNotFoundError          ``ignore_value``/``ignore_lease`` on a key that is not there
 ├─ UnavailableError          no leader, a stopped member, a lost quorum: the outcome of a read is known to be none
 │   └─ RequestTimeoutError  the outcome of a write is unknown
 ├─ TooManyRequestsError      the queue of proposals is full; nothing was proposed
 ├─ MembershipError           a change of the cluster's members that cannot be made; nothing was changed
 │   └─ MemberNotFoundError, MemberExistsError, PeerUrlExistsError, InvalidUrlsError, NotLearnerError, LearnerNotReadyError,
 │      TooManyLearnersError, UnhealthyClusterError (of it NotEnoughStartedMembersError)
 ├─ NotLeaderError / BadLeaderTransfereeError / LeaderTransferTimeoutError
 ├─ NotSupportedForLearnerError   a learner answers serializable reads only
 ├─ MemberRemovedError        this member was removed from its cluster; it never works again
 ├─ SnapshotFileError         a snapshot file that is not one, is truncated or altered
 ├─ DataDirError              the data directory cannot be used (permissions, no space, not a directory); names the file
 │   └─ DataDirLockedError   another process uses it
 ├─ CorruptAlarmError         the CORRUPT alarm is raised: writes are refused
 └─ CorruptError              what is on disk contradicts itself; never retried; names file and offset
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of every error that the store raises on purpose."""

    text = "etcdserver: unknown error"

    def __init__(self, text: str | None = None) -> None:
        super().__init__(text or self.text)


class CompactedError(StoreError):
    text = "etcdserver: mvcc: required revision has been compacted"

    def __init__(self, compact_revision: int = 0) -> None:
        super().__init__()
        self.compact_revision = compact_revision


class FutureRevisionError(StoreError):
    text = "etcdserver: mvcc: required revision is a future revision"

    def __init__(self, current_revision: int = 0) -> None:
        super().__init__()
        self.current_revision = current_revision


class InvalidRequestError(StoreError):
    text = "etcdserver: invalid request"


class EmptyKeyError(InvalidRequestError):
    text = "etcdserver: key is not provided"


class DuplicateKeyError(InvalidRequestError):
    text = "etcdserver: duplicate key given in txn request"


class TooManyOpsError(InvalidRequestError):
    text = "etcdserver: too many operations in txn request"


class RequestTooLargeError(StoreError):
    text = "etcdserver: request is too large"


class NoSpaceError(StoreError):
    text = "etcdserver: mvcc: database space exceeded"


class LeaseNotFoundError(StoreError):
    text = "etcdserver: requested lease not found"


class LeaseExistsError(StoreError):
    text = "etcdserver: lease already exists"


class LeaseTtlTooLargeError(StoreError):
    text = "etcdserver: too large lease TTL"


class KeyNotFoundError(StoreError):
    text = "etcdserver: key not found"


class UnavailableError(StoreError):
    text = "etcdserver: no leader"


class StoppedError(UnavailableError):
    text = "etcdserver: server stopped"


class RequestTimeoutError(UnavailableError):
    text = "etcdserver: request timed out"


class TooManyRequestsError(StoreError):
    text = "etcdserver: too many requests"


class CorruptError(StoreError):
    text = "etcdserver: corrupt cluster"


class DataDirError(StoreError):
    text = "etcdserver: data directory cannot be used"


class DataDirLockedError(DataDirError):
    text = "etcdserver: data directory is locked by another process"


class CorruptAlarmError(StoreError):
    """The CORRUPT alarm is raised: the members differ, and nothing is written until an operator has looked."""

    text = "etcdserver: corrupt cluster"


class MembershipError(StoreError):
    pass


class MemberNotFoundError(MembershipError):
    text = "etcdserver: member not found"


class MemberExistsError(MembershipError):
    text = "etcdserver: member ID already exist"


class PeerUrlExistsError(MembershipError):
    text = "etcdserver: Peer URLs already exists"


class InvalidUrlsError(MembershipError):
    text = "etcdserver: given member URLs are invalid"


class NotLearnerError(MembershipError):
    text = "etcdserver: can only promote a learner member"


class LearnerNotReadyError(MembershipError):
    text = "etcdserver: can only promote a learner member which is in sync with leader"


class TooManyLearnersError(MembershipError):
    text = "etcdserver: too many learner members in cluster"


class UnhealthyClusterError(MembershipError):
    text = "etcdserver: unhealthy cluster"


class NotEnoughStartedMembersError(UnhealthyClusterError):
    text = "etcdserver: re-configuration failed due to not enough started members"


class NotLeaderError(StoreError):
    text = "etcdserver: not leader"


class BadLeaderTransfereeError(StoreError):
    text = "etcdserver: bad leader transferee"


class LeaderTransferTimeoutError(StoreError):
    text = "etcdserver: request timed out, leader transfer took too long"


class NotSupportedForLearnerError(StoreError):
    text = "etcdserver: rpc not supported for learner"


class MemberRemovedError(StoreError):
    text = "etcdserver: the member has been permanently removed from the cluster"


class SnapshotFileError(StoreError):
    text = "etcdserver: snapshot file cannot be used"
