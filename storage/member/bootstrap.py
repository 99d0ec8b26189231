"""How a member begins: as one of a new cluster, or as one that was added to a cluster that runs.

A member that has a log never comes here: what it is and who its peers are stands in its data directory.

A disk that was lost must not start anew under the same id: it may have voted and acknowledged entries, and would do so again
differently. So before it begins, a member asks those that run whether they have seen it before. To come back it is removed and added
again, which gives it a new id.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.config import MemberConfig
from storage.maintenance import ClusterMember
from storage.member import opening, peer_calls
from storage.member.environment import Environment
from storage.member.membership import initial_entries, initial_members, new_cluster_id, new_member_id
from storage.member.opening import Identity, OpenedLog
from storage.member.peer_calls import RemoteCluster
from storage.raft.messages import ConfState, HardState
from storage.wal.wal import Replay

logger = logging.getLogger(__name__)

ASK_SECONDS: Final = 2.0
"""How long an answer of another member is waited for: at the first start of a cluster most are not there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """``peers`` are known before the log tells who they are."""

    opened: OpenedLog
    peers: tuple[ClusterMember, ...]


async def begin(config: MemberConfig, environment: Environment) -> Beginning:
    """Make the log of a member that has none. Raises MembershipError when the running cluster does not want it, MemberRemovedError,
    DataDirError, DataDirLockedError, UnavailableError (a cluster to join that cannot be reached)."""
    try:
        config.validate_bootstrap()
    except ValueError as error:
        raise errors.MembershipError(str(error)) from None
    if config.initial_cluster_state == "existing":
        return await _join(config, environment)
    members = configured_members(config)
    identity = Identity(
        member_id=new_member_id(config.peer_urls(), config.initial_cluster_token),
        cluster_id=new_cluster_id(member.id for member in members),
    )
    if len(members) > 1:
        await _check_not_seen(config, environment, identity)
    opened = opening.create_log(config, environment, identity, ConfState(tuple(member.id for member in members)))
    return Beginning(opened=write_initial_entries(opened, config), peers=members)


def is_unfinished(opened: OpenedLog) -> bool:
    """Whether the process died between making the log and writing its beginning."""
    replay = opened.replay
    is_empty = not replay.entries and replay.snapshot.index == 0 and replay.hard_state == HardState()
    return is_empty and bool(replay.snapshot.conf_state.voters)


def write_initial_entries(opened: OpenedLog, config: MemberConfig) -> OpenedLog:
    """Begin the log with its members. Raises MembershipError if the configuration is no longer what the log was made for."""
    members = configured_members(config)
    voters = opened.replay.snapshot.conf_state.voters
    if voters != tuple(member.id for member in members):
        if voters != (opened.identity.member_id,) or len(members) > 1:
            raise errors.MembershipError(f"{config.data_dir}: was begun with another --initial-cluster or --initial-cluster-token")
        members = (ClusterMember(id=opened.identity.member_id, peer_urls=config.peer_urls()),)
    hard_state, entries = initial_entries(members)
    opened.log.save(hard_state, entries)
    old = opened.replay
    replay = Replay(metadata=old.metadata, hard_state=hard_state, snapshot=old.snapshot, entries=entries, repair=old.repair)
    return OpenedLog(identity=opened.identity, log=opened.log, replay=replay)


def configured_members(config: MemberConfig) -> tuple[ClusterMember, ...]:
    """What ``--initial-cluster`` says."""
    return initial_members(config.initial_cluster or {config.name: config.peer_urls()}, config.initial_cluster_token)


async def _check_not_seen(config: MemberConfig, environment: Environment, identity: Identity) -> None:
    """Raises MembershipError, MemberRemovedError."""
    for url, answer in (await _ask_all(config, environment)).items():
        if answer.cluster_id != identity.cluster_id or not answer.has_leader:
            continue  # another cluster, or one that begins as well
        member = next((one for one in answer.members if one.id == identity.member_id), None)
        if member is None:
            raise errors.MemberRemovedError()
        if _was_started(member, answer):
            raise errors.MembershipError(
                f"member {identity.member_id:016x} ({config.name}) has run before, says {url}, but {config.data_dir} holds nothing of it: "
                "what it acknowledged is lost; remove the member from the cluster and add it again"
            )


