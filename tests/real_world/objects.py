"""What is done with sample objects: created strictly, read, listed by their columns and in each served version, watched, deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.apiserver.api import Api
from tests.real_world.checks import CRDS, TABLE, Loader, established

#: some projects keep wrong objects for their tests, with what the message of a release has to contain
EXPECTED = "_err"
#: refusals of one project that are printed
REFUSALS_MAX = 12


@dataclass(slots=True)
class Project:
    """``refused``: by the schema, its rules, or for a field that is not in it, as the server told it."""

    name: str
    kinds: set[str] = field(default_factory=set)
    accepted: int = 0
    refused_as_expected: int = 0
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """``versions``: those that are served, of one definition."""

    group: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]

    def path(self, version: str, namespace: str = "") -> str:
        where = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"/apis/{self.group}/{version}{where}/{self.plural}"


def objects_in(directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(directory.rglob("*.y*ml")):
        for document in yaml.load_all(path.read_text(), Loader):
            if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
                yield path, document


async def install(api: Api, definitions: list[dict[str, Any]]) -> dict[tuple[str, str], Kind]:
    """All definitions; by group and kind."""
    found = {}
    for definition in definitions:
        spec = {**definition["spec"], "conversion": {"strategy": "None"}}  # nobody would answer a webhook
        metadata = {name: definition["metadata"][name] for name in ("name", "annotations") if definition["metadata"].get(name)}
        await api.created(CRDS, {"metadata": metadata, "spec": spec})
        versions = tuple(version["name"] for version in spec["versions"] if version.get("served"))
        kind = Kind(spec["group"], spec["names"]["plural"], spec["scope"] == "Namespaced", versions)
        found[(spec["group"], spec["names"]["kind"])] = kind
    for definition in definitions:
        assert await established(api, definition["metadata"]["name"]), definition["metadata"]["name"]
    return found


async def check(api: Api, kinds: dict[tuple[str, str], Kind], path: Path, obj: dict[str, Any], project: Project) -> None:
    """One object; of an unknown kind nothing is done."""
    group, _, version = str(obj.get("apiVersion")).partition("/")
    kind = kinds.get((group, str(obj.get("kind"))))
    if kind is None or version not in kind.versions:
        return
    project.kinds.add(f"{obj['kind']}.{group}")
    body = json.loads(json.dumps(obj, default=str))
    metadata = body["metadata"]
    body["metadata"] = {name: metadata[name] for name in ("name", "generateName", "labels", "annotations") if metadata.get(name)}
    body.pop("status", None)
    expected = body.pop(EXPECTED, None)
    base = kind.path(version, "ns-a")
    made = await api.post(base, body, query={"fieldValidation": "Strict"})
    if made.status in (400, 422):
        if expected is None:
            project.refused.append(f"{path.name}: {made.message[:300]}")
        elif str(expected) in made.message:
            project.refused_as_expected += 1
        else:
            project.refused.append(f"{path.name}: not by {str(expected)!r}, but: {made.message[:700]}")
        return
    if expected is not None:
        project.problems.append(f"{path.name}: not refused, but expected was {expected!r}")
    if made.status != 201:
        project.problems.append(f"{path.name}: create: {made.status} {made.body[:300]!r}")
        return
    project.accepted += 1
    name = made.json["metadata"]["name"]
    for other in kind.versions:
        where = kind.path(other, "ns-a")
        read = await api.get(f"{where}/{name}")
        listed = await api.get(where, headers={"accept": TABLE})
        if read.status != 200 or read.json["apiVersion"] != f"{group}/{other}" or listed.status != 200 or len(listed.json["rows"]) != 1:
            project.problems.append(f"{path.name}: in {other}: {read.status} {listed.status} {listed.body[:300]!r}")
    initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(base, None, **initial) as watch:
        events = await watch.take(2)
    if [event["type"] for event in events] != ["ADDED", "BOOKMARK"] or events[0]["object"] != made.json:
        project.problems.append(f"{path.name}: watch: {str(events)[:300]}")
    gone = await api.delete(f"{base}/{name}")
    if gone.status != 200:
        project.problems.append(f"{path.name}: delete: {gone.status} {gone.body[:300]!r}")
    for finalizer in made.json["metadata"].get("finalizers", ()):
        project.problems.append(f"{path.name}: a finalizer came from nowhere: {finalizer}")


async def run(api: Api, definitions: list[dict[str, Any]], directory: Path) -> list[Project]:
    """``directory`` has a directory for each project."""
    kinds = await install(api, definitions)
    projects: list[Project] = []
    for path, obj in objects_in(directory):
        name = path.relative_to(directory).parts[0]
        if not projects or projects[-1].name != name:
            projects.append(Project(name))
        await check(api, kinds, path, obj, projects[-1])
    return projects


def table(projects: list[Project]) -> str:
    lines = [f"{'project':20} {'kinds':>6} {'accepted':>9} {'refused, as expected':>21} {'refused':>8} {'problems':>9}"]
    for project in projects:
        counts = (project.refused_as_expected, len(project.refused), len(project.problems))
        lines.append(f"{project.name:20} {len(project.kinds):6} {project.accepted:9} {counts[0]:21} {counts[1]:8} {counts[2]:9}")
        lines += [f"    PROBLEM {problem}" for problem in project.problems]
        same = Counter(project.refused)
        lines += [f"    refused: {text}" for text in list(same)[:REFUSALS_MAX]]
    return "\n".join(lines)
