"""The same etcdctl commands against a real etcd and against our door, with what must differ made equal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.raft.codec import varint
from tests.storage.etcd_process import BINARIES, EtcdProcess
from tests.storage.etcdserver.door_fixture import running_door

COMMAND_SECONDS_MAX = 40.0
"""A command that takes so long hangs; the machine may be busy."""
QUIET_SECONDS = 0.4
"""Events that are there already come in one go; a machine so busy that they do not shows as a difference, not as a wrong pass."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command printed, as it is compared, and its exit status."""

    status: int
    output: str
    errors: str


@dataclass
class Side:
    """One of the two. ``names`` are what is known to differ (ids, addresses) and what stands for it; leases get theirs as they come."""

    target: str
    names: dict[str, str] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)

    async def run(self, arguments: Sequence[str], stdin: str | None = None) -> Outcome:
        process = await self.start(arguments)
        async with asyncio.timeout(COMMAND_SECONDS_MAX):
            output, errors = await process.communicate(None if stdin is None else stdin.encode())
        assert process.returncode is not None
        # protobuf's bytes are compared too, with the ids in them as they are encoded
        return Outcome(process.returncode, self.normalised(output.decode("latin-1")), self.normalised_errors(errors.decode()))

    async def run_until_quiet(self, arguments: Sequence[str], stdin: str | None, interrupt: bool) -> Outcome:
        process = await self.start(arguments)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        if stdin is not None:
            process.stdin.write(stdin.encode())
        output = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COMMAND_SECONDS_MAX):
                while True:
                    chunk = await asyncio.wait_for(process.stdout.read(65_536), QUIET_SECONDS if output else None)
                    if not chunk:
                        break
                    output += chunk
        if process.returncode is None:
            process.send_signal(signal.SIGINT if interrupt else signal.SIGKILL)
        rest, errors = await process.communicate()
        return Outcome(process.returncode or 0, self.normalised((output + rest).decode("latin-1")), self.normalised_errors(errors.decode()))

    async def start(self, arguments: Sequence[str]) -> asyncio.subprocess.Process:
        real = {stands: name for name, stands in (self.names | self.leases).items()}
        filled = [re.sub(r"<\w+>", lambda found: real.get(found[0], found[0]), argument) for argument in arguments]
        return await asyncio.create_subprocess_exec(
            str(BINARIES / "etcdctl"), "--endpoints", self.target, "--command-timeout", "20s", "--dial-timeout", "20s", *filled,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={"ETCDCTL_API": "3"},
        )  # fmt: skip

    def normalised(self, text: str) -> str:
        for lease in re.findall(r"lease ([0-9a-f]{14,16}) granted", text):
            self._learn_lease(int(lease, 16))
        for number in re.findall(r'"ID":(\d+),"TTL"', text):
            self._learn_lease(int(number))
        for name, stands in (self.names | self.leases).items():
            text = re.sub(rf"(?<![0-9a-fA-F]){re.escape(name)}(?![0-9a-fA-F])", stands, text)
        for pattern, replacement in PATTERNS:
            text = re.sub(pattern, replacement, text)
        # etcd tells a lease's keys in the order of a Go map, another one each time
        text = re.sub(r"(attached keys\(\[)([^]]*)", lambda found: found[1] + " ".join(sorted(found[2].split())), text)
        return re.sub(r'("keys":\[)([^]{]*)', lambda found: found[1] + ",".join(sorted(found[2].split(","))), text)

    def _learn_lease(self, lease: int) -> None:
        if lease > 1 << 32 and f"{lease:x}" not in self.leases:
            number = len(set(self.leases.values())) // 2 + 1
            stands = f"<lease{number}>"
            self.leases |= {f"{lease:016x}": stands, f"{lease:x}": stands, str(lease): f"<leaseNumber{number}>"}

    async def learn(self) -> None:
        """The ids and addresses of this side."""
        self.names[self.target] = "<target>"
        process = await self.start(("member", "list", "-w", "json"))
        output, _ = await process.communicate()
        answer = json.loads(output)
        for kind in ("cluster_id", "member_id"):
            number = answer["header"][kind]
            self.names |= {str(number): f"<{kind}Number>", f"{number:x}": f"<{kind}>", varint(number).decode("latin-1"): f"<{kind}Bytes>"}
        self.names[answer["members"][0]["peerURLs"][0]] = "<peerURL>"

    def normalised_errors(self, text: str) -> str:
        """Without the client's own log, whose lines are JSON."""
        kept = [line for line in text.splitlines() if not line.startswith("{")]
        return self.normalised("\n".join(kept))


