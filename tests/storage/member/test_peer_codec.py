"""Frames between members: what is written is read again, and nothing else is taken."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.member import peer_codec, peer_urls
from storage.member.peer_codec import Channel, FrameError, FrameReader, FrameType

NUMBERS = st.integers(0, 2**64 - 1)
HELLOS = st.builds(
    peer_codec.Hello,
    channel=st.sampled_from(Channel),
    cluster_id=NUMBERS,
    sender=NUMBERS,
    target=NUMBERS,
    urls=st.lists(st.text("abc:/é", max_size=20), max_size=3).map(tuple),
)


def payload_of(encoded: bytes) -> bytes:
    ((_, payload),) = FrameReader(1 << 20).feed(encoded)
    return payload


@given(HELLOS)
def test_a_hello_survives_the_wire(hello: peer_codec.Hello) -> None:
    assert peer_codec.decode_hello(payload_of(peer_codec.encode_hello(hello))) == hello


@given(NUMBERS, st.text(max_size=50), st.binary(max_size=100))
def test_a_call_survives_the_wire(id_: int, method: str, body: bytes) -> None:
    call = peer_codec.Call(id_, method, body)
    assert peer_codec.decode_call(payload_of(peer_codec.encode_call(call))) == call


ERROR_CLASSES = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.StoreError)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", ERROR_CLASSES)
def test_every_error_of_the_store_arrives_as_itself(kind: type[errors.StoreError]) -> None:
    error = peer_codec.decode_failure(payload_of(peer_codec.encode_failure(peer_codec.Failure(7, kind())))).error
    assert type(error) is kind
    assert str(error) == str(kind())


def test_errors_keep_their_numbers_and_texts() -> None:
    def through(error: errors.StoreError) -> errors.StoreError:
        return peer_codec.decode_failure(payload_of(peer_codec.encode_failure(peer_codec.Failure(7, error)))).error

    compacted, future = through(errors.CompactedError(12)), through(errors.FutureRevisionError(9))
    assert isinstance(compacted, errors.CompactedError) and compacted.compact_revision == 12
    assert isinstance(future, errors.FutureRevisionError) and future.current_revision == 9
    assert str(through(errors.UnavailableError("etcdserver: why"))) == "etcdserver: why"


def test_a_class_that_only_the_sender_knows_arrives_as_the_nearest_common_one() -> None:
    class OwnError(errors.LeaseNotFoundError):
        pass

    error = peer_codec.decode_failure(payload_of(peer_codec.encode_failure(peer_codec.Failure(1, OwnError("gone"))))).error
    assert type(error) is errors.LeaseNotFoundError and str(error) == "gone"


@given(st.lists(st.tuples(st.sampled_from(FrameType), st.binary(max_size=40)), max_size=6), st.lists(st.integers(1, 30)))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(frames: list[tuple[FrameType, bytes]], cuts: list[int]) -> None:
    stream = b"".join(peer_codec.frame(kind, payload) for kind, payload in frames)
    reader, found, at = FrameReader(100), [], 0
    for cut in cuts:
        found += reader.feed(stream[at : at + cut])
        at += cut
    found += reader.feed(stream[at:])
    assert found == frames


def test_a_frame_beyond_the_limit_is_refused_before_it_is_held() -> None:
    with pytest.raises(FrameError, match="1001 bytes"):
        FrameReader(1000).feed((1002).to_bytes(4, "big") + b"\x04")


DECODERS = (
    peer_codec.decode_hello,
    peer_codec.decode_welcome,
    peer_codec.decode_refused,
    peer_codec.decode_call,
    peer_codec.decode_answer,
    peer_codec.decode_failure,
    peer_codec.decode_snapshot_head,
    peer_codec.decode_number,
)


@given(st.sampled_from(DECODERS), st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda b: peer_codec.MAGIC + b)))
def test_decoders_raise_their_one_error_on_anything(decode: object, data: bytes) -> None:
    assert callable(decode)
    with contextlib.suppress(FrameError):
        decode(data)


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_message_that_is_cut_off_is_refused(cut: int) -> None:
    hello = peer_codec.Hello(channel=Channel.CALLS, cluster_id=1, sender=2, target=3, urls=("https://a:1",))
    payload = payload_of(peer_codec.encode_hello(hello))
    if cut < len(payload):
        with pytest.raises(FrameError):
            peer_codec.decode_hello(payload[:-cut])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("127.0.0.1:2380", "scheme must be http or https"),
        ("ftp://127.0.0.1:2380", "scheme must be http or https"),
        ("https://127.0.0.1", '"host:port"'),
        ("https://:2380", '"host:port"'),
        ("https://127.0.0.1:2380/x", "must not contain a path"),
        ("https://u@127.0.0.1:2380", "must not contain a user"),
        ("https://127.0.0.1:99999", "no URL"),
        ("https://a..b:2380", "no name"),
        (f"https://{'a' * 64}.example:2380", "no name"),
        ("http://10.0.0.1:2380", "loopback"),
        ("http://example.com:2380", "loopback"),
    ],
)
def test_bad_peer_urls_are_told_apart(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        peer_urls.parse(text)


@pytest.mark.parametrize("text", ["https://10.0.0.1:2380", "http://127.0.0.1:1", "https://[::1]:2380", "http://localhost:7"])
def test_good_peer_urls_are_read(text: str) -> None:
    assert str(peer_urls.parse(text)) == text
