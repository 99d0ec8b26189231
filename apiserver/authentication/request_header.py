"""An authenticating proxy in front of this server (``--requestheader-*``): it has checked who a user is, and says so in headers.

Headers count only on a connection whose client certificate an authority of ``--requestheader-client-ca-file`` signed, with a common name
that ``--requestheader-allowed-names`` has (or any, where it has none). From everybody else they are as good as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.user import UserInfo, unescaped_extra_key
from apiserver.request.request_context import RequestContext

#: names and groups that one request may carry; a user of a large directory is in some hundred groups
VALUES_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderNames:
    """Which headers say what, in any case of letters. Of several names of a user header the first that is there counts, of groups all
    are taken together."""

    user: tuple[str, ...]
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()


class RequestHeaderAuthenticator:
    def __init__(
        self, verify: Callable[[bytes, Sequence[bytes]], UserInfo | None], allowed_names: Sequence[str], names: HeaderNames
    ) -> None:
        """``verify`` answers who a certificate (DER, and those sent along with it) of a proxy names and raises AuthenticationError for
        other certificates."""
        self._verify = verify
        self._allowed_names = frozenset(allowed_names)
        self._user = _lowered(names.user)
        self._uid = _lowered(names.uid)
        self._group = _lowered(names.group)
        self._extra_prefix = _lowered(names.extra_prefix)

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        """Raises AuthenticationError where a certificate was shown that is no proxy's."""
        if context.peer_certificate is None:
            return None
        proxy = self._verify(context.peer_certificate, context.peer_intermediates)
        name = proxy.name if proxy is not None else ""
        if self._allowed_names and name not in self._allowed_names:
            raise AuthenticationError(f"x509: subject with cn={name} is not in the allowed list")
        values = _values(context)
        user = _first(values, self._user)
        if not user:
            return None
        groups = tuple(text for header in self._group for text in values.get(header, ()))
        return UserInfo(name=user, uid=_first(values, self._uid), groups=groups, extra=self._extra(values))

    def _extra(self, values: dict[bytes, list[str]]) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self._extra_prefix:
            for header, texts in values.items():
                if header.startswith(prefix):
                    key = unescaped_extra_key(header[len(prefix) :].decode("latin-1"))
                    extra[key] = (*extra.get(key, ()), *texts)
        return extra


def _lowered(names: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(name.strip().lower().encode("latin-1") for name in names)


def _values(context: RequestContext) -> dict[bytes, list[str]]:
    if len(context.raw_headers) > VALUES_MAX:
        raise AuthenticationError("too many headers")
    values: dict[bytes, list[str]] = {}
    for name, value in context.raw_headers:
        values.setdefault(name.lower(), []).append(value.decode("utf-8", "replace"))
    return values


def _first(values: dict[bytes, list[str]], headers: Sequence[bytes]) -> str:
    for header in headers:
        found = values.get(header)
        if found and found[0]:
            return found[0]
    return ""
