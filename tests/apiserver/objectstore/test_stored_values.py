"""Values that another server has written into the store: protobuf, JSON in another order, encrypted, damaged."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.objectstore import codec, stored_values
from apiserver.objectstore.cache_watcher import Bookmark
from apiserver.objectstore.interface import Selection, Unreadable, UnreadableObjectError
from apiserver.objectstore.object_store import ObjectStore
from apiserver.objectstore.stored_values import UnreadableValueError
from apiserver.schemas import protobuf
from storage import api
from storage.bbolt.reader import BboltReader
from storage.mvcc import kv_codec
from tests.fakes.memory_kv import MemoryKV

SNAPSHOT = Path(__file__).resolve().parents[2] / "storage" / "data" / "etcd-3.5-snapshot.db.gz"
#: ``v1``, ``ConfigMap``, name ``c``
CONFIG_MAP = protobuf.MAGIC + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap" + b"\x12\x05\x0a\x03\x0a\x01c"


@pytest.fixture(scope="module")
def of_a_real_cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("snapshot") / "snapshot.db"
    path.write_bytes(gzip.decompress(SNAPSHOT.read_bytes()))
    with BboltReader(path) as reader:
        return {found.key.decode(): found.value for _, value in reader.items(b"key") if (found := kv_codec.decode(value)).value}


def objects_of(values: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Without the keys of the servers themselves, which hold no object with a name."""
    for key, value in values.items():
        if not key.startswith(("/registry/ranges/", "/registry/masterleases/", "compact_rev_key")):
            yield key, value


def test_every_value_of_a_real_cluster_has_a_stored_form(of_a_real_cluster: dict[str, bytes]) -> None:
    forms = {"protobuf": 0, "JSON": 0}
    for key, value in objects_of(of_a_real_cluster):
        form = stored_values.stored_form(value)
        forms["protobuf" if value.startswith(protobuf.MAGIC) else "JSON"] += 1
        assert codec.has_own_layout(form), key
        assert stored_values.stored_form(form) is form, key
        served = orjson.loads(codec.served(form, 7))
        assert served["metadata"].pop("resourceVersion") == "7", key
        assert served == stored_values.decode(value), key
        assert key.endswith("/" + served["metadata"]["name"]), key
    assert forms["protobuf"] > 200
    assert forms["JSON"] > 20


def test_other_layouts_of_json_become_ours() -> None:
    first = b'{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a"}}\n'
    assert stored_values.stored_form(first) == b'{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}'
    # what would be taken for the metadata stands before it
    hidden = b'{"apiVersion":"v1","data":{"metadata":{"name":"b"}},"kind":"Thing","metadata":{"name":"a"}}'
    form = stored_values.stored_form(hidden)
    assert orjson.loads(codec.served(form, 3))["metadata"] == {"resourceVersion": "3", "name": "a"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"k8s:enc:aescbc:v1:key1:\x00\x01\x02", Unreadable.ENCRYPTED),
        (b"k8s:enc:kms:v2:vault:\x00\x01\x02", Unreadable.ENCRYPTED),
        (protobuf.MAGIC + b"\x0a\x0f\x0a\x02v1\x12\x09Nonentity", Unreadable.UNKNOWN_TYPE),
        (CONFIG_MAP[:-1], Unreadable.DAMAGED),
        (b"", Unreadable.DAMAGED),
        (b"{}", Unreadable.DAMAGED),
        (b"[1]", Unreadable.DAMAGED),
        (b'{"apiVersion":"v1","kind":"Thing"}', Unreadable.DAMAGED),
        (b'{"apiVersion":"v1","kind":"Thing","metadata":{}}', Unreadable.DAMAGED),
    ],
)
def test_values_that_are_no_objects_say_why(value: bytes, reason: Unreadable) -> None:
    with pytest.raises(UnreadableValueError) as refusal:
        stored_values.stored_form(value)
    assert refusal.value.reason is reason
    if reason is Unreadable.ENCRYPTED:
        assert value.split(b":")[2].decode() in str(refusal.value)


@given(st.binary(max_size=64), st.sampled_from([b"", b"k8s\x00", b"k8s:enc:", b'{"apiVersion":"']))
def test_any_bytes_are_an_object_or_are_refused(rest: bytes, start: bytes) -> None:
    try:
        form = stored_values.stored_form(start + rest)
    except UnreadableValueError:
        return
    assert codec.has_own_layout(form)


async def test_what_others_wrote_is_listed_and_watched_and_what_nobody_can_read_is_left_alone() -> None:
    kv = MemoryKV()
    await kv.put(api.PutRequest(key=b"/registry/configmaps/ns/c", value=CONFIG_MAP))
    await kv.put(api.PutRequest(key=b"/registry/configmaps/ns/secret", value=b"k8s:enc:aescbc:v1:key1:\x00"))
    store = ObjectStore(kv)
    maps = store.add("configmaps", True)
    await store.start()
    listed = await maps.list_objects(Selection())
    assert [obj.path for obj in listed.objects] == ["ns/c"]
    assert listed.objects[0].decode()["metadata"] == {"name": "c", "resourceVersion": str(listed.objects[0].revision)}
    assert [(error.path, error.reason) for error in listed.unreadable] == [("ns/secret", Unreadable.ENCRYPTED)]
    with pytest.raises(UnreadableObjectError, match='unable to transform key "/registry/configmaps/ns/secret": identity transformer'):
        await maps.get("ns/secret")

    watcher, _ = await maps.watch(Selection(), listed.revision)
    await kv.put(api.PutRequest(key=b"/registry/configmaps/ns/d", value=CONFIG_MAP))
    await kv.put(api.PutRequest(key=b"/registry/configmaps/ns/c", value=b"damaged"))
    assert (await maps.get("ns/d")) is not None
    with pytest.raises(UnreadableObjectError, match="unable to decode key"):
        await maps.get("ns/c")
    events = [entry for entry in watcher.take() if not isinstance(entry, Bookmark)]
    assert [(type.value, event.object.path) for type, event in events] == [("ADDED", "ns/d"), ("DELETED", "ns/c")]
    # an older state comes from the store itself
    assert [obj.path for obj in (await maps.list_objects(Selection(), revision=listed.revision, limit=5)).objects] == ["ns/c"]

    await kv.put(api.PutRequest(key=b"/registry/configmaps/ns/secret", value=CONFIG_MAP))
    assert (await maps.get("ns/secret")) is not None
    assert set(maps.cache.unreadable) == {"ns/c"}
    assert (await kv.range(api.RangeRequest(key=b"/registry/configmaps/ns/c"))).kvs[0].value == b"damaged"
