"""Answers recorded from kube-apiserver 1.20, each as JSON and as protobuf: objects, lists, refusals, discovery, metadata, watches."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.handlers import protobuf_answers
from apiserver.schemas import protobuf
from apiserver.schemas.protobuf import decoding, table
from tests.apiserver.schemas.kubernetes_1_20 import table_of_1_20

__all__ = ["table_of_1_20"]

RECORDED: list[dict[str, Any]] = orjson.loads(gzip.decompress((Path(__file__).parent / "protobuf-1.20.json.gz").read_bytes()))
OBJECTS = {one["name"]: one for one in RECORDED if isinstance(one["json"], dict)}
WATCHES = {one["name"]: one for one in RECORDED if isinstance(one["json"], list)}


def said(value: Any) -> Any:
    """Without what JSON says and protobuf cannot tell from nothing, and the other way round: null, empty, zero."""
    if isinstance(value, dict):
        return {k: v for k, v in ((k, said(v)) for k, v in value.items()) if v not in (None, {}, [], "", "0", 0, False)}
    return [said(item) for item in value] if isinstance(value, list) else value


def frames(body: bytes) -> Iterator[bytes]:
    while body:
        size = int.from_bytes(body[:4], "big")
        yield body[: 4 + size]
        body = body[4 + size :]


@pytest.mark.parametrize("name", OBJECTS)
def test_we_write_the_bytes_that_a_real_server_wrote(name: str, table_of_1_20: None) -> None:
    one = OBJECTS[name]
    assert protobuf.encode(one["json"]) == base64.b64decode(one["protobuf"])


@pytest.mark.parametrize("name", OBJECTS)
def test_we_read_in_them_what_the_server_said_in_json(name: str) -> None:
    one = OBJECTS[name]
    expected = one["json"]
    if expected["kind"].startswith("PartialObjectMetadataList"):
        # items of a protobuf list never say what they are
        expected = {**expected, "items": [{"metadata": item["metadata"]} for item in expected["items"]]}
    assert said(protobuf.decode(base64.b64decode(one["protobuf"]))) == said(expected)


@pytest.mark.parametrize("name", WATCHES)
def test_frames_of_watches(name: str, table_of_1_20: None) -> None:
    one = WATCHES[name]
    recorded = list(frames(base64.b64decode(one["protobuf"])))
    assert one["type"] == protobuf_answers.STREAM
    assert recorded
    assert recorded == [protobuf_answers.frame(event["type"], protobuf.encode(event["object"])) for event in one["json"]]
    for frame, event in zip(recorded, one["json"], strict=True):
        read = decoding.decode_message(f"{table.META}WatchEvent", frame[4:])
        assert (read["type"], said(read["object"])) == (event["type"], said(event["object"]))
