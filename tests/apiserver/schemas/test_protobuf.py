"""Objects in protobuf form: a real cluster's, against what its API listed, and damaged ones."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.schemas import protobuf
from storage.bbolt.reader import BboltReader
from storage.mvcc import kv_codec
from tests.apiserver.schemas.kubernetes_1_20 import table_of_1_20

__all__ = ["table_of_1_20"]

HERE = Path(__file__).resolve().parent
SNAPSHOT = HERE.parents[1] / "storage" / "data" / "etcd-3.5-snapshot.db.gz"
#: renewed, expired or converted between the snapshot and the listing
CHANGED_SINCE = ("Event", "Lease", "HorizontalPodAutoscaler")
LISTED = SNAPSHOT.with_name("etcd-3.5-objects.json.gz")


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, message)


def stored(directory: Path) -> Iterator[tuple[str, bytes]]:
    """(key, value) of the newest version of every key under /registry that is in protobuf form."""
    newest: dict[bytes, bytes] = {}
    path = directory / "snapshot.db"
    path.write_bytes(gzip.decompress(SNAPSHOT.read_bytes()))
    with BboltReader(path) as reader:
        records = list(reader.items(b"key"))
    for record, value in records:
        found = kv_codec.decode(value)
        if record.endswith(b"t"):
            newest.pop(found.key, None)
        else:
            newest[found.key] = found.value
    for key, value in newest.items():
        if value.startswith(protobuf.MAGIC):
            yield key.decode(), value


def decode(body: bytes) -> Any:
    return orjson.loads(protobuf.to_json(body))


def is_within(part: Any, whole: Any) -> bool:
    """Whether ``whole`` says all that ``part`` says; it may have defaults that are filled in when an object is read."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(is_within, part, whole))
    return bool(part == whole)


def plain(value: Any) -> Any:
    """Without nulls, empty containers and Kubernetes' volatile fields, and with bytes of managed fields as they are."""
    if isinstance(value, dict):
        cleaned = {k: plain(v) for k, v in value.items() if k not in ("resourceVersion", "selfLink")}
        return {k: v for k, v in cleaned.items() if v not in (None, {}, [])}
    return [plain(v) for v in value] if isinstance(value, list) else value


def test_every_object_of_a_real_cluster_comes_out_as_its_api_listed_it(tmp_path: Path) -> None:
    listed = {}
    for resource, items in orjson.loads(gzip.decompress(LISTED.read_bytes())).items():
        for item in items:
            listed[item["metadata"].get("uid"), resource.rpartition("/")[0]] = item
    compared = 0
    for key, value in stored(tmp_path):
        obj = decode(value)
        wanted = listed.get((obj["metadata"].get("uid"), obj["apiVersion"]))
        if wanted is None or "uid" not in obj["metadata"] or obj["kind"] in CHANGED_SINCE:
            continue
        compared += 1
        assert is_within(plain({**obj, "kind": "", "apiVersion": ""}), {**wanted, "kind": "", "apiVersion": ""}), key
    assert compared > 150


def test_every_value_of_a_real_cluster_is_written_again_to_the_byte(tmp_path: Path, table_of_1_20: None) -> None:
    compared = 0
    for key, value in stored(tmp_path):
        assert protobuf.encode(protobuf.decode(value)) == value, key
        compared += 1
    assert compared > 250


def test_zeros_that_are_said_are_kept_and_those_that_are_not_are_left_out() -> None:
    """A Deployment's replicas is a pointer, so 0 is a choice; a pod's hostNetwork is not, so false is nothing."""
    deployment = envelope("apps/v1", "Deployment", field(2, bytes([1 << 3, 0])))
    assert decode(deployment)["spec"] == {"replicas": 0}
    pod = envelope("v1", "Pod", field(2, bytes([11 << 3, 0])))
    assert decode(pod)["spec"] == {}


def test_negative_numbers_and_int_or_string() -> None:
    minus_one = bytes([0xFF] * 9 + [1])
    delete = envelope("apps/v1", "DeleteOptions", bytes([1 << 3]) + minus_one)
    assert decode(delete)["gracePeriodSeconds"] == -1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        protobuf.MAGIC,
        envelope("v1", "Nothing", b""),
        envelope("v1", "Pod", b"\x12\x7f"),
        envelope("v1", "Pod", field(1, field(1, b"\xff"))),
        envelope("v1", "Pod", bytes([1 << 3, 5])),
        protobuf.MAGIC + b"\xff" * 11,
    ],
)
def test_damaged_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(protobuf.ProtobufError):
        decode(body)


@given(st.binary(max_size=64))
@settings(max_examples=300, deadline=None)
def test_any_bytes_decode_or_are_refused(message: bytes) -> None:
    """Never another exception, and what decodes is JSON."""
    with contextlib.suppress(protobuf.ProtobufError):
        decode(envelope("v1", "Pod", message))
