"""Certificates that are replaced while a server runs."""

from __future__ import annotations

import logging
import shutil
import ssl
from pathlib import Path

import pytest

from storage import tls
from tests.storage.member.peers import tls_files


def copy(source: tls.TlsFiles, target: tls.TlsFiles, *, key: bool = True) -> None:
    shutil.copy(source.certificate, target.certificate)
    if key:
        shutil.copy(source.key, target.key)


def test_contexts_are_built_anew_once_the_files_have_changed(tmp_path: Path) -> None:
    first, second = tls_files(tmp_path / "a"), tls_files(tmp_path / "b")
    reloaded = tls.mutual(first, purpose="test")
    before = reloaded.current()
    assert reloaded.current() is before
    copy(second, first)
    shutil.copy(second.trusted_ca, first.trusted_ca)
    after = reloaded.current()
    assert after is not before and reloaded.current() is after
    assert after.client.get_ca_certs() != before.client.get_ca_certs()


def test_a_certificate_without_its_key_keeps_the_old_one_with_one_warning_until_both_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = tmp_path / "shared"
    first, second = tls_files(tmp_path / "a", shared), tls_files(tmp_path / "b", shared)
    reloaded = tls.mutual(first, purpose="the port of test")
    before = reloaded.current()
    with caplog.at_level(logging.WARNING):
        copy(second, first, key=False)
        assert reloaded.current() is before and reloaded.current() is before
    (record,) = caplog.records
    assert "the port of test" in record.getMessage() and "old ones stay" in record.getMessage()
    copy(second, first)
    assert reloaded.current() is not before


@pytest.mark.parametrize("content", ["", "nonsense", None])
def test_a_broken_or_missing_file_keeps_the_old_one(tmp_path: Path, content: str | None) -> None:
    files = tls_files(tmp_path)
    reloaded = tls.mutual(files, purpose="test")
    before = reloaded.current()
    if content is None:
        files.certificate.unlink()
    else:
        files.certificate.write_text(content)
    assert reloaded.current() is before


def test_unusable_files_are_refused_at_first(tmp_path: Path) -> None:
    files = tls_files(tmp_path)
    files.key.write_text("nonsense")
    with pytest.raises(ssl.SSLError):
        tls.mutual(files, purpose="test")


def test_the_gauge_tells_when_each_certificate_ends_and_follows_a_replacement(tmp_path: Path) -> None:
    first, second = tls_files(tmp_path / "a"), tls_files(tmp_path / "b")
    expiry = tls.CertificateExpiry()
    expiry.add("peer", first.certificate)
    expiry.add("ca", first.trusted_ca)
    expiry.add("gone", tmp_path / "nothing.crt")
    ca, peer = expiry.samples()
    assert (ca[0], ca[1]) == (str(first.trusted_ca), "ca") and (peer[0], peer[1]) == (str(first.certificate), "peer")
    assert ca[2] > peer[2] == tls.expiry_seconds(first.certificate)
    copy(second, first)
    assert expiry.samples()[1][2] == tls.expiry_seconds(second.certificate)
