"""What the client port counts, under etcd's names."""

from __future__ import annotations

from storage.etcdserver.grpc_server import BoundMethod, ServerStats
from storage.etcdserver.rpctypes import Code
from storage.metric_families import Family, Kind, Labels, single

_CODE_NAMES = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code} | {Code.OK: "OK"}
"""As gRPC's libraries write them in metrics: ``InvalidArgument``."""


def families(stats: ServerStats, *, watch_streams: int, health_success: int, health_failures: int) -> list[Family]:
    methods = sorted(stats.methods, key=lambda bound: bound.method.path)
    labels = {bound: _labels(bound) for bound in methods}
    counter, gauge = Kind.COUNTER, Kind.GAUGE
    return [
        single(counter, "etcd_network_client_grpc_received_bytes_total", "The total number of bytes received from grpc clients.",
               stats.received_bytes),
        single(counter, "etcd_network_client_grpc_sent_bytes_total", "The total number of bytes sent to grpc clients.",
               stats.sent_bytes),
        Family(counter, "etcd_network_server_stream_failures_total", "The total number of stream failures from the local server.",
               tuple(((("API", api), ("Type", kind)), count) for (kind, api), count in sorted(stats.stream_failures.items()))),
        Family(counter, "etcd_server_client_requests_total", "The total number of client requests per client version.", tuple(
            ((("client_api_version", version), ("type", kind)), count)
            for (kind, version), count in sorted(stats.client_requests.items())
        )),
        single(gauge, "etcd_debugging_mvcc_watch_stream_total", "Total number of watch streams.", watch_streams),
        single(counter, "etcd_server_health_success", "The total number of successful health checks", health_success),
        single(counter, "etcd_server_health_failures", "The total number of failed health checks", health_failures),
        Family(counter, "grpc_server_started_total", "Total number of RPCs started on the server.",
               tuple((labels[bound], bound.stats.started) for bound in methods)),
        Family(counter, "grpc_server_handled_total",
               "Total number of RPCs completed on the server, regardless of success or failure.", tuple(
                   ((("grpc_code", _CODE_NAMES[code]), *labels[bound]), count)
                   for bound in methods for code, count in sorted(bound.stats.handled.items())
               )),
        Family(counter, "grpc_server_msg_received_total", "Total number of RPC stream messages received on the server.",
               tuple((labels[bound], bound.stats.received) for bound in methods)),
        Family(counter, "grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server.",
               tuple((labels[bound], bound.stats.sent) for bound in methods)),
    ]  # fmt: skip


def _labels(bound: BoundMethod) -> Labels:
    method = bound.method
    kinds = {(False, False): "unary", (True, False): "client_stream", (False, True): "server_stream", (True, True): "bidi_stream"}
    kind = kinds[method.client_streaming, method.server_streaming]
    return (("grpc_method", method.name), ("grpc_service", method.service), ("grpc_type", kind))


class ProcessMetrics:
    """What prometheus-client knows of the process, loaded at the first scrape."""

    def __init__(self) -> None:
        self._registry: object = None

    def text(self) -> bytes:
        """Takes a while the first time: call it in a thread."""
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

        if self._registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
            GCCollector(registry=registry)
            self._registry = registry
        assert isinstance(self._registry, CollectorRegistry)
        return generate_latest(self._registry)
