"""The controllers there are: names as in kube-controller-manager's ``--controllers``, ServiceAccounts as in its bootstrap roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from controllers.bootstrap.cleaning import TokenCleaner
from controllers.bootstrap.signing import BootstrapSigner
from controllers.certificates.approving import ApprovingController
from controllers.certificates.cleaning import CleaningController
from controllers.certificates.controller import SigningController, authority_of, has_authority
from controllers.certificates.trust_bundle import TrustBundlePublisher
from controllers.client.resources import CLUSTER_TRUST_BUNDLES, ENDPOINT_SLICES, STORAGE_VERSION_MIGRATIONS, Resource
from controllers.clusterroleaggregation.controller import ClusterRoleAggregationController
from controllers.cronjob.controller import CronJobController
from controllers.daemonset.controller import DaemonSetController
from controllers.deployment.controller import DeploymentController
from controllers.disruption.controller import DisruptionController
from controllers.endpoints.controller import EndpointsController, EndpointSliceController
from controllers.garbagecollector.controller import GarbageCollector
from controllers.job.controller import JobController
from controllers.lib.context import Controller, ControllerContext
from controllers.namespace.controller import NamespaceController
from controllers.nodelifecycle.controller import NodeLifecycleController
from controllers.options import ManagerOptions
from controllers.persistentvolume.controller import PersistentVolumeController
from controllers.podgc.controller import PodGarbageCollector
from controllers.replicaset.controller import REPLICATION_CONTROLLER, ReplicaSetController
from controllers.resourcequota.controller import ResourceQuotaController
from controllers.scheduler.controller import Scheduler
from controllers.serviceaccount.controller import RootCAPublisher, ServiceAccountsController
from controllers.serviceaccount.legacy_tokens import LegacyTokenCleaner
from controllers.serviceaccount.tokens import Sign, TokensController, TokenSigner
from controllers.statefulset.controller import StatefulSetController
from controllers.storageprotection.controller import ClaimProtectionController, VolumeProtectionController
from controllers.storageversionmigrator.controller import StorageVersionMigratorController
from controllers.ttlafterfinished.controller import TTLAfterFinishedController


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """``component`` is the source of its events. It works as its ``service_account``, or by a kubeconfig of its own, or else as the
    manager's user."""

    name: str
    component: str
    service_account: str
    build: Callable[[ControllerContext, ManagerOptions], Controller]
    #: the resource without which there is nothing to do; where the server has it not, the controller is left out
    requires: Resource | None = None
    #: whether the options have what it needs; where not, it is left out
    configured: Callable[[ManagerOptions], bool] = lambda _: True
    own_kubeconfig: Callable[[ManagerOptions], Path | None] = lambda _: None
    #: whether "*" means it too
    by_default: bool = True


