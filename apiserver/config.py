"""The API server's configuration: one frozen object, checked once, with kube-apiserver's and etcd's flag names (``_`` for ``-``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS

if TYPE_CHECKING:
    from apiserver.outbound.service_endpoints import Place


class StoreConfig(BaseModel):
    """Of the embedded store; names and meanings are etcd's. Sizes in bytes, times in milliseconds where the name does not say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Path
    wal_dir: Path | None = None
    name: str = "default"
    snapshot_count: int = Field(default=10_000, ge=1)
    snapshot_catchup_entries: int = Field(default=5000, ge=1)
    quota_backend_bytes: int = Field(default=2 * 1024**3, ge=0)
    auto_compaction_mode: Literal["periodic", "revision"] = "periodic"
    #: hours, a duration, or a number of revisions, by the mode; 0 is none
    auto_compaction_retention: str = "0"
    corrupt_check_time_seconds: float = Field(default=4 * 3600.0, ge=0)
    lease_checkpoint_interval_seconds: float = Field(default=300.0, ge=0)
    heartbeat_interval: int = Field(default=30, ge=1)
    election_timeout: int = Field(default=150, ge=5)
    max_request_bytes: int = Field(default=1_572_864, ge=1)
    #: name → peer URLs of all members at the first start; empty: this one alone
    initial_cluster: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    initial_cluster_state: Literal["new", "existing"] = "new"
    initial_cluster_token: str = "etcd-cluster"
    #: empty: no peers, now or later
    listen_peer_urls: tuple[str, ...] = ()
    initial_advertise_peer_urls: tuple[str, ...] = ()
    peer_cert_file: Path | None = None
    peer_key_file: Path | None = None
    peer_trusted_ca_file: Path | None = None
    #: the client port; empty: closed
    listen_client_urls: tuple[str, ...] = ()
    advertise_client_urls: tuple[str, ...] = ()
    cert_file: Path | None = None
    key_file: Path | None = None
    trusted_ca_file: Path | None = None
    client_cert_auth: bool = True
    #: calls under way at once on one connection of the client port
    max_concurrent_streams: int = Field(default=100_000, ge=1)
    #: how often a quiet watch that asked for it is told how far it is
    watch_progress_notify_seconds: float = Field(default=600.0, gt=0)
    #: leases end and take their keys with them
    expire_leases: bool = True
    #: skip fsync: for data that may be lost (``--ephemeral``)
    unsafe_no_fsync: bool = False


