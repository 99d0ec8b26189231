"""Options of hollow nodes: one frozen object, kubelet's flag names where it has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowNodeOptions:
    """Of all nodes of one process. Times in seconds, quantities as Kubernetes writes them.

    ``kubeconfigs`` gives single nodes their own; others use ``kubeconfig``. With ``impersonate`` a node speaks through that user as
    system:node:<name> in group system:nodes (the user needs the right to impersonate); else as the kubeconfig's user.
    """

    names: tuple[str, ...]
    kubeconfig: Path
    kubeconfigs: dict[str, Path] = field(default_factory=dict)
    impersonate: bool = False
    cpu: str = "8"
    memory: str = "32Gi"
    ephemeral_storage: str = "100Gi"
    max_pods: int = 110
    node_labels: dict[str, str] = field(default_factory=dict)
    register_with_taints: tuple[tuple[str, str, str], ...] = ()
    #: kubeletVersion; empty: the API server's own version
    kubelet_version: str = ""
    node_lease_duration_seconds: int = 40
    node_lease_renew_seconds: float = 10.0
    #: how often the node looks at its own Node object, and how often it reports when nothing changed
    node_status_update_frequency: float = 10.0
    node_status_report_frequency: float = 300.0
    #: from a pod's arrival to its containers' start: what pulling and creating would take
    start_seconds: float = 0.1
    #: of containers that are meant to complete
    run_seconds: float = 1.0
    init_seconds: float = 0.1
    #: from the order to stop until a container has stopped
    stop_seconds: float = 0.1
    kube_api_qps: float = 100.0
    kube_api_burst: int = 200
    startup_timeout: float = 60.0

    def validate(self) -> None:
        """Raises ValueError with what is wrong."""
        if not self.names or len(set(self.names)) != len(self.names):
            raise ValueError("hollow nodes need names, each once")
        if self.node_lease_renew_seconds >= self.node_lease_duration_seconds:
            raise ValueError("a node lease must be renewed within its duration")
        if self.max_pods < 1:
            raise ValueError("--max-pods must be positive")
