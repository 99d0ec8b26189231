"""Static tokens from a file (``--token-auth-file``): lines ``token,user,uid[,"group1,group2"]``, read once at start."""

from __future__ import annotations

import csv
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from apiserver.authentication.interfaces import TokenAuthentication
from apiserver.authentication.user import UserInfo


class TokenFileError(ValueError):
    """The file cannot be used; the text names the line, never a token."""


class TokenFileAuthenticator:
    """Finds a token by its hash under a key of this process, so that neither a comparison's time nor a dump of this table tells
    anything of the tokens."""

    def __init__(self, entries: Iterable[tuple[str, UserInfo]], api_audiences: Sequence[str] = ()) -> None:
        """``api_audiences``: those of this API server, for which alone such tokens are good."""
        audiences = tuple(api_audiences)
        self._key = secrets.token_bytes(32)
        self._users = {self._digest(token): TokenAuthentication(user=user, audiences=audiences) for token, user in entries}

    @classmethod
    def from_file(cls, path: Path, api_audiences: Sequence[str] = ()) -> TokenFileAuthenticator:
        """Raises TokenFileError, OSError."""
        return cls(parse_token_file(path.read_text(encoding="utf-8")), api_audiences)

    def _digest(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode(), key=self._key, digest_size=32).digest()

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        return self._users.get(self._digest(token))


def parse_token_file(text: str) -> list[tuple[str, UserInfo]]:
    """The tokens of a file with their users; of two lines with one token the later one counts. Raises TokenFileError."""
    entries: list[tuple[str, UserInfo]] = []
    reader = csv.reader(text.splitlines(), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if len(row) < 3:
                raise TokenFileError(f"line {reader.line_num} has {len(row)} columns; at least 3 are needed: token, user name, user uid")
            token, name, uid = row[0], row[1], row[2]
            if not token:
                raise TokenFileError(f"line {reader.line_num} has an empty token")
            if not name:
                raise TokenFileError(f"line {reader.line_num} has an empty user name")
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
            entries.append((token, UserInfo(name=name, uid=uid, groups=groups)))
    except csv.Error as error:
        raise TokenFileError(f"line {reader.line_num}: {error}") from error
    return entries
