"""From the configuration to an ``Auditor``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from apiserver.audit import policy
from apiserver.audit.auditor import Auditor, Output
from apiserver.audit.endpoint import AuditEndpoint
from apiserver.audit.log_file import LogFile, Rotation
from apiserver.audit.sinks import Losses
from apiserver.audit.webhook import WebhookSink
from apiserver.config import AuditConfig

STANDARD_OUTPUT = Path("-")
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookParts:
    sink: WebhookSink
    endpoint: AuditEndpoint

    @classmethod
    def of(cls, config: AuditConfig, losses: Losses) -> WebhookParts:
        assert config.webhook_config_file is not None
        endpoint = AuditEndpoint(config.webhook_config_file, time.monotonic)
        sink = WebhookSink(
            endpoint,
            losses,
            batch_events_max=config.webhook_batch_max_size,
            batch_seconds_max=config.webhook_batch_max_wait_seconds,
            initial_backoff_seconds=config.webhook_initial_backoff_seconds,
        )
        return cls(sink=sink, endpoint=endpoint)


@dataclass(slots=True)
class Audit:
    """``run`` sends to the webhook, where there is one; ``close`` ends the sinks."""

    auditor: Auditor
    webhook: WebhookParts | None = None

    async def run(self) -> None:
        if self.webhook is not None:
            try:
                await self.webhook.sink.run()
            finally:
                await self.webhook.endpoint.close()


def build_audit(config: AuditConfig) -> Audit:
    """Where some sink is ``wanted``. Raises OSError, ValueError for what cannot be used."""
    assert config.wanted, "nobody is to be told"
    rules = policy.everything()
    if config.policy_file is not None:
        rules = policy.parse(config.policy_file.read_bytes(), str(config.policy_file))
    losses, outputs = Losses(), []
    if config.log_path is not None:
        rotation = Rotation(
            max_bytes=config.log_maxsize * _MEGABYTE,
            max_age_days=config.log_maxage,
            max_backups=config.log_maxbackup,
            compress=config.log_compress,
        )
        path = None if config.log_path == STANDARD_OUTPUT else config.log_path
        log = LogFile(path, rotation, losses, blocking=config.log_mode != "batch")
        outputs.append(
            Output(
                sink=log,
                legacy=config.log_format == "legacy",
                event_bytes_max=config.log_truncate_event_bytes,
                strict=config.log_mode == "blocking-strict",
            )
        )
    webhook = None
    if config.webhook_config_file is not None:
        webhook = WebhookParts.of(config, losses)
        outputs.append(Output(sink=webhook.sink, event_bytes_max=config.webhook_truncate_event_bytes, plugin="webhook"))
    return Audit(Auditor(rules, outputs, losses, time.time), webhook)
