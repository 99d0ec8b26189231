"""Scripts in ``testdata``: what members say to each other, step by step. Commands are the methods of ``Environment``."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.raft.describe import describe_conf_state, describe_message, describe_progress, describe_ready, describe_status
from storage.raft.messages import ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, Message
from storage.raft.rawnode import ProposalDroppedError, ReadIndexDroppedError, Role
from tests import datadriven
from tests.storage.raft.cluster import Cluster

SCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


class Environment:
    def __init__(self) -> None:
        self.cluster = Cluster(0)

    def handle(self, case: datadriven.Case) -> str:
        method = getattr(self, "on_" + case.command.replace("-", "_"))
        output: str = method(case)
        return output

    def on_members(self, case: datadriven.Case) -> str:
        """members 3 [voters=(1,2)] [learners=(3)] [pre-vote] [check-quorum] [in-flight=n] [message-bytes=n]

        Members that are neither voters nor learners are processes that wait to be added."""
        words = case.words()
        self.cluster = Cluster(
            int(words[0]),
            voters=tuple(case.integers("voters")),
            learners=tuple(case.integers("learners")),
            pre_vote="pre-vote" in words,
            check_quorum="check-quorum" in words,
            in_flight_max=case.integer("in-flight", 256),
            message_bytes_max=case.integer("message-bytes", 1 << 20),
        )
        return ""

    def on_change(self, case: datadriven.Case) -> str:
        """change <member> [add=(4,5)] [remove=(1)] [learn=(2)] [implicit] [explicit]; without any it leaves a joint configuration"""
        kinds = {
            "add": ConfChangeType.ADD_NODE,
            "remove": ConfChangeType.REMOVE_NODE,
            "learn": ConfChangeType.ADD_LEARNER_NODE,
        }
        words = case.words()
        changes = tuple(
            ConfChangeSingle(kinds[key], int(member)) for key in case.arguments if key in kinds for member in case.arguments[key]
        )
        transition = ConfChangeTransition.AUTO
        if "implicit" in words:
            transition = ConfChangeTransition.JOINT_IMPLICIT
        elif "explicit" in words:
            transition = ConfChangeTransition.JOINT_EXPLICIT
        try:
            self.cluster.node(int(words[0])).propose_conf_change(ConfChangeV2(changes, transition))
        except ProposalDroppedError as error:
            return f"dropped: {error}"
        return ""

    def on_read(self, case: datadriven.Case) -> str:
        """read <member> <context>"""
        member, context = case.words()
        try:
            self.cluster.node(int(member)).read_index(context.encode())
        except ReadIndexDroppedError as error:
            return f"dropped: {error}"
        return ""

    def on_reads(self, case: datadriven.Case) -> str:
        """What was answered since the last time."""
        lines = []
        for member, one in self.cluster.members.items():
            lines += [f"{member}: {state.context.decode()} from {state.index} on" for state in one.read_states]
            one.read_states.clear()
        return "\n".join(lines)

    def on_transfer(self, case: datadriven.Case) -> str:
        """transfer <asked> <transferee>"""
        asked, transferee = case.words()
        self.cluster.node(int(asked)).transfer_leader(int(transferee))
        return ""

    def on_snapshot(self, case: datadriven.Case) -> str:
        """snapshot <member> [keep=n]: keep the state machine, forget the log but for n entries"""
        self.cluster.members[int(case.words()[0])].snapshot(keep=case.integer("keep", 0))
        return ""

    def on_unreachable(self, case: datadriven.Case) -> str:
        """unreachable <member> <other>"""
        member, other = case.words()
        self.cluster.node(int(member)).report_unreachable(int(other))
        return ""

    def on_configurations(self, case: datadriven.Case) -> str:
        return "\n".join(f"{member}: {describe_conf_state(one.node.conf_state())}" for member, one in self.cluster.members.items())

    def on_campaign(self, case: datadriven.Case) -> str:
        self.cluster.node(int(case.words()[0])).campaign()
        return ""

    def on_propose(self, case: datadriven.Case) -> str:
        """propose <member> <data>"""
        member, data = case.words()
        try:
            self.cluster.node(int(member)).propose(data.encode())
        except ProposalDroppedError as error:
            return f"dropped: {error}"
        return ""

    def on_tick(self, case: datadriven.Case) -> str:
        """tick <member> [times=n]"""
        for _ in range(case.integer("times", 1)):
            self.cluster.node(int(case.words()[0])).tick()
        return ""

    def on_ready(self, case: datadriven.Case) -> str:
        """Take a Ready: messages go out, entries wait at the disk."""
        member = int(case.words()[0])
        if not self.cluster.node(member).has_ready():
            return "nothing"
        ready = self.cluster.members[member].take_ready()
        self.cluster.post(ready.messages)
        return describe_ready(ready)

    def on_persist(self, case: datadriven.Case) -> str:
        ready = self.cluster.members[int(case.words()[0])].persist_one()
        self.cluster.post(ready.messages_after_append)
        return f"Ready {ready.number} is durable"

    def on_deliver(self, case: datadriven.Case) -> str:
        """deliver [to=n]: what is on its way now"""
        moved = self._take(case)
        for message in moved:
            self.cluster.deliver_one(message)
        return "\n".join(map(describe_message, moved))

    def on_deliver_twice(self, case: datadriven.Case) -> str:
        """deliver-twice [to=n]: each message is doubled, and the second ones come in reverse order"""
        moved = self._take(case)
        for message in (*moved, *reversed(moved)):
            self.cluster.deliver_one(message)
        return "\n".join(map(describe_message, moved))

    def _take(self, case: datadriven.Case) -> list[Message]:
        to = case.integers("to")
        taken = [message for message in self.cluster.network if not to or message.to in to]
        for message in taken:
            self.cluster.network.remove(message)
        return taken

    def on_drop(self, case: datadriven.Case) -> str:
        """drop [to=n]: what is on its way now"""
        return "\n".join(map(describe_message, self._take(case)))

    def on_work(self, case: datadriven.Case) -> str:
        """All that a member can do without hearing from others; what it says stays on its way."""
        before = len(self.cluster.network)
        self.cluster.work(int(case.words()[0]))
        return "\n".join(describe_message(message) for message in list(self.cluster.network)[before:])

    def on_cut(self, case: datadriven.Case) -> str:
        """cut from=n to=m: messages that way are lost"""
        self.cluster.blocked.add((case.integer("from"), case.integer("to")))
        return ""

    def on_isolate(self, case: datadriven.Case) -> str:
        self.cluster.isolate(int(case.words()[0]))
        return ""

    def on_heal(self, case: datadriven.Case) -> str:
        self.cluster.heal()
        return ""

    def on_crash(self, case: datadriven.Case) -> str:
        self.cluster.members[int(case.words()[0])].crash()
        return ""

    def on_stabilize(self, case: datadriven.Case) -> str:
        """Work and deliver until nothing is left; prints what is said."""
        lines: list[str] = []
        while True:
            did = [self.cluster.work(member) for member in self.cluster.members]
            lines += [describe_message(message) for message in self.cluster.network]
            if not self.cluster.deliver() and not any(did):
                return "\n".join(lines)

    def on_status(self, case: datadriven.Case) -> str:
        lines = []
        for member, one in self.cluster.members.items():
            lines.append(describe_status(one.node.status()))
            if one.node.status().role is Role.LEADER:
                progress = one.node.raft.tracker.progress
                lines += ["  " + describe_progress(other, progress[other]) for other in progress if other != member]
        return "\n".join(lines)

    def on_applied(self, case: datadriven.Case) -> str:
        return "\n".join(
            f"{member}: " + " ".join(data.decode() for data in self.cluster.applied_data(member)) for member in self.cluster.members
        )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, rewrite: bool) -> None:
    datadriven.run(script, Environment().handle, rewrite=rewrite)
