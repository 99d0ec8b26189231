"""URLs as Go's net/url reads them (Kubernetes' library/urls.go)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.runtime_types import register
from apiserver.machinery import go_json

_CONTROL = re.compile("[\x00-\x1f\x7f]").search
_SCHEME = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:").match
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL).search
_PORT = re.compile("(?::[0-9]*)?").fullmatch
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*").fullmatch
_HOST_FAULT = re.compile('[ "#/<>?@\\\\^`{|}]').search
_ENCODED_PATH = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*").fullmatch
_PATH_BYTE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")


@dataclass(frozen=True, slots=True)
class Url:
    """A URL, cut into its parts; `path` is as written."""

    scheme: str
    opaque: str
    user: str | None
    host: str
    path: str
    query: str | None
    fragment: str


register(Url, types.URL)


class _Fault(Exception):
    pass


def parse(text: str, request: bool) -> Url:
    """`url.Parse`, or `url.ParseRequestURI` for a request: that one takes absolute URLs and paths only, and no fragment.

    Raises:
        EvaluationError: with Go's words.
    """
    fragment = ""
    written = text
    if not request:
        written, _, fragment = text.partition("#")
    try:
        return _parse(written, request, fragment)
    except _Fault as fault:
        raise EvaluationError(f"parse {go_json.quote(text)}: {fault}") from None


def _parse(text: str, request: bool, fragment: str) -> Url:
    if _CONTROL(text):
        raise _Fault("net/url: invalid control character in URL")
    if not text and request:
        raise _Fault("empty url")
    if text == "*":
        return Url("", "", None, "", "*", None, fragment)
    if text.startswith(":"):
        raise _Fault("missing protocol scheme")
    found = _SCHEME(text)
    scheme = found.group()[:-1].lower() if found is not None else ""
    rest = text[found.end() :] if found is not None else text
    rest, mark, query = rest.partition("?")
    shown_query = query if mark else None
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, rest, None, "", "", shown_query, fragment)
        if request:
            raise _Fault("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Fault("first path segment in URL cannot contain colon")
    user, host = None, ""
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(authority)
    _unescape(rest)
    return Url(scheme, "", user, host, rest, shown_query, fragment)


def _authority(text: str) -> tuple[str | None, str]:
    user, at, host = text.rpartition("@")
    host = _host(host)
    if not at:
        return None, host
    if not _USER(user):
        raise _Fault("net/url: invalid userinfo")
    _unescape(user)
    return user, host


def _host(text: str) -> str:
    if text.startswith("["):
        inside, bracket, port = text.rpartition("]")
        if not bracket:
            raise _Fault("missing ']' in host")
        if not _PORT(port):
            raise _Fault(f"invalid port {go_json.quote(port)} after host")
        address, zone, name = inside.partition("%25")
        if zone:
            return _unescape_host(address) + "%" + _unescape(name) + "]" + port
    else:
        colon = text.rfind(":")
        if colon >= 0 and not _PORT(text[colon:]):
            raise _Fault(f"invalid port {go_json.quote(text[colon:])} after host")
    return _unescape_host(text)


def _unescape(text: str, plus: bool = False) -> str:
    bad = _BAD_ESCAPE(text)
    if bad is not None:
        raise _Fault(f"invalid URL escape {go_json.quote(bad.group())}")
    if plus:
        text = text.replace("+", " ")
    return _decoded(text) if "%" in text else text


def _decoded(text: str) -> str:
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")


def _unescape_host(text: str) -> str:
    for found in re.finditer("%(?:[0-9A-Fa-f]{2})?", text):
        escape = found.group()
        if len(escape) < 3 or (escape != "%25" and int(escape[1], 16) < 8):
            raise _Fault(f"invalid URL escape {go_json.quote(text[found.start() : found.start() + 3])}")
    bad = _HOST_FAULT(text)
    if bad is not None and bad.group() not in '<>"':
        raise _Fault(f"invalid character {go_json.quote(bad.group())} in host name")
    return _decoded(text) if "%" in text else text


def _string_to_url(text: str) -> Url:
    try:
        parse(text, True)
        return parse(text, False)
    except EvaluationError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse(text, True)
    except EvaluationError:
        return False
    return True


def _port_at(host: str) -> int:
    colon = host.rfind(":")
    return colon if colon >= 0 and _PORT(host[colon:]) and not host.endswith("]") else -1


def _hostname(url: Url) -> str:
    at = _port_at(url.host)
    host = url.host[:at] if at >= 0 else url.host
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _port(url: Url) -> str:
    at = _port_at(url.host)
    return url.host[at + 1 :] if at >= 0 else ""


def _escaped_path(url: Url) -> str:
    if url.path == "*" or _ENCODED_PATH(url.path):
        return url.path
    raw = _decoded(url.path).encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _PATH_BYTE else f"%{byte:02X}" for byte in raw)


def _query(url: Url) -> dict[str, list[str]]:
    """The parameters; what cannot be read is left out."""
    found: dict[str, list[str]] = {}
    for pair in (url.query or "").split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        try:
            found.setdefault(_unescape(key, True), []).append(_unescape(value, True))
        except _Fault:
            continue
    return found


def overloads(minor: int) -> list[Overload]:
    """The functions; all versions have them."""
    return [
        overload("string_to_url url(string): URL", _string_to_url),
        overload("url_get_scheme URL.getScheme(): string", lambda url: url.scheme),
        overload("url_get_host URL.getHost(): string", lambda url: url.host),
        overload("url_get_hostname URL.getHostname(): string", _hostname),
        overload("url_get_port URL.getPort(): string", _port),
        overload("url_get_escaped_path URL.getEscapedPath(): string", _escaped_path),
        overload("url_get_query URL.getQuery(): map(string, list(string))", _query),
        overload("is_url_string isURL(string): bool", _is_url),
    ]
