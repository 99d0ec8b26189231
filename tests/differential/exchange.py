"""One request on a connection of its own, byte by byte, and its answer in a form that can be compared."""

from __future__ import annotations

import json
import re
import socket
import ssl
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

#: an answer that takes longer does not come
ANSWER_SECONDS_MAX = 20.0
#: headers in which a difference counts
HEADERS = ("allow", "content-type", "etag", "location", "retry-after", "vary", "warning", "www-authenticate", "x-content-type-options")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``name`` tells the requests apart; ``quiet`` ones prepare and are not compared. ``raw`` replaces everything after the request line
    and the ``Authorization`` header."""

    name: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    token: str | None = "ADMIN"
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    host: str
    port: int
    token: str


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def send(server: Server, ask: Ask) -> dict[str, Any]:
    """``code``, ``headers`` and ``body`` of the answer; ``code`` 0 if the connection was closed without one."""
    with (
        socket.create_connection((server.host, server.port), timeout=ANSWER_SECONDS_MAX) as plain,
        _tls().wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        try:
            connection.sendall(_encoded(server, ask))
            received = _received(connection, ask.method == "HEAD")
        except (ConnectionError, ssl.SSLError):
            received = b""
    return _parsed(received, ask)


def _encoded(server: Server, ask: Ask) -> bytes:
    lines = [f"{ask.method} {ask.path} HTTP/1.1", f"Host: {server.host}:{server.port}"]
    if ask.token is not None:
        lines.append(f"Authorization: Bearer {server.token if ask.token == 'ADMIN' else ask.token}")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n"
    if ask.raw is not None:
        return head + ask.raw
    body = b"" if ask.body is None else ask.body if isinstance(ask.body, bytes) else json.dumps(ask.body).encode()
    headers = {"Accept": "application/json", "Connection": "close"}
    if ask.body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    headers |= ask.headers
    return head + "".join(f"{key}: {value}\r\n" for key, value in headers.items() if value).encode("latin-1") + b"\r\n" + body


def _received(connection: ssl.SSLSocket, is_head: bool) -> bytes:
    """All until the end of the connection, or of the answer where it tells its length."""
    received = b""
    while True:
        piece = connection.recv(65536)
        if not piece:
            return received
        received += piece
        head, separator, body = received.partition(b"\r\n\r\n")
        if separator and head.split(b" ", 2)[1] == b"100":
            received = body
            head, separator, body = received.partition(b"\r\n\r\n")
        if not separator:
            continue
        length = re.search(rb"(?im)^content-length: (\d+)", head)
        if is_head or (length and len(body) >= int(length[1])):
            return received
        if re.search(rb"(?im)^transfer-encoding: chunked", head) and body.endswith(b"0\r\n\r\n"):
            return received


def _parsed(received: bytes, ask: Ask) -> dict[str, Any]:
    if not received:
        return {"code": 0, "headers": {}, "body": ""}
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        headers[key.lower()] = f"{headers[key.lower()]}, {value.strip()}" if key.lower() in headers else value.strip()
    if "chunked" in headers.get("transfer-encoding", ""):
        body = _dechunked(body)
    if headers.get("content-encoding") == "gzip":
        body = zlib.decompress(body, 31)
    shown = {key: headers[key] for key in HEADERS if key in headers}
    return {"code": int(status.split(" ")[1]), "headers": normalised(shown), "body": _body(body)}


def _dechunked(body: bytes) -> bytes:
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not length:
            break
        found += rest[:length]
        body = rest[length + 2 :]
    return found


def _body(body: bytes) -> Any:
    text = body.decode("utf-8", "replace")
    try:
        return normalised(json.loads(text))
    except ValueError:
        return normalised(text)


_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"ResourceVersion in record \(\d+\)"), "ResourceVersion in record (<rv>)"),
    (re.compile(r'resourceVersion\\?":\\?"\d+'), 'resourceVersion":"<rv>'),
)
_DROPPED = {"managedFields", "selfLink"}
#: what is served differs by version; tests of discovery look into them
_DOCUMENTS = {"APIResourceList", "APIGroupList", "APIGroup", "APIVersions"}


def normalised(value: Any) -> Any:
    """What is another at every run is masked; nulls and empty lists, which are as good as absent, are dropped."""
    if isinstance(value, dict):
        if set(value) == {"paths"}:
            return "<the paths that are served>"
        if value.get("kind") in _DOCUMENTS:
            return f"<{value['kind']}>"
        found: dict[str, Any] = {}
        for key, item in value.items():
            if key in _DROPPED or item is None or item == []:
                continue
            found[key] = "<rv>" if key == "resourceVersion" and item not in ("", "0") else normalised(item)
        return found
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if isinstance(value, str):
        for pattern, mask in _MASKS:
            value = pattern.sub(mask, value)
    return value
