"""Operators of the simulated cluster: membership, leadership, upkeep, while everything else happens."""

from __future__ import annotations

import random

from tests.simulation.checkers import Observer
from tests.simulation.cluster import Cluster


class MembershipNemesis:
    """Each method is one thing an operator does; what the cluster refuses is refused."""

    def __init__(self, cluster: Cluster, observer: Observer, rng: random.Random) -> None:
        self.cluster = cluster
        self.observer = observer
        self.rng = rng
        self.is_over = False
