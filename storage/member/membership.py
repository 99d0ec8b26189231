"""Who belongs to the cluster: ids, the list that every member keeps in its backend, and the entries of the log that change it.

What a change says of a member travels as the context of a Raft configuration change. The list is kept as etcd keeps it, so that a
database is understood by both:

| bucket | key | value |
|---|---|---|
| ``members`` | member id in hex | JSON: ``id``, ``peerURLs``, ``isLearner``, ``name``, ``clientURLs`` |
| ``members_removed`` | member id in hex | ``removed`` |
| ``meta`` | ``confState`` | ``raftpb.ConfState`` as JSON: the configuration that the entries up to the consistent index led to |

A cluster begins with one entry for each of its first members, the same in every member's log (as etcd does it), so the list and the
configuration can always be made again from the log alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from storage import errors
from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.maintenance import ClusterMember
from storage.raft import codec
from storage.raft.messages import ConfChange, ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType, HardState

LEARNERS_MAX: Final = 1
"""Learners at a time (etcd's ``max-learners``): each is one more copy that the leader sends everything to."""

INITIAL_TERM: Final = 1
"""Of the entries that the cluster begins with."""


def new_member_id(peer_urls: Iterable[str], token: str, *, added_at: int | None = None) -> int:
    """etcd's rule: of the first members every one must compute the same ids, from what is configured everywhere; one that is added
    later gets an id of its own by the time (whole seconds since 1970), so that an address may be used again."""
    text = "".join(sorted(peer_urls)) + token + ("" if added_at is None else str(added_at))
    return int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:8], "big")


def new_cluster_id(member_ids: Iterable[int]) -> int:
    """etcd's rule: from the ids of the first members."""
    text = b"".join(member_id.to_bytes(8, "big") for member_id in sorted(member_ids))
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:8], "big")


def initial_members(cluster: Mapping[str, tuple[str, ...]], token: str) -> tuple[ClusterMember, ...]:
    """What ``--initial-cluster`` names, in the order of their ids. They have no name yet: each tells its own once it runs."""
    found = (ClusterMember(id=new_member_id(urls, token), peer_urls=tuple(urls)) for urls in cluster.values())
    return tuple(sorted(found, key=lambda member: member.id))


def initial_entries(members: Iterable[ClusterMember]) -> tuple[HardState, list[Entry]]:
    """The beginning of the log of a new cluster, all of it committed."""
    entries = []
    for index, member in enumerate(members, 1):
        change = ConfChange(ConfChangeType.ADD_NODE, member.id, encode_context(member))
        data, kind = codec.conf_change_proposal(change)
        entries.append(Entry(INITIAL_TERM, index, data, kind))
    return HardState(INITIAL_TERM, 0, len(entries)), entries


# -- JSON, as etcd's ``membership.Member`` and ``ConfigChangeContext``


def encode_member(member: ClusterMember) -> dict[str, object]:
    found: dict[str, object] = {"id": member.id, "peerURLs": list(member.peer_urls)}
    if member.is_learner:
        found["isLearner"] = True
    if member.name:
        found["name"] = member.name
    if member.client_urls:
        found["clientURLs"] = list(member.client_urls)
    return found


