"""``Audit-Id``: one id for a request in the log, in the audit log and in the answer (apiserver ``endpoints/filters/audit_init``)."""

from __future__ import annotations

import itertools
import secrets

#: longer ids of clients are replaced by one of ours, so that nobody fills logs through this header
ID_LENGTH_MAX = 128


def _prefix() -> str:
    digits = f"{secrets.randbits(72):018x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:]}-"


_PREFIX = _prefix()
_counter = itertools.count(secrets.randbits(40))


def new_audit_id() -> str:
    """A UUID (RFC 9562 §5.4 in form): 72 random bits of this process, then a counter. Ids need to be unique, not unguessable; this
    costs a tenth of ``uuid4``."""
    return f"{_PREFIX}{next(_counter):012x}"


def audit_id_of(headers: dict[bytes, bytes]) -> str:
    """The id that the client sent, if it can stand in a header and a log line, else a new one."""
    sent = headers.get(b"audit-id")
    if sent and len(sent) <= ID_LENGTH_MAX:
        text = sent.decode("latin-1")
        if text.isascii() and text.isprintable():
            return text
    return new_audit_id()
