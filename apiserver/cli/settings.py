"""From parsed flags and a data directory to the frozen ``ServerConfig``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from pydantic import ValidationError

from apiserver import tls_settings
from apiserver.admission.chain import enabled_plugins
from apiserver.cli import access_flags, cluster_flags, pem_files, rereadable
from apiserver.cli.datadir import DataDir, DataDirError, has_authorities, open_pki, share_pki
from apiserver.cli.errors import CommandError, UsageError
from apiserver.cli.pki import FRONT_PROXY_CLIENT, write_private
from apiserver.config import AuditConfig, EtcdConfig, RequestHeaderConfig, ServerConfig, StoreConfig
from apiserver.embedded_store import member_config
from apiserver.resources import runtime_config


def server_config(flags: argparse.Namespace, data_dir: DataDir) -> ServerConfig:
    """Raises one line that names the flag: DataDirError where a named file cannot be used, UsageError where a value is wrong."""
    rereadable.keep(flags)
    etcd = _etcd(flags)
    cluster_flags.check_shared_pki(flags, has_authorities(data_dir.path))
    if flags.pki_dir is not None:
        share_pki(data_dir.path, flags.pki_dir)
    serving = data_dir.serving(flags.bind_address, flags.service_cluster_ip_range, flags.advertise_address or "")
    cluster: dict[str, Any] = {}
    if etcd is None:
        cluster = cluster_flags.store_settings(flags, open_pki(data_dir.path), has_member=_has_member(flags, data_dir))
    _pair_in_cert_dir(flags)
    if bool(flags.tls_cert_file) != bool(flags.tls_private_key_file):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    if bool(flags.proxy_client_cert_file) != bool(flags.proxy_client_key_file):
        raise UsageError("--proxy-client-cert-file and --proxy-client-key-file go together")
    for flag in ("proxy_client_cert_file", "proxy_client_key_file"):
        _readable(flag, getattr(flags, flag))
    for flag in ("tls_cert_file", "tls_private_key_file", "client_ca_file"):
        _readable(flag, getattr(flags, flag))
    access = access_flags.access_settings(flags, serving.service_account.certificate, serving.service_account.key)
    if access.get("request_header") is None and flags.proxy_client_cert_file is None:
        access["request_header"] = _own_front_proxy(serving.front_proxy_ca)
    _check_pem(flags)
    _check_access(flags)
    try:
        config = ServerConfig(
            bind_address=flags.bind_address,
            advertise_address=flags.advertise_address or "",
            secure_port=flags.secure_port,
            kubernetes_version=flags.kubernetes_version,
            runtime_config=flags.runtime_config,
            cert_dir=data_dir.path / "pki",
            tls_cert_file=flags.tls_cert_file or serving.certificate,
            tls_private_key_file=flags.tls_private_key_file or serving.key,
            tls_min_version=flags.tls_min_version,
            tls_cipher_suites=flags.tls_cipher_suites,
            tls_sni_cert_key=tuple(flags.tls_sni_cert_key),
            client_ca_file=_client_ca(data_dir, serving.ca, flags.client_ca_file),
            proxy_client_cert_file=flags.proxy_client_cert_file or serving.front_proxy_client.certificate,
            proxy_client_key_file=flags.proxy_client_key_file or serving.front_proxy_client.key,
            audit=_audit(flags),
            enable_admission_plugins=flags.enable_admission_plugins,
            disable_admission_plugins=flags.disable_admission_plugins,
            admission_control_config_file=flags.admission_control_config_file,
            service_url=flags.service_url,
            service_cluster_ip_range=flags.service_cluster_ip_range,
            **access,
            service_node_port_range=flags.service_node_port_range,
            enable_priority_and_fairness=flags.enable_priority_and_fairness == "true",
            max_requests_inflight=flags.max_requests_inflight,
            max_mutating_requests_inflight=flags.max_mutating_requests_inflight,
            request_timeout_seconds=flags.request_timeout,
            min_request_timeout_seconds=flags.min_request_timeout,
            event_ttl_seconds=int(flags.event_ttl),
            etcd_compaction_interval_seconds=flags.etcd_compaction_interval,
            etcd_prefix=flags.etcd_prefix,
            encryption_provider_config=flags.encryption_provider_config,
            encryption_provider_config_automatic_reload=flags.encryption_provider_config_automatic_reload == "true",
            etcd=etcd,
            read_only=flags.read_only,
            load_everything=flags.read_only or flags.from_snapshot is not None,
            store=StoreConfig(
                data_dir=data_dir.path,
                wal_dir=flags.wal_dir,
                name=flags.name,
                snapshot_count=flags.snapshot_count,
                snapshot_catchup_entries=flags.snapshot_catchup_entries,
                quota_backend_bytes=flags.quota_backend_bytes,
                auto_compaction_mode=flags.auto_compaction_mode,
                auto_compaction_retention=flags.auto_compaction_retention,
                corrupt_check_time_seconds=flags.corrupt_check_time,
                lease_checkpoint_interval_seconds=flags.lease_checkpoint_interval,
                heartbeat_interval=flags.heartbeat_interval,
                election_timeout=flags.election_timeout,
                max_request_bytes=flags.max_request_bytes,
                expire_leases=not flags.read_only,
                unsafe_no_fsync=flags.ephemeral or flags.unsafe_no_fsync,
                **cluster,
            ),
        )
    except ValidationError as error:
        first = error.errors()[0]
        flag = str(first["loc"][-1]).replace("_", "-")
        raise UsageError(f"--{flag}: {first['msg']}") from error
    try:
        member_config(config.store)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return config


def _pair_in_cert_dir(flags: argparse.Namespace) -> None:
    """The serving pair of ``--cert-dir``, where it is there and no other was named."""
    if flags.cert_dir is None or flags.tls_cert_file or flags.tls_private_key_file:
        return
    certificate, key = (flags.cert_dir / f"apiserver.{ending}" for ending in ("crt", "key"))
    if certificate.exists() and key.exists():
        flags.tls_cert_file, flags.tls_private_key_file = certificate, key


def _own_front_proxy(authority: Path) -> RequestHeaderConfig:
    """What this server says of users to extension API servers it believes as well where it comes with that certificate (as kubeadm sets it
    up); and extension API servers learn of it from the ConfigMap ``extension-apiserver-authentication``."""
    return RequestHeaderConfig(
        client_ca_file=authority,
        allowed_names=(FRONT_PROXY_CLIENT,),
        username_headers=("X-Remote-User",),
        uid_headers=("X-Remote-Uid",),
        group_headers=("X-Remote-Group",),
        extra_headers_prefix=("X-Remote-Extra-",),
    )


def _has_member(flags: argparse.Namespace, data_dir: DataDir) -> bool:
    """Whether there is a log already, which knows its members."""
    log = flags.wal_dir if flags.wal_dir is not None else data_dir.path / "member" / "wal"
    return log.is_dir() and any(log.glob("*.wal"))


def _etcd(flags: argparse.Namespace) -> EtcdConfig | None:
    """Raises UsageError, DataDirError for what etcd's client could not work with."""
    files = ("etcd_cafile", "etcd_certfile", "etcd_keyfile")
    if not flags.etcd_servers:
        for flag in files:
            if getattr(flags, flag) is not None:
                raise UsageError(f"--{flag.replace('_', '-')} is of use only with --etcd-servers")
        return None
    if cluster_flags.is_clustered(flags):
        raise UsageError("--etcd-servers and --initial-cluster exclude each other: the store is etcd's, or of the members named")
    for flag in ("initial_cluster", "listen_peer_urls", "initial_advertise_peer_urls", "listen_client_urls", "advertise_client_urls"):
        if getattr(flags, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is of the embedded store, and --etcd-servers takes another in its place")
    from storage.etcdclient.config import ClientConfig

    for flag in files:
        _readable(flag, getattr(flags, flag))
    try:
        ClientConfig(
            endpoints=flags.etcd_servers, ca_file=flags.etcd_cafile, cert_file=flags.etcd_certfile, key_file=flags.etcd_keyfile
        ).validate()
    except ValueError as error:
        raise UsageError(f"--etcd-servers: {error}") from error
    return EtcdConfig(servers=flags.etcd_servers, cafile=flags.etcd_cafile, certfile=flags.etcd_certfile, keyfile=flags.etcd_keyfile)


def _check_admission_configuration(file: Path | None) -> None:
    if file is not None:
        from apiserver.admission import configuration

        configuration.load(file)


def _check_service_urls(texts: tuple[str, ...]) -> None:
    if texts:
        from apiserver.webhooks.addresses import parse_given

        parse_given(texts)


def _check_access(flags: argparse.Namespace) -> None:
    """What would otherwise only fail while the server is built."""
    checks: tuple[tuple[type[CommandError], str, Callable[[], object]], ...] = (
        (UsageError, "--runtime-config", lambda: runtime_config.parse(flags.runtime_config)),
        (
            UsageError,
            "--enable-admission-plugins, --disable-admission-plugins",
            lambda: enabled_plugins(flags.enable_admission_plugins, flags.disable_admission_plugins),
        ),
        (UsageError, "--tls-min-version", lambda: tls_settings.check_version(flags.tls_min_version)),
        (UsageError, "--tls-cipher-suites", lambda: tls_settings.check_ciphers(flags.tls_cipher_suites)),
        (UsageError, "--tls-sni-cert-key", lambda: _sni(flags.tls_sni_cert_key)),
        (DataDirError, "--encryption-provider-config", lambda: _encryption(flags.encryption_provider_config)),
        (
            DataDirError,
            f"--admission-control-config-file {flags.admission_control_config_file}",
            lambda: _check_admission_configuration(flags.admission_control_config_file),
        ),
        (UsageError, "--service-url", lambda: _check_service_urls(flags.service_url)),
        (DataDirError, "--audit-policy-file", lambda: _audit_policy(flags.audit_policy_file)),
        (DataDirError, f"--audit-log-path {flags.audit_log_path}", lambda: _appendable(flags.audit_log_path)),
        (DataDirError, "--audit-webhook-config-file", lambda: _kubeconfig(flags.audit_webhook_config_file)),
    )
    for kind, flag, check in checks:
        try:
            check()
        except (ValueError, OSError) as error:
            if isinstance(error, OSError):
                raise DataDirError(f"{flag}: {error.strerror}") from error
            raise kind(f"{flag}: {error}") from error


def _check_pem(flags: argparse.Namespace) -> None:
    """Files of keys and certificates hold what they should."""
    certificate, key = flags.tls_cert_file, flags.tls_private_key_file
    if certificate is not None:
        pem_files.check_pair("--tls-cert-file", certificate, "--tls-private-key-file", key, DataDirError)
    front, front_key = flags.proxy_client_cert_file, flags.proxy_client_key_file
    if front is not None:
        pem_files.check_pair("--proxy-client-cert-file", front, "--proxy-client-key-file", front_key, DataDirError)
    checks: tuple[tuple[str, Path | None, Callable[[bytes], object], str], ...] = (
        ("client-ca-file", flags.client_ca_file, x509.load_pem_x509_certificates, "certificate"),
        (
            "service-account-signing-key-file",
            flags.service_account_signing_key_file,
            lambda content: serialization.load_pem_private_key(content, None),
            "private key without a password",
        ),
        ("etcd-cafile", flags.etcd_cafile, x509.load_pem_x509_certificates, "certificate"),
        ("etcd-certfile", flags.etcd_certfile, x509.load_pem_x509_certificates, "certificate"),
        (
            "etcd-keyfile",
            flags.etcd_keyfile,
            lambda content: serialization.load_pem_private_key(content, None),
            "private key without a password",
        ),
    )
    for flag, path, load, what in checks:
        if path is not None:
            pem_files.check(f"--{flag}", path, load, what, DataDirError)


def _encryption(path: Path | None) -> None:
    if path is not None:
        from apiserver.objectstore.encryption import configuration

        configuration.parse(path.read_bytes(), str(path))


def _sni(pairs: Sequence[str]) -> None:
    for text in pairs:
        pair = tls_settings.parse_pair(text)
        for path in (pair.certificate, pair.key):
            _readable("tls_sni_cert_key", path)
        pem_files.check_pair("--tls-sni-cert-key", pair.certificate, "--tls-sni-cert-key", pair.key, DataDirError)


def _audit(flags: argparse.Namespace) -> AuditConfig:
    return AuditConfig(
        policy_file=flags.audit_policy_file,
        log_path=flags.audit_log_path,
        log_format=flags.audit_log_format,
        log_maxsize=flags.audit_log_maxsize,
        log_maxage=flags.audit_log_maxage,
        log_maxbackup=flags.audit_log_maxbackup,
        log_compress=flags.audit_log_compress == "true",
        log_mode=flags.audit_log_mode,
        log_truncate_event_bytes=flags.audit_log_truncate_max_event_size if flags.audit_log_truncate_enabled == "true" else 0,
        webhook_truncate_event_bytes=flags.audit_webhook_truncate_max_event_size if flags.audit_webhook_truncate_enabled == "true" else 0,
        webhook_config_file=flags.audit_webhook_config_file,
        webhook_batch_max_size=flags.audit_webhook_batch_max_size,
        webhook_batch_max_wait_seconds=flags.audit_webhook_batch_max_wait,
        webhook_initial_backoff_seconds=flags.audit_webhook_initial_backoff,
    )


def _audit_policy(path: Path | None) -> None:
    if path is not None:
        from apiserver.audit import policy

        policy.parse(path.read_bytes(), str(path))


def _kubeconfig(path: Path | None) -> None:
    if path is not None:
        from apiserver.outbound import kubeconfig

        kubeconfig.load(path)


def _appendable(path: Path | None) -> None:
    if path is not None and path != Path("-"):
        with path.open("ab"):
            path.chmod(0o600)


def _client_ca(data_dir: DataDir, own: Path, further: Path | None) -> Path:
    """The bundle of CAs whose client certificates are accepted: our own, which signed the admin's, and the one given."""
    if further is None:
        return own
    bundle = data_dir.path / "pki" / "client-ca-bundle.crt"
    write_private(bundle, own.read_bytes() + b"\n" + further.read_bytes())
    return bundle


def _readable(flag: str, path: Path | None) -> None:
    pem_files.readable(f"--{flag.replace('_', '-')}", path, DataDirError)
