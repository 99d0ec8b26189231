"""Options of ``controllers.manager.run``: one frozen object with kube-controller-manager's and kube-scheduler's flag names."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from controllers.client import kubeconfig
from controllers.client.errors import ConfigInvalid


def default_identity() -> str:
    """Host and process: unlike any other candidate's of the leader election."""
    return f"{socket.gethostname()}_{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """Times in seconds. ``controllers`` holds names; "*" stands for all that are on by default, "-name" takes one out."""

    kubeconfig: Path
    controllers: tuple[str, ...] = ("*",)
    #: certificate of the cluster's CA in PEM, published in each namespace as ConfigMap kube-root-ca.crt; none: the kubeconfig's CA
    root_ca_file: Path | None = None
    #: each controller works as its own ServiceAccount system:serviceaccount:kube-system:<name>; else as the kubeconfig's user
    use_service_account_credentials: bool = True
    leader_elect: bool = True
    leader_elect_lease_duration: int = 15
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_namespace: str = "kube-system"
    leader_elect_resource_name: str = "kube-controller-manager"
    identity: str = field(default_factory=default_identity)
    kube_api_qps: float = 500.0
    kube_api_burst: int = 1000
    #: how long to wait for the API server at the start
    startup_timeout: float = 60.0
    #: how often informers show everything again; 0 never
    min_resync_period: float = 0.0
    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 40.0
    node_startup_grace_period: float = 60.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    unhealthy_zone_threshold: float = 0.55
    large_cluster_size_threshold: int = 50
    terminated_pod_gc_threshold: int = 12_500
    #: the CA that signs approved certificate requests; without both nobody does
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    cluster_signing_duration: float = 365 * 86_400.0
    #: signs the tokens of Secrets that ask for one; without it they stay empty
    service_account_private_key_file: Path | None = None
    scheduler_name: str = "default-scheduler"
    #: of the user system:kube-scheduler; none: the scheduler works as the kubeconfig's user
    scheduler_kubeconfig: Path | None = None

    def root_ca(self) -> str:
        """The CA to publish, as PEM.

        Raises:
            ConfigInvalid: a file that cannot be read.
        """
        if self.root_ca_file is None:
            return kubeconfig.load(self.kubeconfig).ca.decode()
        try:
            return self.root_ca_file.read_text()
        except OSError as error:
            raise ConfigInvalid(f"--root-ca-file {self.root_ca_file}: {error.strerror}") from error

    def validate(self) -> None:
        """Raises ValueError with the flag's name."""
        if self.node_monitor_grace_period <= self.node_monitor_period:
            raise ValueError("--node-monitor-grace-period must be longer than --node-monitor-period")
        if self.kube_api_qps <= 0 or self.kube_api_burst < 1:
            raise ValueError("--kube-api-qps and --kube-api-burst must be positive")
        if self.leader_elect and not (
            self.leader_elect_lease_duration > self.leader_elect_renew_deadline > self.leader_elect_retry_period > 0
        ):
            raise ValueError(
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than "
                "--leader-elect-retry-period"
            )
