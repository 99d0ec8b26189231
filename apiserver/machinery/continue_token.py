"""Continue tokens: where a list in pieces goes on (apiserver ``storage/continue.go``).

A token is base64url, without padding, of ``{"v":"meta.k8s.io/v1","rv":<revision>,"start":"<key below the list's prefix>"}``. The
revision is that of the first piece, so that all pieces show one moment; -1 in a token made after that moment was compacted: go on
with what is there now.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TypeVar

from apiserver.machinery import go_json

_T = TypeVar("_T", str, int)

VERSION = "meta.k8s.io/v1"
#: the revision of a token that gives up consistency
ANY_REVISION = -1


class ContinueTokenError(ValueError):
    """The text is Kubernetes' message; answered as a 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueToken:
    """``start_key`` is the whole key, prefix included, from which the next piece is read (inclusive)."""

    start_key: str
    revision: int


def encode(key: str, prefix: str, revision: int) -> str:
    """A token that goes on at ``key``; give the last key of a piece plus ``"\\0"`` to go on after it."""
    if not key.startswith(prefix):
        raise ContinueTokenError("unable to encode next field: the key and key prefix do not match")
    start = _go_json_string(key[len(prefix) :])
    text = f'{{"v":"{VERSION}","rv":{revision},"start":{start}}}'
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _go_json_string(text: str) -> str:
    """Go also escapes ``<``, ``>`` and ``&``, so that JSON may stand in HTML."""
    shown = json.dumps(text, ensure_ascii=False)
    return shown.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def decode(token: str, prefix: str) -> ContinueToken:
    """What a client's token says. Its key cannot leave ``prefix``."""
    try:
        value = go_json.decode_json(go_json.decode_raw_base64_url(token))
    except go_json.GoError as e:
        raise ContinueTokenError(f"continue key is not valid: {e}") from e
    if value is None:
        value = {}
    if not isinstance(value, dict):
        message = f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type storage.continueToken"
        raise ContinueTokenError(f"continue key is not valid: {message}")
    version = _field(value, "v", str, "string", "")
    revision = _field(value, "rv", int, "int64", 0)
    start = _field(value, "start", str, "string", "")
    if version != VERSION:
        raise ContinueTokenError(f"continue key is not valid: server does not recognize this encoded version {version}")
    if revision == 0:
        raise ContinueTokenError("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start:
        raise ContinueTokenError("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    rooted = start if start.startswith("/") else "/" + start
    if not _is_clean(rooted):
        raise ContinueTokenError(f"continue key is not valid: {start}")
    return ContinueToken(start_key=prefix + rooted[1:], revision=revision)


def _field(value: dict[str, object], name: str, kind: type[_T], go_type: str, default: _T) -> _T:
    found = value.get(name)
    if found is None:
        return default
    in_range = not isinstance(found, int) or go_json.MIN_INT64 <= found <= go_json.MAX_INT64
    if not isinstance(found, kind) or isinstance(found, bool) or not in_range:
        shown = go_json.kind_of(found)
        if shown == "number":
            shown += f" {found}"
        message = f"json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {go_type}"
        raise ContinueTokenError(f"continue key is not valid: {message}")
    return found


def _is_clean(path: str) -> bool:
    """Whether Go's ``path.Clean`` would leave this rooted path as it is."""
    if path == "/":
        return True
    return all(part not in ("", ".", "..") for part in path[1:].split("/"))