PATTERNS = (
    (r'("?(?:raft_?term|RaftTerm|raftTerm)"?\s*:\s*)\d+', r"\1<term>"),
    (r'("?(?:raft_?index|RaftIndex|raftIndex|raftAppliedIndex|RaftAppliedIndex)"?\s*:\s*)\d+', r"\1<index>"),
    (r'("?(?:dbSize|DBSize|dbSizeInUse|DBSizeInUse)"?\s*:\s*)\d+', r"\1<size>"),
    (r'("?[vV]ersion"?\s*:\s*)"\d+\.\d+\.\d+"', r"\1<version>"),
    (r"took = [\d.]+\S+", "took = <time>"),
    (r"remaining\(\d+s\)", "remaining(<seconds>)"),
    (r'("(?:ttl|TTL)":)5[0-9]\b', r"\1<seconds>"),
    (r'("took":)"[^"]+"', r"\1<time>"),
    (r'"TTL" : \d+', '"TTL" : <seconds>'),
    (r", \d\.\d\.\d, \d+ kB, (\w+), (\w+), \d+, \d+, \d+,", r", <version>, <size>, \1, \2, <indexes>,"),
    (r"(<member_idBytes>\x18[\x80-\xff]*[\x00-\x7f])\x20.", r"\1 <term>"),
    (r"/[0-9a-f]{14,16}\b", "/<anyLease>"),
    (r"[-+]{9,}", "<line>"),
    (r"Member +[0-9a-f]{12,16} added", "Member <new> added"),
    (r'ETCD_INITIAL_CLUSTER="[^"]*"', "<members in the order of their ids>"),
    (r"(Member|cluster) +<", r"\1 <"),
    (r" +\|", " |"),
    (r"\| +", "| "),
    (r"\| \d\.\d\.\d \| \d+ kB \| (\w+ \| \w+) \| \d+ \| \d+ \| \d+ \|", r"| <version> | <size> | \1 | <indexes> |"),
    (r"(?s)^\n.\x08<cluster_idBytes>", "<header length><cluster_idBytes>"),
)
"""What no two runs have equal."""


def shown(outcome: Outcome) -> str:
    return f"status {outcome.status}\n{outcome.output[:3000]}{outcome.errors[:3000]}"


class Pair:
    """Both sides, side by side. ``differences`` are told together at the end, since one seldom comes alone."""

    def __init__(self, etcd: Side, ours: Side) -> None:
        self.differences: list[str] = []
        self.etcd = etcd
        self.ours = ours

    async def same(self, command: str | Sequence[str], stdin: str | None = None) -> Outcome:
        """Run it on both, note it if the outcomes differ, and answer etcd's. A command in one string is split at spaces; ``''`` in it is an
        empty argument."""
        arguments = ["" if part == "''" else part for part in command.split(" ")] if isinstance(command, str) else list(command)
        theirs, ours = await asyncio.gather(self.etcd.run(arguments, stdin), self.ours.run(arguments, stdin))
        self._compare(arguments, stdin, theirs, ours)
        return theirs

    def _compare(self, arguments: Sequence[str], stdin: str | None, theirs: Outcome, ours: Outcome) -> None:
        if ours != theirs:
            said = " ".join(arguments)[:200]
            self.differences.append(f"etcdctl {said} {(stdin or '')[:200]!r}\n--- etcd: {shown(theirs)}\n--- ours: {shown(ours)}")

    async def same_until_quiet(self, command: str, stdin: str | None = None, *, interrupt: bool = False) -> None:
        """The same for a command that would go on: it is ended once it has said nothing for ``QUIET_SECONDS``, as by Ctrl-C or hard."""
        arguments = ["" if part == "''" else part for part in command.split(" ")]
        theirs, ours = await asyncio.gather(*(side.run_until_quiet(arguments, stdin, interrupt) for side in (self.etcd, self.ours)))
        self._compare(arguments, stdin, theirs, ours)

    async def same_all(self, script: str) -> None:
        """``same`` for each line that is neither empty nor a comment."""
        for line in script.splitlines():
            if line.strip() and not line.startswith("#"):
                await self.same(line.strip())


@contextlib.asynccontextmanager
async def both(directory: Path, *, quota_backend_bytes: int = 2 * 1024**3) -> AsyncIterator[Pair]:
    with EtcdProcess(directory / "etcd", "--quota-backend-bytes", str(quota_backend_bytes)) as etcd:
        async with running_door(directory / "ours", quota_backend_bytes=quota_backend_bytes) as door:
            theirs = Side(etcd.target)
            ours = Side(door.target)
            await asyncio.gather(theirs.learn(), ours.learn())
            pair = Pair(theirs, ours)
            yield pair
            assert not pair.differences, "\n\n".join(pair.differences)
