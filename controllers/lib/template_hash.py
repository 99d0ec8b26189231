"""The hash that names what is made from a pod template (label ``pod-template-hash``, the end of a ReplicaSet's name). Pure.

32-bit FNV-1a over the template's canonical JSON, then the collision count; its decimal digits are written with letters that spell no words,
as Kubernetes' names are. The value need not equal kube-controller-manager's (which hashes a dump of Go structures): a ReplicaSet that
is there already is found by comparing templates, and only new ones are named by the hash.
"""

from __future__ import annotations

import orjson

from apiserver.machinery.objects import Object

SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def fnv1a_32(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def safe_encode(text: str) -> str:
    """Each character becomes one of the safe letters.

    >>> safe_encode("0129")
    '5678'
    """
    return "".join(SAFE_LETTERS[ord(c) % len(SAFE_LETTERS)] for c in text)


def template_hash(template: Object, collision_count: int | None = None) -> str:
    data = orjson.dumps(normalized(template), option=orjson.OPT_SORT_KEYS)
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    return safe_encode(str(fnv1a_32(data)))


def normalized(value: object) -> object:
    """Without nulls and empty lists, which mean the same as nothing there."""
    if isinstance(value, dict):
        return {k: normalized(v) for k, v in value.items() if v is not None and v != []}
    if isinstance(value, list):
        return [normalized(v) for v in value]
    return value


def equal_ignoring(left: Object, right: Object, label: str) -> bool:
    """Whether two templates are the same but for that label."""
    return _without(left, label) == _without(right, label)


def _without(template: Object, label: str) -> object:
    found = normalized(template)
    assert isinstance(found, dict)
    metadata = dict(found.get("metadata") or {})
    labels = {k: v for k, v in (metadata.pop("labels", None) or {}).items() if k != label}
    annotations = metadata.pop("annotations", None) or {}
    return {**found, "metadata": {**metadata, "labels": labels, "annotations": annotations}}
