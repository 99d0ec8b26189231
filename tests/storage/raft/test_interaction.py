"""Scripts in ``testdata``: what members say to each other, step by step. Commands are the methods of ``Environment``."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.raft.describe import describe_message, describe_progress, describe_ready, describe_status
from storage.raft.rawnode import ProposalDroppedError, Role
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
        """members 3 [pre-vote] [check-quorum]"""
        words = case.words()
        self.cluster = Cluster(int(words[0]), pre_vote="pre-vote" in words, check_quorum="check-quorum" in words)
        return ""

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
        lines = [describe_message(message) for message in self.cluster.network]
        self.cluster.deliver()
        return "\n".join(lines)

    def on_drop(self, case: datadriven.Case) -> str:
        lines = [describe_message(message) for message in self.cluster.network]
        self.cluster.network.clear()
        return "\n".join(lines)

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