class EtcdConfig(BaseModel):
    """Of an external etcd cluster; files are PEM."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: URLs of client ports
    servers: tuple[str, ...]
    cafile: Path | None = None
    certfile: Path | None = None
    keyfile: Path | None = None


class OidcConfig(BaseModel):
    """One OpenID Connect issuer (``--oidc-*``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer_url: str
    client_id: str
    username_claim: str = "sub"
    #: None: the issuer's URL and ``#``, unless the claim is ``email``; ``-``: none
    username_prefix: str | None = None
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claim: dict[str, str] = Field(default_factory=dict)
    signing_algs: tuple[str, ...] = ("RS256",)
    ca_file: Path | None = None


class WebhookConfig(BaseModel):
    """A server that reviews tokens or access; ``config_file`` is a kubeconfig."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config_file: Path
    version: Literal["v1", "v1beta1"] = "v1beta1"
    #: how long a good and a bad answer hold
    authorized_ttl_seconds: float = Field(ge=0)
    unauthorized_ttl_seconds: float = Field(ge=0)


class RequestHeaderConfig(BaseModel):
    """An authenticating proxy in front of this server (``--requestheader-*``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client_ca_file: Path
    #: common names of its certificate; empty: every certificate of the authority
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...]
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_headers_prefix: tuple[str, ...] = ()


class AuditConfig(BaseModel):
    """Flags ``--audit-…``; sizes in megabytes, ages in days, 0 is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: None: the end of each request, without bodies
    policy_file: Path | None = None
    #: ``-`` is standard output; None: no log
    log_path: Path | None = None
    log_format: Literal["json", "legacy"] = "json"
    log_maxsize: int = Field(default=100, ge=0)
    log_maxage: int = Field(default=366, ge=0)
    log_maxbackup: int = Field(default=100, ge=0)
    log_compress: bool = False
    #: batch: a thread writes, requests never wait; blocking: it is written before the request goes on; strict: or the request fails
    log_mode: Literal["batch", "blocking", "blocking-strict"] = "batch"
    #: bytes of an event, beyond which it is told without its objects; 0: any
    log_truncate_event_bytes: int = Field(default=0, ge=0)
    webhook_truncate_event_bytes: int = Field(default=0, ge=0)
    #: a kubeconfig
    webhook_config_file: Path | None = None
    webhook_batch_max_size: int = Field(default=400, ge=1)
    webhook_batch_max_wait_seconds: float = Field(default=30.0, gt=0)
    webhook_initial_backoff_seconds: float = Field(default=10.0, gt=0)

    @property
    def wanted(self) -> bool:
        """Whether there is anybody to tell."""
        return self.log_path is not None or self.webhook_config_file is not None


class ServerConfig(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    bind_address: str = "127.0.0.1"
    #: of this server in the kubernetes service; "": the address that it listens on
    advertise_address: str = ""
    secure_port: int = Field(default=6443, ge=0, le=65535)
    kubernetes_version: str = KUBERNETES_VERSIONS[-1]
    #: API versions switched on and off: ``resources.runtime_config``
    runtime_config: str = ""
    #: holds ca.crt/.key, apiserver.crt/.key, sa.key/.pub, front-proxy …
    cert_dir: Path
    tls_cert_file: Path
    tls_private_key_file: Path
    tls_min_version: str = "VersionTLS12"
    tls_cipher_suites: tuple[str, ...] = ()
    #: ``cert,key`` or ``cert,key:name,…`` each
    tls_sni_cert_key: tuple[str, ...] = ()
    client_ca_file: Path | None = None
    #: what the API server shows to extension API servers; None: they know it not, and let it in as anonymous at most
    proxy_client_cert_file: Path | None = None
    proxy_client_key_file: Path | None = None
    token_auth_file: Path | None = None
    anonymous_auth: bool = True
    audit: AuditConfig = AuditConfig()
    #: the first one signs, tokens of all are accepted
    service_account_issuer: tuple[str, ...] = ("https://kubernetes.default.svc.cluster.local",)
    #: files of public or private keys that tokens are checked with
    service_account_key_file: tuple[Path, ...]
    service_account_signing_key_file: Path
    #: where other servers find the keys, if not here
    service_account_jwks_uri: str = ""
    #: 0: as long as a client asks for
    service_account_max_token_expiration_seconds: int = Field(default=0, ge=0)
    #: tokens that were mounted automatically work for a year, for programs that never read them again
    service_account_extend_token_expiration: bool = True
    #: a ServiceAccount token is good only as long as its account is there
    service_account_lookup: bool = True
    enable_bootstrap_token_auth: bool = True
    api_audiences: tuple[str, ...] = ()
    #: an AuthenticationConfiguration: JWT issuers and anonymous requests
    authentication_config: Path | None = None
    oidc: OidcConfig | None = None
    authentication_token_webhook: WebhookConfig | None = None
    request_header: RequestHeaderConfig | None = None
    authorization_mode: tuple[str, ...] = ("Node", "RBAC")
    #: an AuthorizationConfiguration, in place of the modes
    authorization_config: Path | None = None
    authorization_webhook: WebhookConfig | None = None
    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    #: AdmissionConfiguration: what plugins are told beyond their flags
    admission_control_config_file: Path | None = None
    #: where programs listen that webhooks name by their service: ``NAMESPACE/NAME[:PORT]=HOST:PORT``
    service_url: tuple[str, ...] = ()
    service_cluster_ip_range: str = "10.96.0.0/12"
    service_node_port_range: str = "30000-32767"
    enable_priority_and_fairness: bool = True
    max_requests_inflight: int = Field(default=400, ge=0)
    max_mutating_requests_inflight: int = Field(default=200, ge=0)
    #: of a request body, kube-apiserver's limit
    max_request_body_bytes: int = 3 * 1024 * 1024
    request_timeout_seconds: float = 60.0
    min_request_timeout_seconds: int = 1800
    event_ttl_seconds: int = 3600
    #: how long old versions are kept at least, for watches and pages to go on with; 0: for ever
    etcd_compaction_interval_seconds: float = Field(default=300.0, ge=0)
    #: EncryptionConfiguration; None: values are stored in the clear
    encryption_provider_config: Path | None = None
    encryption_provider_config_automatic_reload: bool = False
    #: of the keys of all objects; another than the usual one lets several clusters share an etcd
    etcd_prefix: str = Field(default="/registry", pattern=r"^/[^/]+(/[^/]+)*$")
    #: the store, in place of the embedded one
    etcd: EtcdConfig | None = None
    #: no write is taken, and the server itself writes nothing: for looking at a backup
    read_only: bool = False
    #: custom objects are read at the start too, and not when they are first asked for, so that what cannot be read is known
    load_everything: bool = False
    store: StoreConfig

    def service_addresses(self) -> dict[str, Place]:
        """``service_url`` by service. Raises ValueError."""
        if not self.service_url:
            return {}
        from apiserver.webhooks.addresses import parse_given

        return parse_given(self.service_url)
