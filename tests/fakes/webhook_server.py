"""A webhook on a loopback socket over real TLS, with a certificate authority of its own, that can also misbehave."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: From path and body of a request to the whole of what is written back; it may write itself and answer b"".
Respond = Callable[[str, bytes, asyncio.StreamWriter], Awaitable[bytes]]
#: From a review's request to its response.
Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Authority:
    """Issues serving certificates for ``127.0.0.1``, ``localhost`` and other names."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook-ca")])
        self.certificate = self._sign(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None))

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def bundle(self) -> str:
        """As ``caBundle`` wants it."""
        return base64.b64encode(self.pem).decode()

    def _sign(self, name: x509.Name, key: Any, *extensions: x509.ExtensionType, days: int = 1) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=2)).not_valid_after(now + datetime.timedelta(days=days))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def pair(self, *names: str, days: int = 1) -> tuple[bytes, bytes]:
        """Key and certificate for ``names``, by default for the loopback addresses, as PEM; ``days`` negative: it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        if not names:
            alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
        certificate = self._sign(subject, key.public_key(), x509.SubjectAlternativeName(alternatives), days=days)
        encoding = serialization.Encoding.PEM
        private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return private, certificate.public_bytes(encoding)

    def context(self, *names: str, days: int = 1) -> ssl.SSLContext:
        """Of a server with such a certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "pair.pem"
            file.write_bytes(b"".join(self.pair(*names, days=days)))
            context.load_cert_chain(file)
        return context


class WebhookServer:
    """``asked`` keeps path and body of each request, ``came_as`` the Authorization header of each and the common name of the certificate
    that was shown ("" for none), ``connections`` counts them."""

    def __init__(self, port: int, authority: Authority) -> None:
        self.port = port
        self.authority = authority
        self.asked: list[tuple[str, Any]] = []
        self.came_as: list[tuple[str, str]] = []
        self.connections = 0
        self.open: set[asyncio.StreamWriter] = set()

    def hang_up(self) -> None:
        """Cut all connections, as a program does that is started again."""
        for writer in list(self.open):
            writer.transport.abort()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def client_config(self) -> dict[str, Any]:
        return {"url": self.url, "caBundle": self.authority.bundle}

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests of the reviews that came."""
        return [body["request"] for _, body in self.asked]


def _header(head: str, name: str) -> str:
    lines = (line.partition(":") for line in head.split("\r\n"))
    return next((value.strip() for key, _, value in lines if key.lower() == name), "")


def _common_name(writer: asyncio.StreamWriter) -> str:
    shown = writer.get_extra_info("peercert") or {}
    return next((value for part in shown.get("subject", ()) for key, value in part if key == "commonName"), "")


AUTHORITY = Authority()


@contextlib.asynccontextmanager
async def serving(respond: Respond, *names: str, context: ssl.SSLContext | None = None) -> AsyncIterator[WebhookServer]:
    tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        found.open.add(writer)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length"))
                body = await reader.readexactly(length)
                path = head.split(" ")[1]
                found.came_as.append((_header(head, "authorization"), _common_name(writer)))
                found.asked.append((path, orjson.loads(body)))
                writer.write(await respond(path, body, writer))
                await writer.drain()
        found.open.discard(writer)
        writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context or AUTHORITY.context(*names))
    found = WebhookServer(server.sockets[0].getsockname()[1], AUTHORITY)
    try:
        yield found
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def http(body: bytes, status: str = "200 OK", media_type: str = "application/json", *more: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *more)
    return "\r\n".join((*lines, "", "")).encode() + body


def reviewing(answer: Answer) -> Respond:
    """A webhook that answers reviews as it should."""

    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        review = orjson.loads(body)
        response = {"uid": review["request"]["uid"], **answer(review["request"])}
        return http(orjson.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}))

    return respond
