"""The serving certificate is replaced while the server runs."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import ssl
from pathlib import Path

import pytest

from apiserver import tls
from apiserver.cli.pki import Pki, Subject
from storage.tls import expiry_seconds
from tests.apiserver.api import config_in

NOW = datetime.datetime.now(datetime.UTC)


async def test_new_connections_see_the_new_certificate_and_a_bad_client_certificate_still_ends_in_no_alert(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    first, second = pki.serving("a", "127.0.0.1", "10.0.0.1"), pki.serving("b", "127.0.0.1", "10.0.0.1")
    stranger = Pki(tmp_path / "other", NOW).client("x", Subject("stranger"))
    seen: list[bytes | None] = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.write(b"ok")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.server_context(first.certificate, first.key, pki.ca.certificate))

    async def shown(server_hostname: str | None) -> bytes:
        context = ssl.create_default_context(cafile=pki.ca.certificate)
        context.check_hostname = server_hostname is not None
        context.load_cert_chain(stranger.certificate, stranger.key)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_hostname or "")
        assert await reader.read() == b"ok"
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(certificate)

    async with server:
        assert await shown("localhost") == ssl.PEM_cert_to_DER_cert(first.certificate.read_text())
        shutil.copy(second.certificate, first.certificate)
        shutil.copy(second.key, first.key)
        replaced = ssl.PEM_cert_to_DER_cert(second.certificate.read_text())
        assert await shown("localhost") == replaced
        assert await shown(None) == replaced
        assert seen == [ssl.PEM_cert_to_DER_cert(stranger.certificate.read_text())] * 3
        first.certificate.write_text("nonsense")
        assert await shown("localhost") == replaced


def test_a_certificate_that_has_expired_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pki = Pki(tmp_path, NOW)
    pair = pki.serving("a", "127.0.0.1", "10.0.0.1")
    config = config_in(tmp_path).model_copy(update={"tls_cert_file": pair.certificate, "client_ca_file": pki.ca.certificate})
    ends = expiry_seconds(pair.certificate)
    tls.warn_of_expired_certificates(config, ends - 1)
    assert not caplog.records
    tls.warn_of_expired_certificates(config, ends)
    [record] = caplog.records
    assert f"purpose=apiserver file={pair.certificate}" in record.getMessage()
