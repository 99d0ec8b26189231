"""The serving certificate is replaced while the server runs."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver import tls
from apiserver.authentication.x509 import X509Authenticator
from apiserver.cli.pki import Pki, Subject
from apiserver.handler_chain import PEER_CERTIFICATE_KEY, PEER_INTERMEDIATES_KEY
from apiserver.http_listener import HttpListener
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


def _issued(
    name: str, issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None, *, ca: bool
) -> tuple[bytes, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_name, issuer_key = issuer or (subject, key)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer_name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(NOW - datetime.timedelta(days=1))
    builder = builder.not_valid_after(NOW + datetime.timedelta(days=1)).add_extension(x509.BasicConstraints(ca, None), critical=True)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), key


async def test_the_certificates_that_a_client_sends_along_arrive_and_are_no_part_of_other_connections(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    serving = pki.serving("a", "127.0.0.1", "10.0.0.1")
    root, root_key = _issued("root", None, ca=True)
    root_name = x509.load_pem_x509_certificate(root).subject
    middle, middle_key = _issued("middle", (root_name, root_key), ca=True)
    leaf, leaf_key = _issued("ann", (x509.load_pem_x509_certificate(middle).subject, middle_key), ca=False)
    key = leaf_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = {"chain": leaf + middle + key, "leaf": leaf + key}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    seen: list[tuple[bytes | None, tuple[bytes, ...]]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope[PEER_CERTIFICATE_KEY], scope[PEER_INTERMEDIATES_KEY]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    listener = socket.create_server(("127.0.0.1", 0))
    http = HttpListener(app, listener, tls.server_context(serving.certificate, serving.key, pki.ca.certificate))
    await http.start()
    try:
        for name in ("chain", "leaf", ""):
            context = ssl.create_default_context(cafile=pki.ca.certificate)
            context.check_hostname = False
            if name:
                context.load_cert_chain(tmp_path / name)
            await asyncio.to_thread(_ask, context, listener.getsockname(), resumptions=name == "chain")
    finally:
        await http.stop()
    ann = ssl.PEM_cert_to_DER_cert(leaf.decode())
    whole = (ann, (ssl.PEM_cert_to_DER_cert(middle.decode()),))
    assert seen == [whole, whole, (ann, ()), (None, ())]
    authenticator = X509Authenticator([x509.load_pem_x509_certificate(root)], time.time)
    user = authenticator.authenticate_certificate(*next((der, sent) for der, sent in seen if der is not None))
    assert user is not None and user.name == "ann"


def _ask(context: ssl.SSLContext, address: tuple[str, int], *, resumptions: bool) -> None:
    """One request, and another one on a connection that resumes the session of the first: a ticket holds no more than the certificate."""
    session: ssl.SSLSession | None = None
    for _ in range(1 + resumptions):
        with socket.create_connection(address) as plain, context.wrap_socket(plain, session=session) as connection:
            assert connection.session_reused is (session is not None)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(64).startswith(b"HTTP/1.1 200")
            session = connection.session
