"""The command line's flags: names, meanings, parsing. Pure but for argparse's own printing.

``Parser`` says what is wrong in one line and exits with status 2; abbreviations of flags are refused, so that a new flag never
changes what an old command means.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
import sys
from pathlib import Path
from typing import NoReturn

from apiserver.cli import access_flags, cluster_flags, feature_gates, upstream_flags
from apiserver.cli.go_values import Accumulate, switch
from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.machinery.names import dns1123_subdomain

USAGE_ERROR = 2
DEFAULT_DATA_DIR = Path("sampan-data")
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s))")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
#: more hollow nodes than this in one process are refused: each renews a lease and holds a watch
NODES_MAX = 500
#: more voters make every write slower and survive what never happens (etcd's advice)
MEMBERS_MAX = 7


class Parser(argparse.ArgumentParser):
    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        sys.exit(USAGE_ERROR)


def duration(text: str) -> float:
    """Seconds of a Go duration such as ``40s`` or ``1h30m``."""
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: write for example 40s, 5m or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"invalid port {text!r}: 1 to 65535, or 0 for a free one")
    return int(text)


def count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"invalid number {text!r}")
    return int(text)


def node_count(text: str) -> int:
    number = count(text)
    if number > NODES_MAX:
        raise argparse.ArgumentTypeError(f"{number} nodes are too many for one process, at most {NODES_MAX}")
    return number


def member_count(text: str) -> int:
    number = count(text)
    if not 1 <= number <= MEMBERS_MAX:
        raise argparse.ArgumentTypeError(f"invalid number of members {text!r}: 1 to {MEMBERS_MAX}")
    return number


def address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"invalid IP address {text!r}: write for example 127.0.0.1, 0.0.0.0 or ::") from error
    return text


def networks(text: str) -> str:
    """One range of addresses, or two of different families with a comma between."""
    parts = text.split(",")
    try:
        families = {ipaddress.ip_network(part).version for part in parts}
    except ValueError:
        families = set()
    if not families or len(families) != len(parts):
        raise argparse.ArgumentTypeError(f"invalid range of addresses {text!r}: write for example 10.96.0.0/12 or 10.96.0.0/12,fd00::/108")
    return text


def port_range(text: str) -> str:
    low, dash, high = text.partition("-")
    if not dash or not (low.isdigit() and high.isdigit() and 0 < int(low) <= int(high) <= 65535):
        raise argparse.ArgumentTypeError(f"invalid range of ports {text!r}: write for example 30000-32767")
    return text


def key_prefix(text: str) -> str:
    parts = text.removesuffix("/").split("/")
    if len(parts) < 2 or parts[0] or not all(parts[1:]):
        raise argparse.ArgumentTypeError(f"invalid prefix {text!r}: write for example /registry or /clusters/a")
    return "/".join(parts)


def node_name(text: str) -> str:
    problems = dns1123_subdomain(text)
    if problems:
        raise argparse.ArgumentTypeError(f"invalid name {text!r}: {problems[0]}")
    return text


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("--data-dir", type=Path, default=DEFAULT_DATA_DIR, help="store, keys, kubeconfigs (default ./sampan-data)")


def add_server_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the API server and its embedded store, as kube-apiserver and etcd name them."""
    add_data_flags(parser)
    parser.add_argument("--ephemeral", action="store_true", help="use a temporary directory, removed at the end, and skip fsync")
    parser.add_argument(
        "--from-snapshot", type=Path, metavar="FILE",
        help="begin with what is in this snapshot of a cluster's etcd, in a new data directory (with --read-only: a temporary one)",
    )  # fmt: skip
    parser.add_argument("--skip-hash-check", action="store_true", help="take a --from-snapshot without a hash, or with a wrong one")
    parser.add_argument("--read-only", action="store_true", help="refuse writes and write nothing, without controllers: for looking at it")
    parser.add_argument(
        "--kubernetes-version", choices=KUBERNETES_VERSIONS, default=KUBERNETES_VERSIONS[-1], metavar="1.NN",
        help=f"which Kubernetes is served, {KUBERNETES_VERSIONS[0]} to {KUBERNETES_VERSIONS[-1]} (default the newest)",
    )  # fmt: skip
    serving = parser.add_argument_group("serving")
    serving.add_argument("--bind-address", type=address, default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serving.add_argument(
        "--advertise-address", type=address, help="address of this server in the kubernetes service (default as --bind-address)"
    )
    serving.add_argument(
        "--cert-dir", type=Path, metavar="DIR",
        help="where apiserver.crt and apiserver.key are, to serve with; without --data-dir the data is there too",
    )  # fmt: skip
    serving.add_argument("--secure-port", type=port, default=6443, help="HTTPS port; 0 picks a free one (default 6443)")
    serving.add_argument("--tls-cert-file", type=Path, help="serving certificate (default: made in the data directory)")
    serving.add_argument("--tls-private-key-file", type=Path, help="its key")
    serving.add_argument("--tls-min-version", default="VersionTLS12", help="VersionTLS10 to VersionTLS13 (default VersionTLS12)")
    serving.add_argument(
        "--tls-cipher-suites", type=names, action=Accumulate, default=(), help="Go's names of those of TLS 1.2 (default OpenSSL's choice)"
    )
    serving.add_argument(
        "--tls-sni-cert-key", action="append", default=[], metavar="CERT,KEY[:NAME,…]",
        help="a certificate for these server names, * for a first label (default the certificate's own names); several times",
    )  # fmt: skip
    serving.add_argument(
        "--enable-priority-and-fairness", choices=("true", "false"), nargs="?", const="true", default="true",
        help="share the requests under way at once between priority levels, and queue those beyond it (default true)",
    )  # fmt: skip
    serving.add_argument("--max-requests-inflight", type=count, default=400, help="reads under way at once (default 400)")
    serving.add_argument(
        "--max-mutating-requests-inflight", type=count, default=200,
        help="writes under way at once (default 200); with priority and fairness the sum of both is shared out",
    )  # fmt: skip
    serving.add_argument("--request-timeout", type=duration, default=60.0, help="of requests other than watches (default 60s)")
    serving.add_argument("--min-request-timeout", type=count, default=1800, help="least seconds before a watch is ended (default 1800)")
    serving.add_argument("--event-ttl", type=duration, default=3600.0, help="how long events are kept (default 1h)")
    serving.add_argument(
        "--etcd-compaction-interval",
        type=duration,
        default=300.0,
        help="how long old versions are kept at least, for watches to go on with (default 5m; 0s keeps them for ever)",
    )
    serving.add_argument(
        "--encryption-provider-config", type=Path, metavar="FILE", help="EncryptionConfiguration: encrypt objects in the store (default no)"
    )
    serving.add_argument(
        "--encryption-provider-config-automatic-reload", choices=("true", "false"), nargs="?", const="true", default="false",
        help="look at that file again each minute (default false)",
    )  # fmt: skip
    serving.add_argument("--service-cluster-ip-range", type=networks, default="10.96.0.0/12", help="CIDR of service addresses")
    serving.add_argument("--service-node-port-range", type=port_range, default="30000-32767", help="ports of NodePort services")
    access_flags.add_access_flags(parser, duration, names)
    access = parser.add_argument_group("API and admission")
    access.add_argument("--proxy-client-cert-file", type=Path, help="certificate shown to extension API servers (default: made)")
    access.add_argument("--proxy-client-key-file", type=Path, help="its key")
    access.add_argument(
        "--runtime-config",
        action=Accumulate,
        default="",
        metavar="GROUP/VERSION=BOOL,…",
        help="switch API versions on and off: api/beta=true, resource.k8s.io/v1beta1=true, …",
    )
    access.add_argument(
        "--feature-gates", type=feature_gates.parse, action=Accumulate, default={}, metavar="GATE=BOOL,…",
        help="taken for the sake of kube-apiserver's command lines; features are as they are by default in the version served",
    )  # fmt: skip
    access.add_argument("--enable-admission-plugins", type=names, action=Accumulate, default=(), help="plugins besides the default ones")
    access.add_argument("--disable-admission-plugins", type=names, action=Accumulate, default=(), help="default plugins to leave out")
    access.add_argument(
        "--admission-control-config-file", type=Path, help="AdmissionConfiguration, of PodSecurity, ResourceQuota, webhooks"
    )
    access.add_argument(
        "--service-url",
        type=names,
        action=Accumulate,
        default=(),
        metavar="NS/NAME=HOST:PORT,…",
        help="where webhooks listen that are named by their service",
    )
    _add_audit_flags(parser)
    etcd = parser.add_argument_group("store: an external etcd, in place of the embedded one")
    etcd.add_argument(
        "--etcd-servers",
        type=names,
        action=Accumulate,
        default=(),
        help="URLs of its client ports, with commas between: https://host:2379,…",
    )
    etcd.add_argument("--etcd-cafile", type=Path, help="whom to trust as etcd (default: the system's authorities)")
    etcd.add_argument("--etcd-certfile", type=Path, help="the certificate that we show to etcd")
    etcd.add_argument("--etcd-keyfile", type=Path, help="its key")
    etcd.add_argument("--etcd-prefix", type=key_prefix, default="/registry", help="what all keys begin with (default /registry)")
    store = parser.add_argument_group("store: the embedded one")
    store.add_argument("--name", default="default", help="this member's name")
    store.add_argument("--wal-dir", type=Path, help="where the write-ahead log is (default in the data directory)")
    store.add_argument("--snapshot-count", type=count, default=10_000, help="applied entries between snapshots of the log")
    store.add_argument(
        "--snapshot-catchup-entries", type=count, default=5000, help="entries kept for members that lag; beyond it they get the database"
    )
    store.add_argument("--quota-backend-bytes", type=count, default=2 * 1024**3, help="size at which writes are refused (default 2 GiB)")
    store.add_argument("--auto-compaction-mode", choices=("periodic", "revision"), default="periodic", help="what the retention counts")
    store.add_argument("--auto-compaction-retention", default="0", help="hours, 30m or so, or revisions to keep (default 0: all)")
    store.add_argument("--corrupt-check-time", type=duration, default=4 * 3600.0, help="between comparisons of members (default 4h)")
    store.add_argument("--lease-checkpoint-interval", type=duration, default=300.0, help="how often long leases are noted (default 5m)")
    store.add_argument("--heartbeat-interval", type=count, default=30, help="milliseconds")
    store.add_argument("--election-timeout", type=count, default=150, help="milliseconds")
    store.add_argument("--unsafe-no-fsync", action="store_true", help="acknowledge writes before they are on disk: for tests")
    store.add_argument("--max-request-bytes", type=count, default=1_572_864, help="largest write (default 1.5 MiB)")
    store.add_argument("--max-concurrent-streams", type=count, default=100_000, help="calls at once on a connection of the client port")
    store.add_argument(
        "--watch-progress-notify-interval", type=duration, default=600.0, help="how often quiet watches of the client port that ask "
        "for it hear how far they are (default 10m)",
    )  # fmt: skip
    cluster_flags.add_cluster_flags(parser)
    upstream_flags.add(parser)


def _add_audit_flags(parser: argparse.ArgumentParser) -> None:
    audit = parser.add_argument_group("audit")
    audit.add_argument("--audit-policy-file", type=Path, help="audit.k8s.io/v1 Policy (default: the end of each request, without bodies)")
    audit.add_argument("--audit-log-path", type=Path, help="append events to this file, - is standard output (default: none)")
    audit.add_argument("--audit-log-format", choices=("json", "legacy"), default="json", help="of a line (default json)")
    audit.add_argument("--audit-log-maxsize", type=count, default=100, help="megabytes at which the file is rotated (default 100, 0 never)")
    audit.add_argument("--audit-log-maxage", type=count, default=366, help="days that rotated files are kept (default 366, 0 for ever)")
    audit.add_argument("--audit-log-maxbackup", type=count, default=100, help="rotated files to keep (default 100, 0 all)")
    audit.add_argument(
        "--audit-log-compress", choices=("true", "false"), nargs="?", const="true", default="false", help="gzip rotated files"
    )
    audit.add_argument(
        "--audit-log-mode", choices=("batch", "blocking", "blocking-strict"), default="batch",
        help="batch: requests never wait for the log; blocking: they do; blocking-strict: and fail without it (default batch)",
    )  # fmt: skip
    for sink in ("log", "webhook"):
        audit.add_argument(
            f"--audit-{sink}-truncate-enabled", choices=("true", "false"), nargs="?", const="true", default="false",
            help="leave the objects out of events that are too large",
        )  # fmt: skip
        audit.add_argument(
            f"--audit-{sink}-truncate-max-event-size", type=count, default=102_400, help="bytes of an event then (default 102400)"
        )
    audit.add_argument("--audit-webhook-config-file", type=Path, help="kubeconfig of a server that takes events")
    audit.add_argument("--audit-webhook-batch-max-size", type=count, default=400, help="events sent at once (default 400)")
    audit.add_argument("--audit-webhook-batch-max-wait", type=duration, default=30.0, help="for a batch to fill (default 30s)")
    audit.add_argument(
        "--audit-webhook-initial-backoff", type=duration, default=10.0, help="before a batch is sent again, then longer (default 10s)"
    )


def add_controller_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the controllers, as kube-controller-manager names them."""
    group = parser.add_argument_group("controllers")
    group.add_argument("--node-monitor-grace-period", type=duration, default=40.0, help="lease silence that makes a node Unknown")
    group.add_argument("--node-monitor-period", type=duration, default=5.0, help="between looks at the nodes (default 5s)")
    group.add_argument("--cluster-signing-duration", type=duration, default=365 * 86_400.0, help="longest life of a signed certificate")
    group.add_argument("--controllers", type=names, default=("*",), help='names to run; "*" is all, "-scheduler" leaves one out')
    group.add_argument(
        "--leader-elect", type=switch, nargs="?", const="true", default="true", metavar="BOOL", help="run only while holding the lease"
    )
