"""``/metrics``: what this server and its store count, under the names of kube-apiserver and etcd, in Prometheus' text format.

Counting a request is on the hot path (some 2 µs), showing the counts is not: so requests are counted in plain numbers of our own and only
turned into text when somebody asks; ``prometheus_client`` shows what is about the process.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from apiserver.filters.flow_control import Limiter
from apiserver.request.request_context import RequestContext, RequestInfo
from apiserver.request.request_info import REMEMBERED_LENGTH_MAX

if TYPE_CHECKING:
    from fastapi import APIRouter

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: upper bounds of kube-apiserver's histogram of request durations, seconds
DURATION_SECONDS_BOUNDS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
#: upper bounds of its histogram of response sizes, bytes
SIZE_BYTES_BOUNDS = tuple(1000.0 * 10**power for power in range(7))

#: distinct combinations of labels kept. Paths come from clients: past the bound all others count as one
SERIES_MAX = 4096

#: RequestInfos remembered with their series; beyond it the memory starts anew
KNOWN_MAX = 8192

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
#: requests that are for no resource are told apart by these beginnings only
_PATHS = ("/healthz", "/livez", "/readyz", "/metrics", "/version", "/openapi/v2", "/openapi/v3", "/apis", "/api")

Labels = tuple[tuple[str, str], ...]
_Key = tuple[str, str, str, str, str, str]


class HistogramLike(Protocol):
    """A histogram kept elsewhere (``storage.member.metrics.Histogram``)."""

    count: int
    sum: float

    def cumulative(self) -> list[tuple[float, int]]: ...


class Exposition:
    """Builds the text. A family's samples stand together, under its HELP and TYPE."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, help_text: str, samples: Iterable[tuple[Labels, float]]) -> None:
        self._family(name, help_text, "counter", samples)

    def gauge(self, name: str, help_text: str, samples: Iterable[tuple[Labels, float]]) -> None:
        self._family(name, help_text, "gauge", samples)

    def histogram(self, name: str, help_text: str, samples: Iterable[tuple[Labels, Sequence[tuple[float, int]], float, int]]) -> None:
        """Each sample: labels, (upper bound, count up to it) …, sum, count."""
        self._head(name, help_text, "histogram")
        for labels, cumulative, total, count in samples:
            inner = _inner(labels)
            comma = "," if inner else ""
            for bound, upto in cumulative:
                self._lines.append(f'{name}_bucket{{{inner}{comma}le="{_number(bound)}"}} {upto}')
            braces = f"{{{inner}}}" if inner else ""
            self._lines.append(f"{name}_sum{braces} {_number(total)}")
            self._lines.append(f"{name}_count{braces} {count}")

    def _family(self, name: str, help_text: str, kind: str, samples: Iterable[tuple[Labels, float]]) -> None:
        self._head(name, help_text, kind)
        for labels, value in samples:
            inner = _inner(labels)
            braces = f"{{{inner}}}" if inner else ""
            self._lines.append(f"{name}{braces} {_number(value)}")

    def _head(self, name: str, help_text: str, kind: str) -> None:
        self._lines.append(f"# HELP {name} {help_text}")
        self._lines.append(f"# TYPE {name} {kind}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n" if self._lines else ""


def _inner(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


class _Series:
    """What is counted of the requests of one kind."""

    __slots__ = ("by_code", "count", "duration_counts", "duration_sum", "size_counts", "size_sum")

    def __init__(self) -> None:
        self.count = 0
        self.by_code: dict[int, int] = {}
        self.duration_counts = [0] * (len(DURATION_SECONDS_BOUNDS) + 1)
        self.duration_sum = 0.0
        self.size_counts = [0] * (len(SIZE_BYTES_BOUNDS) + 1)
        self.size_sum = 0


class RequestMetrics:
    """A ``RequestObserver`` of the handler chain."""

    def __init__(self, flow_control: Limiter | None = None) -> None:
        self._series: dict[_Key, _Series] = {}
        # requests of one path share their RequestInfo: by its identity, so that labels are not made for each
        self._known: dict[int, tuple[RequestInfo, _Series]] = {}
        self._flow_control = flow_control

    def watch_flow_control(self, flow_control: Limiter) -> None:
        self._flow_control = flow_control

    def request_done(self, context: RequestContext, seconds: float, response_bytes: int) -> None:
        info = context.info
        known = self._known.get(id(info))
        series = known[1] if known is not None and known[0] is info else self._series_of(context)
        code = context.response_status
        series.count += 1
        series.by_code[code] = series.by_code.get(code, 0) + 1
        series.duration_counts[bisect_left(DURATION_SECONDS_BOUNDS, seconds)] += 1
        series.duration_sum += seconds
        series.size_counts[bisect_left(SIZE_BYTES_BOUNDS, response_bytes)] += 1
        series.size_sum += response_bytes

    def _series_of(self, context: RequestContext) -> _Series:
        key = _key(context)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                key = ("other", "", "", "", "", "")
            series = self._series.setdefault(key, _Series())
        # a patch's verb follows from its content type too, and a path that is no resource has its method's labels
        info = context.info
        if info.is_resource_request and info.verb != "patch" and len(info.path) <= REMEMBERED_LENGTH_MAX:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[id(context.info)] = (context.info, series)
        return series

    def expose(self, out: Exposition) -> None:
        entries = sorted(self._series.items())
        out.counter(
            "apiserver_request_total",
            "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, "
            "and HTTP response code.",
            (((("code", str(code)), *_labels(key)), count) for key, series in entries for code, count in sorted(series.by_code.items())),
        )
        out.histogram(
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and "
            "component.",
            ((_labels(key), _cumulative(DURATION_SECONDS_BOUNDS, s.duration_counts), s.duration_sum, s.count) for key, s in entries),
        )
        out.histogram(
            "apiserver_response_sizes",
            "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
            ((_labels(key), _cumulative(SIZE_BYTES_BOUNDS, s.size_counts), s.size_sum, s.count) for key, s in entries),
        )
        flow = self._flow_control
        if flow is None:
            return
        out.gauge(
            "apiserver_current_inflight_requests",
            "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
            (((("request_kind", "mutating"),), flow.mutating_in_flight), ((("request_kind", "readOnly"),), flow.read_in_flight)),
        )
        out.counter(
            "apiserver_dropped_requests_total",
            "Number of requests dropped with 'Try again later' response",
            (((), flow.refused),),
        )
        flow.expose(out)


def _key(context: RequestContext) -> _Key:
    info = context.info
    if not info.is_resource_request:
        path = next((p for p in _PATHS if info.path.startswith(p)), "")
        return (context.method if context.method in _METHODS else "OTHER", "", "", "", path, "")
    verb = _VERBS.get(info.verb, "OTHER")
    if verb == "PATCH" and context.headers.get(b"content-type", b"").startswith(b"application/apply-patch"):
        verb = "APPLY"
    if info.namespace:
        scope = "resource" if info.name and info.verb not in ("list", "watch") else "namespace"
    else:
        scope = "resource" if info.name and info.verb not in ("list", "watch") else "cluster"
    named = (info.group, info.version, info.resource, info.subresource)
    if sum(map(len, named)) > REMEMBERED_LENGTH_MAX:
        return (verb, "", "", "other", "", scope)
    return (verb, *named, scope)


def _labels(key: _Key) -> Labels:
    verb, group, version, resource, subresource, scope = key
    return (
        ("component", "apiserver"),
        ("group", group),
        ("resource", resource),
        ("scope", scope),
        ("subresource", subresource),
        ("verb", verb),
        ("version", version),
    )


def _cumulative(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[float, int]]:
    out: list[tuple[float, int]] = []
    total = 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        total += count
        out.append((bound, total))
    return out


class StoreRequestMetrics:
    """How long requests to the store take, as the API server sees them; ``observe`` is a ``StoreRequestObserver``."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _StoreSeries] = {}

    def observe(self, operation: str, type_: str, seconds: float, *, failed: bool) -> None:
        key = (operation, type_)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                key = (operation, "other")
            series = self._series.setdefault(key, _StoreSeries())
        series.count += 1
        series.failed += failed
        series.duration_counts[bisect_left(DURATION_SECONDS_BOUNDS, seconds)] += 1
        series.duration_sum += seconds

    def expose(self, out: Exposition) -> None:
        entries = [((("operation", operation), ("type", type_)), s) for (operation, type_), s in sorted(self._series.items())]
        out.histogram(
            "etcd_request_duration_seconds",
            "Etcd request latency in seconds for each operation and object type.",
            ((labels, _cumulative(DURATION_SECONDS_BOUNDS, s.duration_counts), s.duration_sum, s.count) for labels, s in entries),
        )
        out.counter(
            "etcd_requests_total",
            "Etcd request counts for each operation and object type.",
            ((labels, s.count) for labels, s in entries),
        )
        out.counter(
            "etcd_request_errors_total",
            "Etcd failed request counts for each operation and object type.",
            ((labels, s.failed) for labels, s in entries if s.failed),
        )


class Durations:
    """Histograms by the values of their labels. Past SERIES_MAX what is new counts nowhere: names come from clients."""

    def __init__(self, names: Sequence[str], bounds: Sequence[float]) -> None:
        self._names = tuple(names)
        self._bounds = tuple(bounds)
        self._series: dict[tuple[str, ...], list[float]] = {}  # a count for each bound and for what is beyond, and last the sum

    def observe(self, seconds: float, *values: str) -> None:
        series = self._series.get(values)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                return
            series = self._series[values] = [0.0] * (len(self._bounds) + 2)
        series[bisect_left(self._bounds, seconds)] += 1
        series[-1] += seconds

    def _labels(self, values: Sequence[str]) -> Labels:
        return tuple(sorted(zip(self._names, values, strict=True)))

    def expose_count(self, out: Exposition, name: str, help_text: str) -> None:
        if self._series:
            out.counter(name, help_text, ((self._labels(values), sum(series[:-1])) for values, series in sorted(self._series.items())))

    def expose(self, out: Exposition, name: str, help_text: str) -> None:
        if not self._series:
            return
        bounds = (*self._bounds, math.inf)
        samples = []
        for values, series in sorted(self._series.items()):
            upto = [int(count) for count in accumulate(series[:-1])]
            samples.append((self._labels(values), list(zip(bounds, upto, strict=True)), series[-1], upto[-1]))
        out.histogram(name, help_text, samples)


class _StoreSeries:
    __slots__ = ("count", "duration_counts", "duration_sum", "failed")

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0
        self.duration_counts = [0] * (len(DURATION_SECONDS_BOUNDS) + 1)
        self.duration_sum = 0.0


class StoreFamily(Protocol):
    """One metric of the store (``storage.metric_families.Family``)."""

    @property
    def kind(self) -> enum.Enum: ...
    @property
    def name(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def samples(self) -> Sequence[tuple[Labels, int | float | HistogramLike]]: ...


def expose_families(families: Iterable[StoreFamily], out: Exposition) -> None:
    """What has no sample yet is left out."""
    for family in families:
        numbers = [(labels, value) for labels, value in family.samples if isinstance(value, (int, float))]
        histograms = [
            (labels, value.cumulative(), value.sum, value.count) for labels, value in family.samples if not isinstance(value, (int, float))
        ]
        if histograms:
            out.histogram(family.name, family.help, histograms)
        elif numbers:
            (out.gauge if family.kind.value == "gauge" else out.counter)(family.name, family.help, numbers)


def expose_certificates(metric: str, samples: Iterable[tuple[str, str, float]], out: Exposition) -> None:
    """``samples``: file, purpose, seconds since the epoch."""
    out.gauge(
        metric,
        "When a certificate that this server uses ends, in seconds since the epoch.",
        (((("file", file), ("purpose", purpose)), seconds) for file, purpose, seconds in samples),
    )


Expose = Callable[[Exposition], None]


def router(exposers: Sequence[Expose]) -> APIRouter:
    """``/metrics``: what the exposers tell, then what is known of the process."""
    # Both take longer to import than the rest of the server; nobody asks for metrics before it is ready.
    from fastapi import APIRouter, Response
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    routes = APIRouter()

    async def metrics() -> Response:
        out = Exposition()
        for expose in exposers:
            expose(out)
        return Response(out.text().encode() + generate_latest(registry), media_type=CONTENT_TYPE)

    routes.add_api_route("/metrics", metrics, methods=["GET"], include_in_schema=False)
    return routes
