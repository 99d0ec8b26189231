"""``ControllerContext``: what a controller is built with; ``Controller``: what the manager runs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from controllers.cache.informer_factory import InformerView
from controllers.client.interface import Api
from controllers.lib.clock import Clock
from controllers.lib.events import EventRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerContext:
    """``api`` speaks as this controller; ``informers`` are shared by all and read as the manager."""

    api: Api
    informers: InformerView
    recorder: EventRecorder
    clock: Clock
    rng: random.Random


class Controller(Protocol):
    """Built before the informers run: its constructor asks for informers, indexes and handlers. ``run`` begins when all informers it uses
    have synced, and ends only by cancellation."""

    async def run(self) -> None: ...
