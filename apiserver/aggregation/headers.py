"""Headers of a request on its way to an extension API server, and of its answer on the way back.

The extension server believes what stands in ``X-Remote-…``, since the front-proxy certificate vouches for it: whatever a client sends under
such names goes no further, whoever it is, nor do its credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from apiserver.authentication.user import UserInfo

Raw = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer"),
        *(b"transfer-encoding", b"upgrade"),
    )
)
_CREDENTIALS = (b"x-remote-", b"impersonate-")
_CREDENTIAL_NAMES = frozenset((b"authorization", b"cookie"))
#: the server's own, which it adds to each answer
_OWN = frozenset((b"date", b"audit-id"))
#: RFC 9110 §5.6.2, without the percent sign, by which the others are written
_NOT_IN_KEYS = re.compile(rb"[^!#$&'*+\-.^_`|~0-9A-Za-z]")
_NOT_IN_NAMES = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9A-Za-z]")
_NOT_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
#: servers that have passed a request on; one more, and it goes round in a circle
HOPS_MAX = 8


class BadHeaderError(Exception):
    """A user whose name cannot stand in a header."""


def forwarded(raw: Raw, user: UserInfo, client: str, audit_id: str, *, upgrade: bool = False) -> list[tuple[str, str]]:
    """Of a client's request. ``client``: its address. Raises BadHeaderError."""
    dropped = _named_in_connection(raw)
    found: list[tuple[str, str]] = []
    forwards = client
    for name, value in raw:
        name = name.lower()
        if name == b"x-forwarded-for":
            forwards = f"{value.decode('latin-1')}, {client}"
        elif name == b"audit-id" or name in _HOP_BY_HOP or name in dropped or name in _CREDENTIAL_NAMES or name.startswith(_CREDENTIALS):
            continue
        else:
            text = _text(value)
            if text is not None:
                found.append((name.decode("ascii"), text))
    if upgrade:
        protocol = next(value for name, value in raw if name.lower() == b"upgrade")
        found += [("Connection", "Upgrade"), ("Upgrade", protocol.decode("latin-1"))]
    if forwards:
        found.append(("X-Forwarded-For", forwards))
    found.append(("Audit-Id", audit_id))
    return [*found, *of_user(user)]


def of_user(user: UserInfo) -> list[tuple[str, str]]:
    """Raises BadHeaderError."""
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        found += [(f"X-Remote-Extra-{escaped(key)}", value) for value in values]
    for name, value in found:
        if _NOT_IN_VALUES.search(value.encode("utf-8", "surrogatepass")):
            raise BadHeaderError(f"net/http: invalid header field value for {_quoted(name)}")
    return found


def escaped(key: str) -> str:
    """A key of a user's ``extra`` as it stands in a header's name (client-go ``headerKeyEscape``)."""
    return _NOT_IN_KEYS.sub(lambda match: b"%%%02X" % match[0][0], key.encode("utf-8", "surrogatepass")).decode("ascii")


def answered(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Of an answer, for the client; without what is no header."""
    headers = list(raw)
    dropped = _named_in_connection(headers)
    lower = [(name.lower(), value) for name, value in headers]
    return [
        (name, value)
        for name, value in lower
        if name not in _HOP_BY_HOP
        and name not in dropped
        and name not in _OWN
        and name
        and not _NOT_IN_NAMES.search(name)
        and not _NOT_IN_VALUES.search(value)
    ]


def goes_round(raw: Raw) -> bool:
    """Whether so many servers have passed a request on that it must be going round in a circle."""
    return any(name.lower() == b"x-forwarded-for" and value.count(b",") >= HOPS_MAX for name, value in raw)


def is_upgrade(raw: Raw) -> bool:
    names = {name.lower(): value.lower() for name, value in raw}
    return b"upgrade" in names and b"upgrade" in names.get(b"connection", b"")


def _named_in_connection(raw: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    return {part.strip().lower() for name, value in raw if name.lower() == b"connection" for part in value.split(b",")}


def _text(value: bytes) -> str | None:
    """None for what is no text, which goes no further."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _quoted(name: str) -> str:
    return f'"{name}"'