def _was_started(member: ClusterMember, answer: RemoteCluster) -> bool:
    return bool(member.name) or answer.acknowledged.get(member.id, 0) > 0


async def _join(config: MemberConfig, environment: Environment) -> Beginning:
    answers = await _ask_all(config, environment)
    if not answers:
        others = ", ".join(_other_urls(config))
        raise errors.UnavailableError(f"etcdserver: cannot join the cluster: none of its members answers at {others}")
    mine = frozenset(config.peer_urls())
    answers = {url: answer for url, answer in answers.items() if _may_speak(answer, mine)}
    if not answers:
        raise errors.UnavailableError("etcdserver: cannot join the cluster: its leader does not answer")
    for url, answer in answers.items():
        member = next((one for one in answer.members if frozenset(one.peer_urls) == mine), None)
        if member is None:
            continue
        if _was_started(member, answer):
            raise errors.MembershipError(
                f"member {member.id:016x} at {', '.join(sorted(mine))} has run before, says {url}, but {config.data_dir} holds nothing of "
                "it: remove the member from the cluster and add it again"
            )
        listed = {frozenset(one.peer_urls) for one in answer.members}
        if listed != {frozenset(urls) for urls in config.initial_cluster.values()}:
            raise errors.MembershipError(
                "--initial-cluster does not match the members of the running cluster: "
                + "; ".join(sorted(",".join(one.peer_urls) for one in answer.members))
            )
        identity = Identity(member_id=member.id, cluster_id=answer.cluster_id)
        opened = opening.create_log(config, environment, identity, ConfState())
        logger.info("joining cluster %016x as member %016x", answer.cluster_id, member.id)
        return Beginning(opened=opened, peers=answer.members)
    raise errors.MembershipError(f"no member with the peer URLs {', '.join(sorted(mine))} was added to the running cluster (member add)")


def _may_speak(answer: RemoteCluster, mine: frozenset[str]) -> bool:
    """Whether ``answer`` can be relied on to tell that this member never ran. The leader's can: it has applied everything that was
    acknowledged, and knows who acknowledged what. A follower may lag behind the entry with which this member named itself before it
    lost its disk. But the only other voter of two holds whatever this member can have acknowledged, and waits for its vote."""
    if answer.acknowledged:
        return True
    voters = [member for member in answer.members if not member.is_learner]
    return len(voters) == 2 and any(frozenset(member.peer_urls) == mine for member in voters)


def _other_urls(config: MemberConfig) -> list[str]:
    return [url for name, urls in sorted(config.initial_cluster.items()) if name != config.name for url in urls]


async def _ask_all(config: MemberConfig, environment: Environment) -> dict[str, RemoteCluster]:
    """The answers of those that are there, by URL: the leader's first, since only it knows what was acknowledged, then those of members
    that hear it, then those that have the newest list."""
    urls = _other_urls(config)
    found = await asyncio.gather(*(_ask(environment, url) for url in urls))
    answers = [(url, answer) for url, answer in zip(urls, found, strict=True) if answer is not None]
    return dict(sorted(answers, key=lambda pair: (not pair[1].acknowledged, not pair[1].has_leader, -pair[1].applied_index)))


async def _ask(environment: Environment, url: str) -> RemoteCluster | None:
    assert environment.transport is not None
    try:
        return RemoteCluster.from_json(
            await environment.transport.call_url(url, peer_calls.CLUSTER_MEMBERS, b"", timeout_seconds=ASK_SECONDS)
        )
    except (errors.StoreError, ValueError) as error:
        logger.info("no members from %s: %s", url, error)
        return None
