"""``Step``: one request; and the bodies that the scripts of the plugins are written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MERGE = "application/merge-patch+json"
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``user`` and ``groups``: who the administrator speaks for; "" for the administrator. Names are unique within a group."""

    name: str
    method: str
    path: str
    body: Any = None
    user: str = ""
    groups: tuple[str, ...] = ()
    content_type: str = ""

    def headers(self) -> list[tuple[str, str]]:
        found = [("Impersonate-User", self.user)] if self.user else []
        return found + [("Impersonate-Group", group) for group in self.groups]


class Script:
    """Writes of one namespace; ``steps`` gathers them in order."""

    def __init__(self, topic: str, namespace: str = "") -> None:
        self.topic = topic
        self.namespace = namespace
        self.steps: list[Step] = []

    def path(self, resource: str, name: str = "", *, group: str = "", version: str = "v1", sub: str = "", cluster: bool = False) -> str:
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        inside = f"/namespaces/{self.namespace}" if self.namespace and not cluster else ""
        return f"{root}{inside}/{resource}{'/' + name if name else ''}{'/' + sub if sub else ''}"

    def add(self, told: str, method: str, path: str, body: Any = None, **more: Any) -> None:
        self.steps.append(Step(name=f"{self.topic}: {told}", method=method, path=path, body=body, **more))

    def create(self, told: str, resource: str, body: Body, /, *, query: str = "", **more: Any) -> None:
        who = {key: more.pop(key) for key in ("user", "groups") if key in more}
        self.add(told, "POST", self.path(resource, **more) + query, body, **who)

    def patch(self, told: str, resource: str, name: str, body: Any, /, *, query: str = "", **more: Any) -> None:
        who = {key: more.pop(key) for key in ("user", "groups") if key in more}
        self.add(told, "PATCH", self.path(resource, name, **more) + query, body, content_type=MERGE, **who)

    def get(self, told: str, resource: str, name: str, /, **more: Any) -> None:
        self.add(told, "GET", self.path(resource, name, **more))

    def delete(self, told: str, resource: str, name: str, /, *, query: str = "", body: Any = None, **more: Any) -> None:
        who = {key: more.pop(key) for key in ("user", "groups") if key in more}
        self.add(told, "DELETE", self.path(resource, name, **more) + query, body, **who)

    def open(self, *accounts: str, **metadata: Any) -> None:
        """The namespace, with accounts."""
        self.add("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace, **metadata}})
        for account in accounts or ("default",):
            self.create(f"account {account}", "serviceaccounts", {"metadata": {"name": account}})


def container(name: str = "c", requests: Body | None = None, limits: Body | None = None, **more: Any) -> Body:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"name": name, "image": "i", **({"resources": resources} if resources else {}), **more}


def pod(name: str, *containers: Body, metadata: Body | None = None, **spec: Any) -> Body:
    """Without a token mounted, unless it says otherwise."""
    named = {"generateName": name} if name.endswith("-") else {"name": name}
    return {
        "metadata": {**named, **(metadata or {})},
        "spec": {"automountServiceAccountToken": False, "containers": list(containers) or [container()], **spec},
    }


def claim(name: str, size: str = "1Gi", metadata: Body | None = None, **spec: Any) -> Body:
    resources = {"resources": {"requests": {"storage": size}}} if size else {}
    return {"metadata": {"name": name, **(metadata or {})}, "spec": {"accessModes": ["ReadWriteOnce"], **resources, **spec}}


def flattened(scripts: Iterator[Script]) -> list[Step]:
    found = [step for script in scripts for step in script.steps]
    names = [step.name for step in found]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    return found
