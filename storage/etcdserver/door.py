"""A member's door, put together: all services over one member, behind one client port."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from storage import api, errors, metric_families
from storage.etcdserver import metrics, rpctypes
from storage.etcdserver.auth import AuthService
from storage.etcdserver.client_port import ClientPort
from storage.etcdserver.cluster import ClusterService
from storage.etcdserver.concurrency import ConcurrencyService
from storage.etcdserver.grpc_server import BoundMethod, GrpcServer
from storage.etcdserver.health import HealthService
from storage.etcdserver.kv import KvService
from storage.etcdserver.lease import LeaseService
from storage.etcdserver.maintenance import MaintenanceService
from storage.etcdserver.pages import TEXT, Page
from storage.etcdserver.reflection import ReflectionService
from storage.etcdserver.watch import WatchService
from storage.metric_families import Family

REQUEST_OVERHEAD_BYTES: Final = 512 * 1024
"""What a gRPC message may be larger than the largest request that the store takes (etcd's)."""
NO_LEADER_CHECKS_MAX: Final = 3
"""Election timeouts without a leader after which the streams of clients that require one end (etcd's)."""
HEALTH_SECONDS_MAX: Final = 5.0

CLIENT_VERSIONS_MAX: Final = 100
"""Different versions that clients may say they have; more are not counted."""

REQUIRE_LEADER: Final = "hasleader"
CLIENT_API_VERSION: Final = "client-api-version"
_SUPPORTED_BY_LEARNERS: Final = frozenset(("/etcdserverpb.Maintenance/Status", "/etcdserverpb.Maintenance/Snapshot"))


class DoorMember(api.KV, Protocol):
    """What the door needs of a member; one that is no ``Cluster`` or no ``Maintenance`` answers their calls with UNIMPLEMENTED."""

    further_metrics: list[Callable[[], list[Family]]]

    def header(self) -> api.ResponseHeader: ...

    def has_leader(self) -> bool: ...

    def is_learner(self) -> bool: ...

    def metric_families(self) -> list[Family]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorConfig:
    """``max_concurrent_streams``: of one connection."""

    max_request_bytes: int
    quota_backend_bytes: int
    election_timeout_seconds: float
    max_concurrent_streams: int = 100_000
    watch_progress_notify_seconds: float = 600.0


class Door:
    """``port.start`` for each listener, then ``run`` until it is cancelled, then ``port.stop``."""

    def __init__(self, member: DoorMember, config: DoorConfig, *, rng: random.Random | None = None) -> None:
        self._member = member
        self._config = config
        message_bytes_max = config.max_request_bytes + REQUEST_OVERHEAD_BYTES
        self.server = GrpcServer(message_bytes_max=message_bytes_max, admit=self._admit, page_of=self.page)
        self.watches = WatchService(
            member,
            member.header,
            progress_seconds=config.watch_progress_notify_seconds,
            fragment_bytes_max=message_bytes_max,
            rng=rng or random.Random(),
        )
        for service in (
            KvService(member),
            self.watches,
            LeaseService(member, member.header),
            ClusterService(member),
            MaintenanceService(member, quota_bytes=config.quota_backend_bytes),
            ConcurrencyService(member),
            AuthService(member.header),
            HealthService(),
            ReflectionService(),
        ):
            self.server.add(service.handlers())
        self._process_metrics = metrics.ProcessMetrics()
        self._health_success = 0
        self._health_failures = 0
        member.further_metrics.append(self.metric_families)
        self.port = ClientPort(self.server, self.page, max_concurrent_streams=config.max_concurrent_streams)

    async def run(self) -> None:
        """End the streams that require a leader once there has been none for a while. Runs until it is cancelled."""
        checks = 0
        while True:
            await asyncio.sleep(self._config.election_timeout_seconds)
            checks = 0 if self._member.has_leader() else checks + 1
            if checks >= NO_LEADER_CHECKS_MAX:
                for call in list(self.server.calls):
                    if _is_stream(call.bound) and call.metadata.get(REQUIRE_LEADER) == "true":
                        call.end(rpctypes.no_leader())

    def _admit(self, bound: BoundMethod, metadata: Mapping[str, str], request: Any) -> None:
        """See ``grpc_server.Admit``: etcd's interceptors."""
        if self._member.is_learner() and not _is_supported_by_learners(bound, request):
            raise rpctypes.not_supported_for_learner()
        counts = self.server.stats.client_requests
        key = ("stream" if _is_stream(bound) else "unary", metadata.get(CLIENT_API_VERSION, "unknown"))
        if key in counts or len(counts) < CLIENT_VERSIONS_MAX:
            counts[key] = counts.get(key, 0) + 1
        if metadata.get(REQUIRE_LEADER) == "true" and not self._member.has_leader():
            raise rpctypes.no_leader()

    def metric_families(self) -> list[Family]:
        """What the port counts; the member tells it with its own."""
        return metrics.families(
            self.server.stats,
            watch_streams=self.watches.stream_count,
            health_success=self._health_success,
            health_failures=self._health_failures,
        )

    async def page(self, path: str) -> Page:
        """etcd's HTTP pages."""
        path, _, query = path.partition("?")
        if path == "/metrics":
            of_process = await asyncio.to_thread(self._process_metrics.text)
            return Page(200, metric_families.CONTENT_TYPE, metric_families.text(self._member.metric_families()).encode() + of_process)
        if path == "/version":
            version = (await self._member.status()).version
            return _json({"etcdserver": version, "etcdcluster": ".".join(version.split(".")[:2]) + ".0"})
        if path == "/health":
            return await self._health(serializable="serializable=true" in query)
        if path in ("/livez", "/readyz"):
            page = await self._health(serializable=path == "/livez")
            return Page(page.status, TEXT, b"ok\n" if page.status == 200 else page.body)
        return Page(404, TEXT, b"404 page not found\n")

    async def _health(self, *, serializable: bool) -> Page:
        """Healthy: no alarm, a leader, and a read that is answered in time."""
        reason = ""
        try:
            alarms = (await self._member.status()).alarms
            if alarms:
                reason = f"ALARM {','.join(alarms)}"
            elif not serializable and not self._member.has_leader():
                reason = "RAFT NO LEADER"
            else:
                read = api.RangeRequest(key=b"health", limit=1, serializable=serializable)
                await asyncio.wait_for(self._member.range(read), HEALTH_SECONDS_MAX)
        except (errors.StoreError, TimeoutError) as error:
            reason = f"RANGE ERROR:{error}"
        if reason:
            self._health_failures += 1
        else:
            self._health_success += 1
        return _json({"health": "false" if reason else "true", "reason": reason}, 503 if reason else 200)


def _is_stream(bound: BoundMethod) -> bool:
    return bool(bound.method.client_streaming or bound.method.server_streaming)


def _is_supported_by_learners(bound: BoundMethod, request: Any) -> bool:
    return bound.method.path in _SUPPORTED_BY_LEARNERS or (bound.method.path == "/etcdserverpb.KV/Range" and request.serializable)


def _json(value: object, status: int = 200) -> Page:
    return Page(status, "application/json", json.dumps(value, separators=(",", ":")).encode())
