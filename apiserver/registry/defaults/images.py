"""Image references as the defaults read them (the grammar of ``github.com/distribution/reference``, normalized names)."""

from __future__ import annotations

import re
from functools import lru_cache

_DOMAIN_COMPONENT = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"^(?:{_DOMAIN_COMPONENT}(?:\.{_DOMAIN_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$")
_PATH_COMPONENT = re.compile(r"^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$")
_TAG = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
_DIGEST = re.compile(r"^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$")
_IDENTIFIER = re.compile(r"^[a-f0-9]{64}$")
#: the longest repository name
_NAME_LENGTH_MAX = 255
#: name, tag and the longest digest in use with room; what is longer is no reference, and not looked at
_REFERENCE_LENGTH_MAX = 1024


@lru_cache(maxsize=512)
def image_tag(image: str) -> str:
    """The tag that an image reference names: ``latest`` where it names neither tag nor digest; "" where only a digest, and where the text
    is no reference at all."""
    if len(image) > _REFERENCE_LENGTH_MAX or _IDENTIFIER.match(image):
        return ""
    name, at, digest = image.partition("@")
    before, colon, tag = name.rpartition(":")
    if colon and "/" not in tag:
        name = before
    else:
        tag = ""
        colon = ""
    if (at and not _DIGEST.match(digest)) or (colon and not _TAG.match(tag)) or not _is_name(name):
        return ""
    return tag or ("" if at else "latest")


def _is_name(name: str) -> bool:
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        if not _DOMAIN.match(first):
            return False
    else:
        rest = name
    return len(name) <= _NAME_LENGTH_MAX and all(_PATH_COMPONENT.match(part) for part in rest.split("/"))
