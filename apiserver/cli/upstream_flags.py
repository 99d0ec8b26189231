"""Flags of kube-apiserver that have nothing to do here: taken so that its command lines start this server, and told of.

Those whose being ignored would take away something that their user counts on (who gets in, what is encrypted, what is recorded) are not
among them: they are refused as any unknown flag is, until there is something behind them.
"""

from __future__ import annotations

import argparse

_LOGS = "the log goes to standard error, with no levels to choose"
_KUBELETS = "hollow nodes have no kubelet to call"
_STORE = "the store has its own ways"
_AUDIT = "events never hold up a request: 10,000 wait for a sink, more are lost and counted"
_CLOUD = "there are no clouds here"

#: flag → why it has no effect. Each takes a value, or none where it is a switch.
INERT = {
    "allow-privileged": "privileged containers are always allowed",
    "aggregator-reject-forwarding-redirect": "redirects of extension API servers are never passed on",
    "audit-log-batch-buffer-size": _AUDIT,
    "audit-log-batch-max-size": _AUDIT,
    "audit-log-batch-max-wait": _AUDIT,
    "audit-log-batch-throttle-burst": _AUDIT,
    "audit-log-batch-throttle-enable": _AUDIT,
    "audit-log-batch-throttle-qps": _AUDIT,
    "audit-log-truncate-max-batch-size": _AUDIT,
    "audit-log-version": "events are audit.k8s.io/v1",
    "audit-webhook-batch-buffer-size": _AUDIT,
    "audit-webhook-batch-throttle-burst": _AUDIT,
    "audit-webhook-batch-throttle-enable": _AUDIT,
    "audit-webhook-batch-throttle-qps": _AUDIT,
    "audit-webhook-mode": _AUDIT,
    "audit-webhook-truncate-max-batch-size": _AUDIT,
    "audit-webhook-version": "events are audit.k8s.io/v1",
    "apiserver-count": "each server keeps its own address in the kubernetes service",
    "cloud-config": _CLOUD,
    "cloud-provider": _CLOUD,
    "contention-profiling": "there is no profiler",
    "cors-allowed-origins": "browsers of other origins are not let in",
    "default-watch-cache-size": "the watch cache measures itself",
    "delete-collection-workers": "collections are deleted one object after the other",
    "disabled-metrics": "all metrics are shown",
    "enable-aggregator-routing": "API services are reached where their URL or service says",
    "enable-garbage-collector": "the garbage collector runs where the controllers run",
    "enable-logs-handler": "there are no logs to show",
    "endpoint-reconciler-type": "each server keeps its own address in the kubernetes service with a lease",
    "etcd-count-metric-poll-period": _STORE,
    "etcd-db-metric-poll-interval": _STORE,
    "etcd-healthcheck-timeout": _STORE,
    "etcd-readycheck-timeout": _STORE,
    "external-hostname": "no URL names this server's host",
    "goaway-chance": "connections are not balanced by ending them",
    "http2-max-streams-per-connection": "the limit is this server's own",
    "identity-lease-duration-seconds": "servers have no leases for their identity",
    "identity-lease-renew-interval-seconds": "servers have no leases for their identity",
    "kubelet-certificate-authority": _KUBELETS,
    "kubelet-client-certificate": _KUBELETS,
    "kubelet-client-key": _KUBELETS,
    "kubelet-port": _KUBELETS,
    "kubelet-preferred-address-types": _KUBELETS,
    "kubelet-read-only-port": _KUBELETS,
    "kubelet-timeout": _KUBELETS,
    "kubernetes-service-node-port": "the kubernetes service has no node port",
    "lease-reuse-duration-seconds": _STORE,
    "livez-grace-period": "the server is alive from its first answer on",
    "log-flush-frequency": _LOGS,
    "logging-format": _LOGS,
    "logtostderr": _LOGS,
    "master-service-namespace": "the kubernetes service is in default",
    "max-connection-bytes-per-sec": "connections to nodes are not slowed",
    "permit-address-sharing": "a taken port is told",
    "permit-port-sharing": "a taken port is told",
    "profiling": "there is no profiler",
    "show-hidden-metrics-for-version": "all metrics are shown",
    "shutdown-delay-duration": "the server ends when it has answered what is under way",
    "shutdown-send-retry-after": "the server ends when it has answered what is under way",
    "storage-backend": "the store speaks etcd's API, version 3",
    "storage-initialization-timeout": "the server waits for its store",
    "storage-media-type": "objects are written as JSON; protobuf is read too",
    "strict-transport-security-directives": "there is no such header",
    "v": _LOGS,
    "vmodule": _LOGS,
    "watch-cache": "every kind has a watch cache",
    "watch-cache-sizes": "the watch cache measures itself",
}
#: the flags above that may stand without a value
_SWITCHES = frozenset(
    (
        "aggregator-reject-forwarding-redirect",
        "allow-privileged", "audit-log-batch-throttle-enable", "audit-webhook-batch-throttle-enable",
        "contention-profiling", "enable-aggregator-routing", "enable-garbage-collector",
        "enable-logs-handler", "logtostderr", "permit-address-sharing", "permit-port-sharing", "profiling",
        "shutdown-send-retry-after", "watch-cache",
    )
)  # fmt: skip
#: where the values of these flags are kept, for the warnings
DEST = "flags_without_effect"


class _Note(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None) -> None:
        setattr(namespace, DEST, (*getattr(namespace, DEST, ()), self.dest.replace("_", "-")))


def add(parser: argparse.ArgumentParser) -> None:
    """The flags of ``INERT`` that the parser does not have already; to be called last."""
    group = parser.add_argument_group("further flags of kube-apiserver", "are taken and have no effect, which is said at the start")
    parser.set_defaults(**{DEST: ()})
    for name in INERT:
        known: dict[str, argparse.Action] = parser._option_string_actions
        if f"--{name}" in known:
            continue
        optional: dict[str, str] = {"nargs": "?"} if name in _SWITCHES else {}
        options = ("-v", "--v") if name == "v" else (f"--{name}",)
        group.add_argument(*options, action=_Note, default=argparse.SUPPRESS, help=argparse.SUPPRESS, **optional)  # type: ignore[arg-type]


def warnings(flags: argparse.Namespace) -> list[str]:
    """A line for each flag that was given to no effect."""
    names = dict.fromkeys(getattr(flags, DEST, ()))
    found = [f"--{name} has no effect: {INERT[name]}" for name in names]
    gates = getattr(flags, "feature_gates", {})
    if gates:
        text = ", ".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
        found.append(f"--feature-gates has no effect ({text}): features are as they are by default in the version that is served")
    return found
