"""Alarms of the cluster: raised and taken off through the log, so every member refuses the same writes from the same entry on.

``NOSPACE`` refuses what adds data: puts, transactions that may put, grants of leases. Deletes, compaction and defragmentation make room;
then an operator takes the alarm off. ``CORRUPT`` refuses every write: members differ, and each write could make it worse.

Each alarm is a key of the ``alarm`` bucket: ``etcdserverpb.AlarmMember`` {1: memberID, 2: alarm}, with an empty value.
"""

from __future__ import annotations

from storage import api, errors
from storage.backend.backend import Backend, Bucket
from storage.maintenance import Alarm, AlarmType
from storage.member.quota import cost
from storage.member.request import CompactionRequest, InternalRequest, LeaseGrantRequest, LeaseRevokeRequest
from storage.raft import codec

_REFUSED_WHEN_CORRUPT = (
    api.PutRequest,
    api.DeleteRangeRequest,
    api.TxnRequest,
    CompactionRequest,
    LeaseGrantRequest,
    LeaseRevokeRequest,
)


class Alarms:
    """``is_quiet`` is true while there is none: then nothing need be checked."""

    def __init__(self, backend: Backend) -> None:
        """Raises CorruptError."""
        self.restore(backend)

    def restore(self, backend: Backend) -> None:
        """Forget everything and load what ``backend`` holds. Raises CorruptError."""
        self._backend = backend
        self._active: set[Alarm] = {_decode(key) for key in backend.keys(Bucket.ALARM, b"", None)}

    @property
    def is_quiet(self) -> bool:
        return not self._active

    def is_active(self, alarm: AlarmType) -> bool:
        """On any member."""
        return any(each.type is alarm for each in self._active)

    def get(self, alarm: AlarmType = AlarmType.NONE) -> tuple[Alarm, ...]:
        """Those of a type, or all."""
        found = [each for each in self._active if alarm in (AlarmType.NONE, each.type)]
        return tuple(sorted(found, key=lambda each: (each.type, each.member_id)))

    def activate(self, member_id: int, alarm: AlarmType) -> Alarm | None:
        """Raise it, if it is not raised already; None for no type."""
        if alarm is AlarmType.NONE:
            return None
        raised = Alarm(member_id, alarm)
        if raised not in self._active:
            self._active.add(raised)
            self._backend.put(Bucket.ALARM, _encode(raised), b"")
        return raised

    def deactivate(self, member_id: int, alarm: AlarmType) -> tuple[Alarm, ...]:
        """Take off those of a member (0: of all) and type (``NONE``: of all); answers them."""
        taken_off = tuple(each for each in self.get(alarm) if member_id in (0, each.member_id))
        for each in taken_off:
            self._active.discard(each)
            self._backend.delete(Bucket.ALARM, _encode(each))
        return taken_off

    def check(self, request: InternalRequest) -> None:
        """Raises CorruptAlarmError, NoSpaceError for what the alarms refuse."""
        if self.is_quiet:
            return
        if self.is_active(AlarmType.CORRUPT) and isinstance(request, _REFUSED_WHEN_CORRUPT):
            raise errors.CorruptAlarmError()
        if self.is_active(AlarmType.NOSPACE) and cost(request) > 0:
            raise errors.NoSpaceError()


def _encode(alarm: Alarm) -> bytes:
    member = b"\x08" + codec.varint(alarm.member_id) if alarm.member_id else b""
    return member + b"\x10" + codec.varint(alarm.type)


def _decode(key: bytes) -> Alarm:
    try:
        numbers = {number: value for number, value in codec.fields(key) if isinstance(value, int)}
        return Alarm(numbers.get(1, 0), AlarmType(numbers.get(2, 0)))
    except ValueError as error:
        raise errors.CorruptError(f"the backend's alarm bucket holds {key!r}, which is no alarm: {error}") from error