def decode_member(found: Any) -> ClusterMember:
    """Raises ValueError."""
    try:
        return ClusterMember(
            id=_integer(found["id"]),
            name=_text(found.get("name") or ""),
            peer_urls=tuple(_text(url) for url in found.get("peerURLs") or ()),
            client_urls=tuple(_text(url) for url in found.get("clientURLs") or ()),
            is_learner=bool(found.get("isLearner", False)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a member: {found!r}") from error


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not an integer")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def encode_context(member: ClusterMember, *, is_promote: bool = False) -> bytes:
    return _dump({**encode_member(member), "isPromote": is_promote})


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encode_conf_state(state: ConfState) -> bytes:
    found: dict[str, object] = {"voters": list(state.voters)}
    for name, members in (
        ("learners", state.learners),
        ("voters_outgoing", state.voters_outgoing),
        ("learners_next", state.learners_next),
    ):
        if members:
            found[name] = list(members)
    found["auto_leave"] = state.auto_leave
    return _dump(found)


def decode_conf_state(data: bytes) -> ConfState:
    """Raises CorruptError."""
    try:
        found = json.loads(data)
        voters, learners, outgoing, learners_next = (
            tuple(_integer(one) for one in found.get(name) or ()) for name in ("voters", "learners", "voters_outgoing", "learners_next")
        )
        return ConfState(voters, learners, outgoing, learners_next, bool(found.get("auto_leave", False)))
    except (ValueError, AttributeError, TypeError) as error:
        raise errors.CorruptError(f"the backend's configuration of the cluster cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class _Context:
    member: ClusterMember
    is_promote: bool


def _decode_context(change: ConfChange) -> _Context:
    """Raises CorruptError: nobody proposes what is none, so every member would stop here, and none goes its own way."""
    try:
        found = json.loads(change.context)
        return _Context(decode_member(found), bool(found.get("isPromote", False)))
    except ValueError as error:
        raise errors.CorruptError(f"a change of member {change.member:016x} in the log cannot be read: {error}") from error


class Membership:
    """``members`` by id, in the order of their ids. What changes it is called when the log's entries are applied, so it is the same on
    every member that has applied the same."""

    def __init__(self, backend: Backend) -> None:
        """Raises CorruptError."""
        self.restore(backend)

    def restore(self, backend: Backend) -> None:
        """Forget everything and load the list of ``backend``. Raises CorruptError."""
        self._backend = backend
        found: list[ClusterMember] = []
        for key, value in backend.range(Bucket.MEMBERS, b"", None):
            try:
                found.append(decode_member(json.loads(value)))
            except ValueError as error:
                raise errors.CorruptError(f"the backend's member {key!r} cannot be read: {error}") from error
        self.members = {member.id: member for member in sorted(found, key=lambda member: member.id)}
        self.removed = frozenset(int(key, 16) for key in backend.keys(Bucket.MEMBERS_REMOVED, b"", None))

    def list(self) -> tuple[ClusterMember, ...]:
        return tuple(self.members.values())

    def voters(self) -> tuple[ClusterMember, ...]:
        return tuple(member for member in self.members.values() if not member.is_learner)

    def member(self, member_id: int) -> ClusterMember:
        """Raises MemberNotFoundError."""
        found = self.members.get(member_id)
        if found is None:
            raise errors.MemberNotFoundError()
        return found

    def conf_state(self) -> ConfState | None:
        """The configuration that belongs to the backend's consistent index; None if no change of it was ever applied."""
        data = self._backend.get(Bucket.META, schema.CONF_STATE)
        return None if data is None else decode_conf_state(data)

    def set_conf_state(self, state: ConfState) -> None:
        self._backend.put(Bucket.META, schema.CONF_STATE, encode_conf_state(state))

    # -- applying

    def check(self, change: ConfChange) -> None:
        """Whether the change can be made to the list as it is now (etcd's ``ValidateConfigurationChange``). Raises MemberNotFoundError,
        MemberExistsError, PeerUrlExistsError, NotLearnerError, TooManyLearnersError."""
        if change.member in self.removed:
            raise errors.MemberNotFoundError() if change.type is not ConfChangeType.ADD_NODE else errors.MemberExistsError()
        if change.type is ConfChangeType.REMOVE_NODE:
            self.member(change.member)
            return
        context = _decode_context(change)
        if change.type is ConfChangeType.UPDATE_NODE:
            self.member(change.member)
            self._check_peer_urls(context.member.peer_urls, but=change.member)
        elif context.is_promote:
            if not self.member(change.member).is_learner:
                raise errors.NotLearnerError()
        else:
            if change.member in self.members:
                raise errors.MemberExistsError()
            self._check_peer_urls(context.member.peer_urls, but=0)
            if change.type is ConfChangeType.ADD_LEARNER_NODE and len(self.members) - len(self.voters()) >= LEARNERS_MAX:
                raise errors.TooManyLearnersError()

    def _check_peer_urls(self, urls: Iterable[str], *, but: int) -> None:
        taken = {url for member in self.members.values() if member.id != but for url in member.peer_urls}
        if taken.intersection(urls):
            raise errors.PeerUrlExistsError()

    def apply(self, change: ConfChange) -> ClusterMember:
        """Make a change that was checked. Answers the member as it is now, or was when it was removed."""
        if change.type is ConfChangeType.REMOVE_NODE:
            member = self.members.pop(change.member)
            self.removed |= {change.member}
            self._backend.delete(Bucket.MEMBERS, _key(change.member))
            self._backend.put(Bucket.MEMBERS_REMOVED, _key(change.member), b"removed")
            return member
        context = _decode_context(change)
        if change.type is ConfChangeType.UPDATE_NODE:
            member = replace(self.members[change.member], peer_urls=context.member.peer_urls)
        elif context.is_promote:
            member = replace(self.members[change.member], is_learner=False)
        else:
            member = replace(context.member, id=change.member, is_learner=change.type is ConfChangeType.ADD_LEARNER_NODE)
        self._put(member)
        return member

    def set_attributes(self, member_id: int, name: str, client_urls: tuple[str, ...]) -> None:
        """What a member says of itself. Of one that was removed meanwhile nothing is kept."""
        member = self.members.get(member_id)
        if member is not None:
            self._put(replace(member, name=name, client_urls=client_urls))

    def _put(self, member: ClusterMember) -> None:
        self.members = dict(sorted({**self.members, member.id: member}.items()))
        self._backend.put(Bucket.MEMBERS, _key(member.id), _dump(encode_member(member)))


def _key(member_id: int) -> bytes:
    return b"%x" % member_id


def conf_change_of(entry: Entry) -> ConfChange | ConfChangeV2:
    """Raises CorruptError."""
    assert entry.type is not EntryType.NORMAL, entry
    try:
        return codec.decode_conf_change_entry(entry)
    except codec.CodecError as error:
        raise errors.CorruptError(f"entry {entry.index} of the log changes the membership and cannot be read: {error}") from error
