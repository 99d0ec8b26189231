"""Every method of etcd's v3 gRPC API: what it takes, what it answers, and which side streams."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from storage.etcdpb.packages import Package
from storage.etcdpb.table import FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """``path`` is what gRPC sends as the HTTP/2 path: ``/package.Service/Method``."""

    path: str
    service: str
    name: str
    request_class: Any
    response_class: Any
    client_streaming: bool
    server_streaming: bool


@functools.cache
def methods() -> dict[str, Method]:
    """All methods by path, in the order of the table."""
    found: dict[str, Method] = {}
    for file in FILES:
        package = Package(file.package)
        for service in file.services:
            for method in service.methods:
                full_name = f"{file.package}.{service.name}"
                path = f"/{full_name}/{method.name}"
                found[path] = Method(
                    path=path,
                    service=full_name,
                    name=method.name,
                    request_class=getattr(package, method.request),
                    response_class=getattr(package, method.response),
                    client_streaming=method.client_streaming,
                    server_streaming=method.server_streaming,
                )
    return found


def service_names() -> tuple[str, ...]:
    """``etcdserverpb.KV``, ``etcdserverpb.Watch``, …"""
    return tuple(f"{file.package}.{service.name}" for file in FILES for service in file.services)
