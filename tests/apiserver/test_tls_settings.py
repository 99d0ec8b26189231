"""TLS as the flags want it: versions, ciphers, certificates by server name."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import pytest

from apiserver import tls
from apiserver.cli.pki import Pki
from apiserver.tls_settings import TlsSettings, check_ciphers, check_version, choose, names_of, parse_pair

NOW = datetime.datetime.now(datetime.UTC)


class World:
    def __init__(self, directory: Path, settings: TlsSettings | None = None) -> None:
        self.pki = Pki(directory, NOW)
        self.pair = self.pki.serving("a", "127.0.0.1", "10.0.0.1")
        self.context = tls.server_context(self.pair.certificate, self.pair.key, self.pki.ca.certificate, settings or TlsSettings())

    async def handshake(self, name: str = "localhost", **client: object) -> tuple[str, str, bytes]:
        """(version, cipher, the server's certificate). Raises ssl.SSLError, ConnectionError."""

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=self.context) as server:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            for field, value in client.items():
                setattr(context, field, value)
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
            await reader.read()
            found: ssl.SSLObject = writer.get_extra_info("ssl_object")
            out = (found.version() or "", (found.cipher() or ("",))[0], found.getpeercert(binary_form=True) or b"")
            writer.close()
            return out


async def test_older_versions_than_the_least_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path, TlsSettings(min_version="VersionTLS13"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await world.handshake(maximum_version=ssl.TLSVersion.TLSv1_2)
    assert (await world.handshake())[0] == "TLSv1.3"
    usual = World(tmp_path / "b")
    assert (await usual.handshake(maximum_version=ssl.TLSVersion.TLSv1_2))[0] == "TLSv1.2"


async def test_only_the_chosen_ciphers_are_spoken(tmp_path: Path) -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")
    world = World(tmp_path, TlsSettings(cipher_suites=suites))
    version, cipher, _ = await world.handshake(maximum_version=ssl.TLSVersion.TLSv1_2)
    assert version == "TLSv1.2" and cipher.endswith("CHACHA20-POLY1305")
    assert (await world.handshake())[0] == "TLSv1.3", "its ciphers are always on"


async def test_certificates_by_server_name(tmp_path: Path) -> None:
    other = Pki(tmp_path / "other", NOW).serving("b", "127.0.0.1", "10.0.0.1")
    pair = parse_pair(f"{other.certificate},{other.key}:*.example.com,api.test")
    world = World(tmp_path, TlsSettings(sni=(pair,)))
    wanted = {name: ssl.PEM_cert_to_DER_cert(p.certificate.read_text()) for name, p in (("own", world.pair), ("other", other))}
    for name, which in (("localhost", "own"), ("a.example.com", "other"), ("example.com", "own"), ("API.test", "other")):
        assert (await world.handshake(name))[2] == wanted[which], name


def test_names_are_matched_as_go_does() -> None:
    patterns = [("*.a.com", 0), ("x.a.com", 1), ("b.com", 2)]
    found = {name: choose(name, patterns) for name in ("x.a.com", "y.a.com", "y.x.a.com", "a.com", "B.com.", None, "")}
    assert found == {"x.a.com": 1, "y.a.com": 0, "y.x.a.com": None, "a.com": None, "B.com.": 2, None: None, "": None}


def test_a_pair_without_names_has_those_of_its_certificate(tmp_path: Path) -> None:
    pair = Pki(tmp_path, NOW).serving("a", "127.0.0.1", "10.0.0.1")
    assert "localhost" in names_of(pair.certificate) and parse_pair(f"{pair.certificate},{pair.key}").patterns() == names_of(
        pair.certificate
    )


def test_what_the_flags_cannot_mean() -> None:
    with pytest.raises(ValueError, match='unknown tls version "TLS1"'):
        check_version("TLS1")
    with pytest.raises(ValueError, match="Cipher suite TLS_X not supported or doesn't exist"):
        check_ciphers(["TLS_AES_128_GCM_SHA256", "TLS_X"])
    with pytest.raises(ValueError, match="expected comma separated certificate and key file paths"):
        parse_pair("only.crt")
