"""Flags that cannot work are told in one line before anything is started."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from apiserver.cli.errors import CommandError
from apiserver.cli.settings import _check_access


def flags(**given: object) -> argparse.Namespace:
    usual: dict[str, object] = {
        "enable_admission_plugins": (),
        "disable_admission_plugins": (),
        "audit_log_path": None,
        "encryption_provider_config": None,
        "service_url": (),
        "audit_policy_file": None,
        "tls_min_version": "VersionTLS12",
        "tls_cipher_suites": (),
        "tls_sni_cert_key": (),
        "audit_webhook_config_file": None,
        "admission_control_config_file": None,
        "runtime_config": "",
    }
    return argparse.Namespace(**(usual | given))


def test_usual_flags_are_fine(tmp_path: Path) -> None:
    _check_access(flags(audit_log_path=tmp_path / "audit.log", enable_admission_plugins=("NodeRestriction",)))
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"enable_admission_plugins": ("Foo",)}, "--disable-admission-plugins: admission plugins are unknown: Foo"),
        ({"service_url": ("hook=a:1",)}, "--service-url: 'hook=a:1' is not NAMESPACE/NAME[:PORT]=HOST:PORT"),
        ({"audit_log_path": Path("/nonexistent/x")}, "--audit-log-path /nonexistent/x: No such file or directory"),
    ],
)
def test_others_are_told_with_their_flag(given: dict[str, object], told: str) -> None:
    with pytest.raises(CommandError) as caught:
        _check_access(flags(**given))
    assert told in str(caught.value) and "\n" not in str(caught.value)
