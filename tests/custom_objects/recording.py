"""What a real server answered to some hundred sequences of requests, kept as a file, and the same asked of this server in process."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.apiserver.api import Answer as ApiAnswer
from tests.apiserver.api import Api
from tests.custom_objects.asking import Compared, Form, compare, define, form, is_tight, tighten
from tests.custom_objects.definitions import GROUP, KINDS, MARKER, Kind, kind_to_tighten, random_kind
from tests.custom_objects.requests import Requests
from tests.differential_writes.client import Answer, Step, differences

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RECORDED = Path(__file__).parent / "recorded.json.gz"
#: sequences about each kind made by hand, and kinds with random schemas, with one sequence each
SEQUENCES_OF_A_KIND = 14
RANDOM_KINDS = 40
#: definitions that become strict
RATCHETS = 20
STEPS = 14
#: requests until a definition is served
TURNS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """``becomes``: what the definition becomes before the step ``becomes_at``."""

    seed: int
    kind: Kind
    steps: list[Step]
    becomes: Kind | None = None
    becomes_at: int = 0


def _sequences() -> Iterator[Sequence]:
    known = [(position * 1000 + i, kind) for position, kind in enumerate(KINDS) for i in range(SEQUENCES_OF_A_KIND)]
    known += [(seed, random_kind(seed)) for seed in range(100_000, 100_000 + RANDOM_KINDS)]
    for seed, kind in known:
        yield Sequence(seed=seed, kind=kind, steps=Requests(random.Random(seed), kind, f"r-{seed}").steps(STEPS))
    for seed in range(200_000, 200_000 + RATCHETS):
        loose, tight = kind_to_tighten(seed)
        requests = Requests(random.Random(seed), tight, f"r-{seed}")
        requests.values.wrong = 0.08
        before = [requests.create(), requests.create(), requests.status()]
        requests.values.wrong = 0.01
        look = Step(method="GET", path=f"{tight.path()}/r-{seed}")
        yield Sequence(seed=seed, kind=loose, steps=[*before, look, *requests.updates(STEPS)], becomes=tight, becomes_at=len(before))


def record(ours: Compared, theirs: Compared) -> int:
    """A sequence ends where the servers differ: what is left are answers that both gave."""
    found: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for sequence in _sequences():
        kind = sequence.kind
        if any(define(server, kind) != 201 for server in (ours, theirs)):
            continue
        definitions[kind.plural] = kind.definition()
        for server in (ours, theirs):
            server.begin("default", make=False)
        steps: list[dict[str, Any]] = []
        for position, step in enumerate(sequence.steps):
            if sequence.becomes is not None and position == sequence.becomes_at:
                if not tighten(ours, sequence.becomes) or not tighten(theirs, sequence.becomes):
                    break
                steps.append({"becomes": sequence.becomes.definition()})
            if not step.type or step.method in ("HEAD", "OPTIONS"):
                continue
            answers: list[Form] = []
            if lines := compare(step, ours, theirs, answers):
                print(f"-- {sequence.seed} {step.method} {step.path} {lines[0][:200]}")
                break
            steps.append({"step": {name: value for name, value in asdict(step).items() if value}, "answers": answers})
        found.append({"plural": kind.plural, "seed": sequence.seed, "steps": steps})
    with RECORDED.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps({"definitions": definitions, "sequences": found}, sort_keys=True, separators=(",", ":")).encode())
    print(f"{sum(len(one['steps']) for one in found)} answers, {RECORDED.stat().st_size} bytes")
    return 0


async def replay(api: Api) -> tuple[int, list[str]]:
    """How many steps were asked, and where the answer is none of those that were recorded."""
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    for body in recorded["definitions"].values():
        await api.created(DEFINITIONS, body)
    for body in recorded["definitions"].values():
        for version in body["spec"]["versions"]:
            await _until(api, "GET", _path(body, version["name"]), None, lambda answer: answer.status == 200)
    count, differing = 0, []
    for one in recorded["sequences"]:
        server = Compared("", "")
        server.begin("default", make=False)
        for position, said in enumerate(one["steps"]):
            if "becomes" in said:
                await _become(api, said["becomes"])
                continue
            step = Step(**said["step"])
            found = form(await _asked(api, server, step))
            count += 1
            if found not in said["answers"]:
                where = f"{one['plural']} {one['seed']} #{position} {step.method} {step.path}?{step.query} {step.body}"
                differing.append("\n  ".join((where, *differences(found, said["answers"][0]))))
                break
    return count, differing


def _path(definition: dict[str, Any], version: str) -> str:
    spec = definition["spec"]
    namespace = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version}/{namespace}{spec['names']['plural']}"


async def _become(api: Api, body: dict[str, Any]) -> None:
    """The definition is this one, and in use."""
    path = f"{DEFINITIONS}/{body['metadata']['name']}"
    there = (await api.get(path)).json
    there["spec"]["versions"] = body["spec"]["versions"]
    answer = await api.put(path, there)
    assert answer.status == 200, answer.body
    sent = {"apiVersion": f"{GROUP}/v1", "kind": body["spec"]["names"]["kind"], "metadata": {"name": "probe"}, MARKER: "loose"}
    await _until(api, "POST", _path(body, "v1"), sent, lambda answer: is_tight(answer.json))


async def _until(api: Api, method: str, path: str, body: Any, holds: Callable[[ApiAnswer], bool]) -> None:
    for _ in range(TURNS_MAX):
        if holds(await api.request(method, path, body, query={"dryRun": "All"} if body else None)):
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{method} {path} never answers as it should")


async def _asked(api: Api, server: Compared, step: Step) -> Answer:
    path, body = server.filled(step)
    path, _, query = path.partition("?")
    answer = await api.request(
        step.method,
        path,
        None if body is None else body.encode("utf-8", "surrogatepass"),
        query=query,
        content_type="" if body is None else step.type,
        headers={"accept": step.accept, "user-agent": step.agent},
    )
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = answer.body.decode(errors="replace")
    # as the client of the recording reads headers
    warnings = [text.encode().decode("latin-1") for text in answer.headers.get("warning", [])]
    return server.answer(answer.status, found, warnings)