CONTROLLERS: tuple[Registration, ...] = (
    Registration(
        name="replicaset",
        component="replicaset-controller",
        service_account="replicaset-controller",
        build=lambda context, _: ReplicaSetController(context),
    ),
    Registration(
        name="replicationcontroller",
        component="replication-controller",
        service_account="replication-controller",
        build=lambda context, _: ReplicaSetController(context, REPLICATION_CONTROLLER),
    ),
    Registration(
        name="clusterrole-aggregation",
        component="clusterrole-aggregation-controller",
        service_account="clusterrole-aggregation-controller",
        build=lambda context, _: ClusterRoleAggregationController(context),
    ),
    Registration(
        name="deployment",
        component="deployment-controller",
        service_account="deployment-controller",
        build=lambda context, _: DeploymentController(context),
    ),
    Registration(
        name="serviceaccount",
        component="service-account-controller",
        service_account="service-account-controller",
        build=lambda context, _: ServiceAccountsController(context),
    ),
    # the account that would work as one gets its rights by such a token, so it works as the manager itself
    Registration(
        name="serviceaccount-token",
        component="tokens-controller",
        service_account="",
        build=lambda context, options: TokensController(context, options.root_ca(), signer_of(options)),
        configured=lambda options: options.service_account_private_key_file is not None,
    ),
    Registration(
        name="legacy-serviceaccount-token-cleaner",
        component="legacy-service-account-token-cleaner",
        service_account="legacy-service-account-token-cleaner",
        build=lambda context, _: LegacyTokenCleaner(context),
    ),
    Registration(
        name="bootstrapsigner",
        component="bootstrap-signer",
        service_account="bootstrap-signer",
        build=lambda context, _: BootstrapSigner(context),
        by_default=False,
    ),
    Registration(
        name="tokencleaner",
        component="token-cleaner",
        service_account="token-cleaner",
        build=lambda context, _: TokenCleaner(context),
        by_default=False,
    ),
    Registration(
        name="root-ca-cert-publisher",
        component="root-ca-cert-publisher",
        service_account="root-ca-cert-publisher",
        build=lambda context, options: RootCAPublisher(context, options.root_ca()),
    ),
    Registration(name="job", component="job-controller", service_account="job-controller", build=lambda context, _: JobController(context)),
    Registration(
        name="ttl-after-finished",
        component="ttl-after-finished-controller",
        service_account="ttl-after-finished-controller",
        build=lambda context, _: TTLAfterFinishedController(context),
    ),
    Registration(
        name="endpoint",
        component="endpoint-controller",
        service_account="endpoint-controller",
        build=lambda context, _: EndpointsController(context),
    ),
    Registration(
        name="endpointslice",
        component="endpoint-slice-controller",
        service_account="endpointslice-controller",
        build=lambda context, _: EndpointSliceController(context),
        requires=ENDPOINT_SLICES,
    ),
    Registration(
        name="csrapproving",
        component="certificate-controller",
        service_account="certificate-controller",
        build=lambda context, _: ApprovingController(context),
    ),
    Registration(
        name="csrcleaner",
        component="certificate-controller",
        service_account="certificate-controller",
        build=lambda context, _: CleaningController(context),
    ),
    Registration(
        name="csrsigning",
        component="certificate-controller",
        service_account="certificate-controller",
        build=lambda context, options: SigningController(context, authority_of(options)),
        configured=has_authority,
    ),
    Registration(
        name="kube-apiserver-serving-clustertrustbundle-publisher",
        component="kube-apiserver-serving-clustertrustbundle-publisher",
        service_account="kube-apiserver-serving-clustertrustbundle-publisher",
        build=lambda context, options: TrustBundlePublisher(context, options.root_ca()),
        requires=CLUSTER_TRUST_BUNDLES,
    ),
    Registration(
        name="podgc",
        component="pod-garbage-collector",
        service_account="pod-garbage-collector",
        build=lambda context, options: PodGarbageCollector(context, options.terminated_pod_gc_threshold),
    ),
    Registration(
        name="namespace",
        component="namespace-controller",
        service_account="namespace-controller",
        build=lambda context, _: NamespaceController(context),
    ),
    Registration(
        name="garbagecollector",
        component="garbage-collector-controller",
        service_account="generic-garbage-collector",
        build=lambda context, _: GarbageCollector(context),
    ),
    Registration(
        name="statefulset",
        component="statefulset-controller",
        service_account="statefulset-controller",
        build=lambda context, _: StatefulSetController(context),
    ),
    Registration(
        name="daemonset",
        component="daemonset-controller",
        service_account="daemon-set-controller",
        build=lambda context, _: DaemonSetController(context),
    ),
    Registration(
        name="cronjob",
        component="cronjob-controller",
        service_account="cronjob-controller",
        build=lambda context, _: CronJobController(context),
    ),
    Registration(
        name="disruption",
        component="controllermanager",
        service_account="disruption-controller",
        build=lambda context, _: DisruptionController(context),
    ),
    Registration(
        name="resourcequota",
        component="resourcequota-controller",
        service_account="resourcequota-controller",
        build=lambda context, _: ResourceQuotaController(context),
    ),
    Registration(
        name="persistentvolume-binder",
        component="persistentvolume-controller",
        service_account="persistent-volume-binder",
        build=lambda context, _: PersistentVolumeController(context),
    ),
    Registration(
        name="pvc-protection",
        component="pvc-protection-controller",
        service_account="pvc-protection-controller",
        build=lambda context, _: ClaimProtectionController(context),
    ),
    Registration(
        name="pv-protection",
        component="pv-protection-controller",
        service_account="pv-protection-controller",
        build=lambda context, _: VolumeProtectionController(context),
    ),
    Registration(
        name="storage-version-migrator-controller",
        component="storage-version-migrator-controller",
        service_account="storage-version-migrator-controller",
        build=lambda context, _: StorageVersionMigratorController(context),
        requires=STORAGE_VERSION_MIGRATIONS,
    ),
    Registration(
        name="node-lifecycle-controller",
        component="node-controller",
        service_account="node-controller",
        build=lambda context, options: NodeLifecycleController(context, options),
    ),
    # the role system:kube-scheduler is bound to a user of that name, not to a ServiceAccount
    Registration(
        name="scheduler",
        component="default-scheduler",
        service_account="",
        build=lambda context, options: Scheduler(context, options.scheduler_name),
        own_kubeconfig=lambda options: options.scheduler_kubeconfig,
    ),
)


def signer_of(options: ManagerOptions) -> Sign:
    assert options.service_account_private_key_file is not None, "configured"
    return TokenSigner(options.service_account_private_key_file).sign


def selected(registrations: Iterable[Registration], wanted: tuple[str, ...]) -> list[Registration]:
    """Those that ``--controllers`` names.

    Raises:
        ValueError: a name that no controller has.
    """
    every = list(registrations)
    names = {r.name for r in every}
    for name in wanted:
        if name != "*" and name.removeprefix("-") not in names:
            raise ValueError(f"--controllers: unknown controller {name.removeprefix('-')!r}; there are {', '.join(sorted(names))}")
    return [r for r in every if f"-{r.name}" not in wanted and (r.name in wanted or ("*" in wanted and r.by_default))]
