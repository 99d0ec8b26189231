"""How long admission takes and what webhooks answer, under kube-apiserver's names (apiserver ``admission/metrics``)."""

from __future__ import annotations

import time

from apiserver.metrics import Durations, Exposition

#: upper bounds of histograms, seconds
STEP_SECONDS_BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
WEBHOOK_SECONDS_BOUNDS = (*STEP_SECONDS_BOUNDS, 10.0, 25.0)
#: larger codes are counted as this one
CODE_MAX = 600

ADMIT, VALIDATE = "admit", "validate"
#: the type of validating webhooks, in their metrics alone
VALIDATING = "validating"

NO_ERROR, CALLING_ERROR, INTERNAL_ERROR = "no_error", "calling_webhook_error", "apiserver_internal_error"

_RESOURCE = "broken out for each operation and API resource and"
_CODES = "Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded."


class WebhookMetrics:
    """Of the admission webhooks of one server."""

    def __init__(self) -> None:
        self.durations = Durations(("name", "type", "operation", "rejected"), WEBHOOK_SECONDS_BOUNDS)
        self.requests = Durations(("name", "type", "operation", "code", "rejected"), ())
        self.rejections = Durations(("name", "type", "operation", "error_type", "rejection_code"), ())
        self.failed_open = Durations(("name", "type"), ())

    def called(self, name: str, type: str, operation: str, began: float, code: int, refusal: str = "") -> None:
        """A call that ``began`` (``perf_counter``) is over. ``code``: of the answer, 0 where this server itself failed; ``refusal``: the
        type of the error by which the request is refused, "" where it is not."""
        shown = str(min(code, CODE_MAX))
        rejected = "true" if refusal else "false"
        if refusal:
            self.rejections.observe(0.0, name, type, operation, refusal, shown)
        self.requests.observe(0.0, name, type, operation, shown, rejected)
        self.durations.observe(time.perf_counter() - began, name, type, operation, rejected)

    def expose(self, out: Exposition) -> None:
        prefix = "apiserver_admission_webhook"
        self.durations.expose(
            out,
            f"{prefix}_admission_duration_seconds",
            f"Admission webhook latency histogram in seconds, identified by name and {_RESOURCE} type (validate or admit).",
        )
        self.failed_open.expose_count(
            out,
            f"{prefix}_fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
        )
        self.rejections.expose_count(
            out,
            f"{prefix}_rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and "
            "operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; "
            "no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code "
            f"(honored by the apiserver when the code is greater or equal to 400). {_CODES}",
        )
        self.requests.expose_count(
            out,
            f"{prefix}_request_total",
            "Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and "
            f"operation. Additional labels specify whether the request was rejected or not and an HTTP status code. {_CODES}",
        )


class AdmissionMetrics:
    """Of the chain of one server, and of its webhooks."""

    def __init__(self) -> None:
        self.steps = Durations(("type", "operation", "rejected"), STEP_SECONDS_BOUNDS)
        self.controllers = Durations(("name", "type", "operation", "rejected"), STEP_SECONDS_BOUNDS)
        self.webhooks = WebhookMetrics()

    def expose(self, out: Exposition) -> None:
        self.controllers.expose(
            out,
            "apiserver_admission_controller_admission_duration_seconds",
            f"Admission controller latency histogram in seconds, identified by name and {_RESOURCE} type (validate or admit).",
        )
        self.steps.expose(
            out,
            "apiserver_admission_step_admission_duration_seconds",
            f"Admission sub-step latency histogram in seconds, {_RESOURCE} step type (validate or admit).",
        )
        self.webhooks.expose(out)
