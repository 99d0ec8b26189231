"""The groups of steps: each has a server of its own, with its flags."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.admission_differential import evictions, nodes, optional, pods, quotas, things
from tests.admission_differential.steps import Script, Step, flattened


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """``plugins``: those that are not on by default. ``real_flags`` are the real server's, beside them."""

    scripts: tuple[Callable[[], Iterator[Script]], ...]
    plugins: tuple[str, ...] = ()
    gates: str = "BoundServiceAccountTokenVolume=true"

    def steps(self) -> list[Step]:
        return flattened(itertools.chain.from_iterable(make() for make in self.scripts))

    @property
    def real_flags(self) -> tuple[str, ...]:
        enabled = (f"--enable-admission-plugins={','.join(self.plugins)}",) if self.plugins else ()
        return (f"--feature-gates={self.gates}", *enabled)


GROUPS = {
    "default": Group(
        scripts=(
            things.lifecycle,
            pods.limit_ranger, pods.service_account, pods.priority, pods.tolerations, pods.runtime_class, things.node_taints,
            things.storage, things.ingress_class, things.certificates, quotas.quotas, evictions.evictions,
        ),
    ),
    "optional": Group(scripts=(optional.optional,), plugins=optional.PLUGINS),
    "provisioning": Group(scripts=(optional.provisioning,), plugins=("NamespaceAutoProvision",)),
    "nodes": Group(scripts=(nodes.node_restriction,), plugins=("NodeRestriction",)),
}  # fmt: skip
