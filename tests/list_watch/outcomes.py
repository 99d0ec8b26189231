"""Runs the cases against one server and brings the outcomes to one form."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.list_watch import cases
from tests.list_watch.cases import Case

#: method, path, query, accept, body -> status, lines of the body
Ask = Callable[[str, str, dict[str, str], str, Any], Awaitable[tuple[int, list[Any]]]]


@dataclass(frozen=True, slots=True)
class Server:
    """``group`` is the path of the group and version, ``resource`` the collection's name in the namespace ``namespace``."""

    ask: Ask
    group: str
    resource: str
    kind: str
    namespace: str = "default"
    #: Requests under way at once; most of them are watches, which wait for their end.
    at_once: int = 16

    def path(self, case_path: str = "") -> str:
        below_watch = case_path.startswith("watch:")
        rest = case_path.removeprefix("watch:")
        return f"{self.group}{'/watch' if below_watch else ''}/namespaces/{self.namespace}/{self.resource}{rest}"


@dataclass(slots=True)
class World:
    """a, b, c created (r1, r2, r3), b changed (r4), c deleted (r5), d created (r6); a and d are of tier web, b of tier db, c of none."""

    server: Server
    revisions: dict[str, int] = field(default_factory=dict)
    token: str = ""

    async def make(self) -> None:
        await self._write("r1", "POST", "", "a", {"tier": "web"})
        await self._write("r2", "POST", "", "b", {"tier": "web"})
        await self._write("r3", "POST", "", "c", {})
        await self._write("r4", "PUT", "/b", "b", {"tier": "db"})
        await self._ask("DELETE", "/c")
        await self._write("r6", "POST", "", "d", {"tier": "web"})
        page = await self._ask("GET", "", {"limit": "1"})
        self.token = page["metadata"]["continue"]

    async def clear(self) -> None:
        await self._ask("DELETE", "")
        self.revisions.clear()

    async def _write(self, name: str, method: str, path: str, object_name: str, labels: dict[str, str]) -> None:
        metadata: dict[str, Any] = {"name": object_name, "labels": labels}
        if method == "PUT":
            metadata["resourceVersion"] = str(self.revisions["r2"])
        group = self.server.group.removeprefix("/apis/").removeprefix("/api/")
        written = await self._ask(method, path, {}, {"apiVersion": group, "kind": self.server.kind, "metadata": metadata})
        self.revisions[name] = int(written["metadata"]["resourceVersion"])

    async def _ask(self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None) -> Any:
        status, lines = await self.server.ask(method, self.server.path(path), query or {}, "application/json", body)
        assert status in (200, 201), (method, path, lines)
        return lines[0]

    def fill(self, text: str) -> str:
        if text == "{token}":
            return self.token
        return re.sub(r"\{(r\d)\}", lambda found: str(self.revisions[found[1]]), text)

    # -- one form of what came

    def shown(self, revision: Any) -> str:
        """The name of a write's revision; ``newest`` for the last and what is later, since others write to the store as well."""
        if revision in (None, ""):
            return "none"
        number = int(revision)
        if number >= self.revisions["r6"]:
            return "newest"
        return next((name for name, known in self.revisions.items() if known == number), "between")

    def text(self, message: str) -> str:
        for name, number in self.revisions.items():
            message = re.sub(rf"(version: |in the precondition \(|in record \(){number}\b", rf"\g<1>{name}", message)
        message = re.sub(r"current: \w+", "current: N", message)
        message = re.sub(r"\(\d+\)", "(N)", message)
        message = message.replace(self.server.resource + "." + self.server.group.split("/")[2], "things")
        return message.replace(self.server.resource, "things").replace(self.server.kind, "Thing").replace(self.server.namespace, "ns")

    def object(self, obj: dict[str, Any]) -> Any:
        metadata = obj.get("metadata") or {}
        kind = obj.get("kind")
        if kind == "Status":
            found: dict[str, Any] = {"code": obj.get("code"), "reason": obj.get("reason", ""), "message": self.text(obj.get("message", ""))}
            details = obj.get("details") or {}
            if details.get("causes"):
                found["causes"] = [
                    [cause.get("reason"), cause.get("field", ""), self.text(cause["message"])] for cause in details["causes"]
                ]
            if metadata.get("continue"):
                found["continue"] = True
            if details.get("retryAfterSeconds"):
                found["retryAfterSeconds"] = details["retryAfterSeconds"]
            return found
        if kind == "Table":
            rows = [f"{row['cells'][:1]} {self.row_object(row.get('object'))}" for row in obj["rows"]]
            return {
                "table": obj["apiVersion"],
                "columns": bool(obj.get("columnDefinitions")),
                "metadata": self.metadata(metadata),
                "rows": rows,
            }
        name = f"{self.text(kind)} " if kind in ("PartialObjectMetadata",) else ""
        ends = " initial-events-end" if (metadata.get("annotations") or {}).get("k8s.io/initial-events-end") == "true" else ""
        return f"{name}{metadata.get('name', '')}@{self.shown(metadata.get('resourceVersion'))}{ends}"

    def row_object(self, obj: Any) -> str:
        return (
            "null"
            if obj is None
            else f"{self.text(obj.get('kind', ''))} {obj.get('apiVersion') if obj.get('kind') == 'PartialObjectMetadata' else ''}"
        )

    def metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Of a list."""
        found: dict[str, Any] = {"resourceVersion": self.shown(metadata.get("resourceVersion"))}
        if metadata.get("continue"):
            found["continue"] = True
        if "remainingItemCount" in metadata:
            found["remaining"] = metadata["remainingItemCount"]
        return found

    def outcome(self, status: int, lines: list[Any]) -> Any:
        if status != 200:
            return {"status": status, **(self.object(lines[0]) if lines else {})}
        if len(lines) == 1 and "items" in lines[0]:
            kind = self.text(lines[0]["kind"])
            return {"kind": kind, **self.metadata(lines[0]["metadata"]), "items": [self.object(item) for item in lines[0]["items"]]}
        if lines and lines[0].keys() >= {"type", "object"}:
            return {"events": [[line["type"], self.object(line["object"])] for line in lines]}
        return self.object(lines[0]) if lines else {"events": []}


async def run(world: World, chosen: Sequence[Case]) -> dict[str, Any]:
    """Outcomes by the cases' names."""
    found: dict[str, Any] = {}
    places = asyncio.Semaphore(world.server.at_once)
    different = {case.name: case for case in chosen}

    async def one(case: Case) -> None:
        query = {key: world.fill(value) for key, value in case.query.items()}
        async with places:
            status, lines = await world.server.ask(case.method, world.server.path(case.path), query, case.accept, None)
        found[case.name] = world.outcome(status, lines)

    async with asyncio.TaskGroup() as group:
        for case in different.values():
            group.create_task(one(case))
    return {name: found[name] for name in different}


async def until_served(server: Server) -> None:
    """A definition takes a moment to be established."""
    for _ in range(200):
        status, _ = await server.ask("GET", server.path(), {}, "application/json", None)
        if status == 200:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the resource does not come")


async def everything(server: Server) -> dict[str, dict[str, Any]]:
    world = World(server)
    await world.clear()
    await world.make()
    found = {
        name: await run(world, made())
        for name, made in (("list", cases.lists), ("get", cases.gets), ("forms", cases.forms), ("watch", cases.watches))
    }
    found["delete"] = {}
    for case in cases.deletions():
        await world.clear()
        await world.make()
        outcome = await run(world, [case])
        status, lines = await server.ask("GET", server.path(), {}, "application/json", None)
        found["delete"][case.name] = {"answer": outcome[case.name], "left": [item["metadata"]["name"] for item in lines[0]["items"]]}
        assert status == 200
    await world.clear()
    return found


def parsed(body: bytes) -> list[Any]:
    """A body's JSON values: one, or one a line; what is no JSON (the text of a path that nobody serves) as a text."""
    try:
        return [json.loads(body)] if body.strip() else []
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in body.splitlines() if line.strip()]
    except ValueError:
        return [body.decode("utf-8", "replace")]
