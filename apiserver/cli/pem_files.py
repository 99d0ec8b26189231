"""Files that flags name: whether they can be read, and hold what they should. What is wrong is told by the flag, in one line."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from apiserver.cli.errors import CommandError


def readable(flag: str, path: Path | None, error: type[CommandError] = CommandError) -> Path | None:
    """``path`` itself. Raises ``error``."""
    if path is not None:
        try:
            path.open("rb").close()
        except OSError as failure:
            raise error(f"{flag} {path}: {failure.strerror}") from failure
    return path


def check_pair(certificate_flag: str, certificate: Path, key_flag: str, key: Path | None, error: type[CommandError] = CommandError) -> None:
    """A certificate and its key, both in PEM. Raises ``error``."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as failure:
        why = f"not a certificate and its key in PEM ({failure.reason})"
        raise error(f"{certificate_flag} {certificate}, {key_flag} {key}: {why}") from failure


def check(flag: str, path: Path, load: Callable[[bytes], object], what: str, error: type[CommandError] = CommandError) -> None:
    """That ``load`` takes the file. Raises ``error``."""
    try:
        load(path.read_bytes())
    except (ValueError, TypeError) as failure:
        raise error(f"{flag} {path}: there is no {what} in PEM in it") from failure
