"""``Warning`` headers (RFC 7234 §5.5): ``299 - "text"`` for each text in ``context.warnings``."""

from __future__ import annotations

from collections.abc import Sequence

WARNING_CODE = 299
#: of all texts of an answer together, in characters; past it each text is cut to ITEM_LENGTH_MAX and what is still too much is dropped
TOTAL_LENGTH_MAX = 4 * 1024
ITEM_LENGTH_MAX = 256


def encode(text: str) -> bytes | None:
    """The header's value; None for a text that no header can carry (control characters)."""
    if not text or any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in text):
        return None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{WARNING_CODE} - "{escaped}"'.encode("utf-8", "replace")


def headers(texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """One header for each text, each text once."""
    distinct = list(dict.fromkeys(texts))
    if sum(map(len, distinct)) > TOTAL_LENGTH_MAX:
        distinct = [text[:ITEM_LENGTH_MAX] for text in distinct]
    out: list[tuple[bytes, bytes]] = []
    written = 0
    for text in distinct:
        value = encode(text)
        if value is None:
            continue
        if written >= TOTAL_LENGTH_MAX:
            break
        written += len(text)
        out.append((b"warning", value))
    return out
