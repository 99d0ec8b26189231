"""A small HTTPS server on loopback in a thread of its own, answering by a function; and an OpenID Connect issuer on it.

It can be told to answer anything: errors, garbage, megabytes, nothing at all.
"""

from __future__ import annotations

import base64
import datetime
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: how long a server that hangs holds a connection at most, so that a test that fails ends
HANG_SECONDS_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    hangs: bool = False


def reply(document: Any, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(document).encode())


class Authority:
    """Signs certificates for tests; ``pem`` is its own."""

    def __init__(self, name: str = "test-ca") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self.key.public_key()).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def signed(self, common_name: str, *organizations: str, server: bool = False) -> tuple[bytes, bytes]:
        """(certificate, key), both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if server:
            names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return certificate, pem

    def signed_der(self, common_name: str, *organizations: str) -> bytes:
        certificate, _ = self.signed(common_name, *organizations)
        return x509.load_pem_x509_certificate(certificate).public_bytes(serialization.Encoding.DER)


class LoopbackServer:
    """``answer`` may be replaced at any time; ``seen`` holds the requests."""

    def __init__(self, directory: Path, answer: Callable[[Seen], Reply], authority: Authority | None = None) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.authority = authority or Authority()
        directory.mkdir(parents=True, exist_ok=True)
        self.ca_file = directory / "server-ca.crt"
        self.ca_file.write_bytes(self.authority.pem)
        certificate, key = self.authority.signed("127.0.0.1", server=True)
        pair = directory / "server.pem"
        pair.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        self._over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                seen = Seen(self.command, self.path, dict(self.headers.items()), self.rfile.read(length))
                outer.seen.append(seen)
                said = outer.answer(seen)
                if said.hangs:
                    outer._over.wait(HANG_SECONDS_MAX)
                    self.close_connection = True
                    return
                self.send_response(said.status)
                for name, value in said.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)

            do_GET = do_POST = _do

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def kubeconfig(self, path: Path, user: dict[str, Any] | None = None) -> Path:
        """A webhook's file for this server."""
        cluster = {"server": self.url + "/review", "certificate-authority": str(self.ca_file)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "hook", "user": "api"}}],
            "clusters": [{"name": "hook", "cluster": cluster}],
            "users": [{"name": "api", "user": user or {}}],
        }
        path.write_text(json.dumps(document))
        return path


class SigningKey:
    def __init__(self, key_id: str, algorithm: str = "RS256") -> None:
        self.id = key_id
        self.algorithm = algorithm
        self.private: Any
        if algorithm.startswith("ES"):
            curves: dict[str, ec.EllipticCurve] = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
            self.private = ec.generate_private_key(curves[algorithm])
        else:
            self.private = rsa.generate_private_key(65537, 2048)

    def public_jwk(self) -> dict[str, Any]:
        algorithms = jwt.get_algorithm_by_name(self.algorithm)
        return {**json.loads(algorithms.to_jwk(self.private.public_key())), "kid": self.id, "use": "sig", "alg": self.algorithm}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers={"kid": self.id, **headers})


class Issuer:
    """An OpenID Connect issuer with the keys that it publishes now."""

    def __init__(self, directory: Path, *keys: SigningKey) -> None:
        self.keys = list(keys)
        self.overrides: dict[str, Reply] = {}
        self.server = LoopbackServer(directory, self._answer)
        self.url = self.server.url
        self.ca_file = self.server.ca_file

    @property
    def fetches(self) -> list[str]:
        return [seen.path for seen in self.server.seen]

    def _answer(self, seen: Seen) -> Reply:
        if seen.path in self.overrides:
            return self.overrides[seen.path]
        if seen.path == "/.well-known/openid-configuration":
            return reply({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        if seen.path == "/keys":
            return reply({"keys": [key.public_jwk() for key in self.keys]})
        return reply({}, 404)

    def claims(self, now: float, **more: Any) -> dict[str, Any]:
        return {"iss": self.url, "aud": "sampan", "sub": "ann", "iat": int(now), "exp": int(now) + 600, **more}

    def close(self) -> None:
        self.server.close()


def unsigned(claims: dict[str, Any], algorithm: str = "none") -> str:
    """A token with no signature at all."""

    def part(document: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    return f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(claims)}."
