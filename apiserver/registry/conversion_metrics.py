"""``ConversionMetrics``: what conversion webhooks cost, under kube-apiserver's names (apiextensions-apiserver ``apiserver/conversion``)."""

from __future__ import annotations

from apiserver.metrics import Durations, Exposition

#: upper bounds of histograms, seconds
CONVERSION_SECONDS_BOUNDS = tuple(0.001 * 2**power for power in range(15))
REQUEST_SECONDS_BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)


class ConversionMetrics:
    """Of one server. One call converts many objects, and counts once."""

    def __init__(self) -> None:
        self.conversions = Durations(("crd_name", "from_version", "to_version", "succeeded"), CONVERSION_SECONDS_BOUNDS)
        self.requests = Durations(("result", "failure_type"), REQUEST_SECONDS_BOUNDS)

    def called(self, definition: str, before: str, after: str, seconds: float, failure: str) -> None:
        """``failure``: its type, "" for a success."""
        self.conversions.observe(seconds, definition, before, after, "false" if failure else "true")
        self.requests.observe(seconds, "failure" if failure else "success", failure)

    def expose(self, out: Exposition) -> None:
        self.conversions.expose(out, "apiserver_crd_conversion_webhook_duration_seconds", "CRD webhook conversion duration in seconds")
        self.requests.expose(out, "apiserver_conversion_webhook_duration_seconds", "Conversion webhook request latency")
        self.requests.expose_count(
            out,
            "apiserver_conversion_webhook_request_total",
            "Counter for conversion webhook requests with success/failure and failure error type",
        )
