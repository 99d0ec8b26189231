"""The client's promises, with a real etcd behind a proxy that misbehaves: no write twice, no event lost or twice, failover."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from apiserver.cli.pki import KeyPair, Pki, Subject
from storage import api, errors
from storage.etcdclient import ClientConfig, EtcdKV
from tests.storage.etcd_process import EtcdProcess, TlsFiles
from tests.storage.etcdclient.proxy import Proxy

WAIT_SECONDS = 15.0
ALL = {"key": b"\0", "range_end": b"\0"}


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    with EtcdProcess(tmp_path / "data") as process:
        yield process


@pytest.fixture
async def proxy(etcd: EtcdProcess) -> AsyncIterator[Proxy]:
    async with Proxy(etcd.target) as proxy:
        yield proxy


class client:
    """A started client of these targets."""

    def __init__(self, *targets: str, call_timeout_seconds: float = 5.0) -> None:
        urls = tuple(f"http://{target}" for target in targets)
        self._config = ClientConfig(endpoints=urls, call_timeout_seconds=call_timeout_seconds, connect_timeout_seconds=1.0)

    async def __aenter__(self) -> EtcdKV:
        self._kv = EtcdKV(self._config)
        await self._kv.start()
        return self._kv

    async def __aexit__(self, *_: object) -> None:
        await self._kv.close()


async def become(true: Callable[[], bool]) -> None:
    for _ in range(int(WAIT_SECONDS / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not become true")


async def put(kv: api.KV, key: bytes, value: bytes = b"v") -> int:
    return (await kv.put(api.PutRequest(key=key, value=value))).header.revision


async def revisions(watcher: api.Watcher, until: int) -> list[int]:
    """Of the events up to and including ``until``."""
    found: list[int] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while not found or found[-1] < until:
            batch = watcher.take()
            if batch is None:
                await watcher.wait()
            else:
                found += [event.kv.mod_revision for event in batch.events]
    return found


async def test_a_write_whose_answer_is_lost_is_not_sent_again(proxy: Proxy, etcd: EtcdProcess) -> None:
    """ST-T4: the outcome is unknown to the client, and the store has the write once."""
    async with client(proxy.target, call_timeout_seconds=1.0) as kv, client(etcd.target) as direct:
        await put(kv, b"a")
        proxy.swallow_answers = True
        with pytest.raises(errors.RequestTimeoutError, match="etcdserver: request timed out"):
            await put(kv, b"a")
        proxy.swallow_answers = False
        proxy.cut()
        assert (await direct.range(api.RangeRequest(key=b"a"))).kvs[0].version == 2
        assert await put(kv, b"b") == 4
        assert (await kv.range(api.RangeRequest(key=b"a"))).kvs[0].version == 2


async def test_a_write_on_a_connection_that_breaks_is_unknown_and_sent_once(proxy: Proxy, etcd: EtcdProcess) -> None:
    async with client(proxy.target) as kv, client(etcd.target) as direct:
        await put(kv, b"a")
        proxy.swallow_answers = True
        writing = asyncio.create_task(put(kv, b"a"))
        async with asyncio.timeout(WAIT_SECONDS):
            assert await revisions(direct.watch(api.WatchRequest(key=b"a", start_revision=3)), 3) == [3]
        proxy.swallow_answers = False
        proxy.cut()
        with pytest.raises(errors.RequestTimeoutError, match="etcd: unavailable"):
            await writing
        assert await direct.read_revision() == 3


async def test_a_read_is_tried_again(proxy: Proxy) -> None:
    async with client(proxy.target) as kv:
        await put(kv, b"a")
        proxy.swallow_answers = True
        reading = asyncio.create_task(kv.range(api.RangeRequest(key=b"a")))
        await asyncio.sleep(0.05)
        assert not reading.done()
        proxy.swallow_answers = False
        proxy.cut()
        assert (await reading).kvs[0].version == 1


async def test_without_a_connection_nothing_is_sent_and_the_servers_are_named(proxy: Proxy) -> None:
    async with client(proxy.target) as kv:
        proxy.refuse = True
        proxy.cut()
        with pytest.raises(errors.UnavailableError):
            await kv.read_revision()  # finds that the connection is gone
        with pytest.raises(errors.UnavailableError, match=f"no connection to http://{proxy.target}") as refused:
            await put(kv, b"a")
        assert type(refused.value) is errors.UnavailableError
        assert proxy.target in kv.problem
        proxy.refuse = False
        assert await put(kv, b"a") == 2
        assert kv.problem == ""


async def test_an_etcd_that_has_stopped_is_known_to_be_silent_before_a_call_has_failed(
    etcd: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks about our health need not wait until a call's own time is over."""
    monkeypatch.setattr("storage.etcdclient.client.PROBE_SECONDS", 0.05)
    monkeypatch.setattr("storage.etcdclient.client.PROBE_SILENCE_SECONDS", 0.2)
    async with client(etcd.target, call_timeout_seconds=60.0) as kv, asyncio.timeout(WAIT_SECONDS):
        os.kill(etcd.pid, signal.SIGSTOP)
        try:
            await become(lambda: bool(kv.problem))
            assert kv.problem.startswith("etcd has not answered for")
        finally:
            os.kill(etcd.pid, signal.SIGCONT)
        await become(lambda: not kv.problem)


async def test_calls_and_watches_move_to_another_endpoint(etcd: EtcdProcess) -> None:
    async with Proxy(etcd.target) as first, Proxy(etcd.target) as second, client(first.target, second.target) as kv:
        watcher = kv.watch(api.WatchRequest(**ALL, start_revision=2))
        assert await put(kv, b"a") == 2
        assert await revisions(watcher, 2) == [2]
        used, other = (first, second) if first.connections and not second.connections else (second, first)
        used.refuse = True
        used.cut()
        assert await kv.read_revision() == 2
        assert await put(kv, b"a") == 3
        assert await revisions(watcher, 3) == [3]
        assert other.connections > 0


async def test_a_silent_endpoint_is_left_within_one_call(etcd: EtcdProcess) -> None:
    """Its connections stay open, as those of a stopped process do: reads and watches do not wait for the keep-alive."""
    async with contextlib.AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(Proxy(etcd.target)) for _ in range(2)]
        direct = await stack.enter_async_context(client(etcd.target))
        kv = await stack.enter_async_context(client(first.target, second.target, call_timeout_seconds=2.0))
        watcher = kv.watch(api.WatchRequest(**ALL, start_revision=2))
        assert await put(kv, b"a") == 2
        assert await revisions(watcher, 2) == [2]
        endpoint = kv._connections.ready_now()
        assert endpoint is not None
        (first if endpoint.url.endswith(first.target) else second).swallow_answers = True
        assert await put(direct, b"a") == 3
        assert await kv.read_revision() == 3
        assert await revisions(watcher, 3) == [3]


async def test_a_watch_goes_on_over_restarts_without_gap_or_repeat(etcd: EtcdProcess) -> None:
    """ST-W4, with 5 restarts under load: every revision once and in order."""
    async with client(etcd.target) as kv:
        watcher = kv.watch(api.WatchRequest(**ALL, start_revision=2))
        seen: list[int] = []
        written = 1
        for _ in range(5):
            for _ in range(40):
                written = await put(kv, b"a")
            etcd.kill()
            etcd.start()
            await asyncio.to_thread(etcd.wait_until_ready)
        seen = await revisions(watcher, written)
        assert seen == list(range(2, written + 1))
        watcher.cancel()


async def test_a_watch_that_was_overtaken_by_compaction_says_so(proxy: Proxy, etcd: EtcdProcess) -> None:
    """ST-S2: first what was buffered, then the compaction, never a jump."""
    async with client(proxy.target) as kv, client(etcd.target) as direct:
        watcher = kv.watch(api.WatchRequest(key=b"a", start_revision=2))
        await put(kv, b"a")
        assert await revisions(watcher, 2) == [2]
        proxy.refuse = True
        proxy.cut()
        for _ in range(5):
            await put(direct, b"a")
        await direct.compact(6)
        proxy.refuse = False
        async with asyncio.timeout(WAIT_SECONDS):
            with pytest.raises(errors.CompactedError) as told:
                while True:
                    await watcher.wait()
                    assert watcher.take() is None or pytest.fail("an event behind the gap")
        assert told.value.compact_revision == 6


async def test_a_reader_that_is_slow_holds_back_no_other_and_loses_nothing(etcd: EtcdProcess) -> None:
    """ST-S1: its buffer is bounded, and what is beyond stays with etcd until it reads."""
    from storage.etcdclient import watches

    async with client(etcd.target) as kv:
        slow = kv.watch(api.WatchRequest(**ALL, start_revision=2))
        quick = kv.watch(api.WatchRequest(**ALL, start_revision=2))
        value = b"x" * 10_000
        for start in range(0, 12_000, 120):
            puts = tuple(api.PutRequest(key=b"%d" % number, value=value[:100]) for number in range(start, start + 120))
            await kv.txn(api.TxnRequest(success=puts))
        last = await kv.read_revision()
        assert sorted(set(await revisions(quick, last))) == list(range(2, last + 1))
        assert isinstance(slow, watches.EtcdWatcher)
        assert slow._buffered_events < watches.BUFFER_EVENTS_MAX + 1_200
        found = await revisions(slow, last)
        assert sorted(set(found)) == list(range(2, last + 1))
        assert len(found) == 12_000


async def test_answers_larger_than_grpcs_usual_limit_are_taken(etcd: EtcdProcess) -> None:
    async with client(etcd.target) as kv:
        value = os.urandom(1_400_000)
        for number in range(5):
            await put(kv, b"big/%d" % number, value)
        found = await kv.range(api.RangeRequest(key=b"big/", range_end=b"big0"))
        assert [kv.value for kv in found.kvs] == [value] * 5
        watcher = kv.watch(api.WatchRequest(**ALL, start_revision=2, prev_kv=True))
        assert await revisions(watcher, 6) == [2, 3, 4, 5, 6]
        with pytest.raises(errors.RequestTooLargeError):
            await put(kv, b"too", value * 2)


async def test_a_revision_read_after_a_write_elsewhere_covers_it(etcd: EtcdProcess) -> None:
    """Reads that are shared must not answer what was read before the caller came."""
    async with client(etcd.target) as kv, client(etcd.target) as other:
        for _ in range(30):
            early = [asyncio.create_task(kv.read_revision()) for _ in range(3)]
            written = await put(other, b"a")
            late = await asyncio.gather(*(kv.read_revision() for _ in range(3)))
            assert min(late) >= written
            await asyncio.gather(*early)


async def test_a_store_that_was_replaced_ends_its_watches(tmp_path: Path) -> None:
    """ST-B1: revisions of another history are not those that were seen, though they have the same numbers."""
    with EtcdProcess(tmp_path / "data") as etcd:
        async with client(etcd.target) as kv:
            for _ in range(5):
                await put(kv, b"a")
            watcher = kv.watch(api.WatchRequest(**ALL, start_revision=2))
            assert await revisions(watcher, 6) == [2, 3, 4, 5, 6]
            assert await kv.read_revision() == 6
            etcd.kill()
            shutil.rmtree(tmp_path / "data")
            etcd.start()
            await asyncio.to_thread(etcd.wait_until_ready)
            async with asyncio.timeout(WAIT_SECONDS):
                with pytest.raises(errors.CompactedError):
                    while True:
                        await watcher.wait()
                        assert watcher.take() is None or pytest.fail("an event of another history")
            anew = kv.watch(api.WatchRequest(**ALL, start_revision=2))
            assert await put(kv, b"b") == 2
            assert await revisions(anew, 2) == [2]


async def test_a_closed_client_says_so(etcd: EtcdProcess) -> None:
    async with client(etcd.target) as kv:
        watcher = kv.watch(api.WatchRequest(key=b"a", start_revision=2))
        await put(kv, b"a")
        async with asyncio.timeout(WAIT_SECONDS):
            await watcher.wait()
    batch = watcher.take()
    assert batch is not None
    assert batch.revision == 2
    await watcher.wait()
    with pytest.raises(errors.StoppedError):
        watcher.take()
    with pytest.raises(errors.StoppedError):
        await kv.read_revision()


async def test_a_paused_etcd_times_out_and_goes_on(etcd: EtcdProcess) -> None:
    async with client(etcd.target, call_timeout_seconds=0.5) as kv:
        await put(kv, b"a")
        os.kill(etcd.pid, signal.SIGSTOP)
        try:
            with pytest.raises(errors.RequestTimeoutError):
                await put(kv, b"a")
            with pytest.raises(errors.UnavailableError) as read:
                await kv.read_revision()
            assert not isinstance(read.value, errors.RequestTimeoutError)
        finally:
            os.kill(etcd.pid, signal.SIGCONT)
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                try:
                    assert (await kv.range(api.RangeRequest(key=b"a"))).kvs[0].version in (1, 2)
                    break
                except errors.UnavailableError:
                    continue


@pytest.mark.parametrize(
    ("endpoints", "files", "said"),
    [
        ((), {}, "at least one"),
        (("127.0.0.1:2379",), {}, "'127.0.0.1:2379' is not the URL of an etcd server; write it as https://host:2379"),
        (("ftp://a:1",), {}, "is not the URL"),
        (("https://a",), {}, "names no port"),
        (("https://a:70000",), {}, "out of range"),
        (("https://a:1/v3",), {}, "more than a host and a port"),
        (("https://a:1", "https://a:1"), {}, "named twice"),
        (("https://a:1",), {"cert_file": Path("c")}, "go together"),
        (("http://a:1",), {"ca_file": Path("c")}, "of no use with http://"),
    ],
)
def test_settings_that_cannot_work_are_refused(endpoints: tuple[str, ...], files: dict[str, Path], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        EtcdKV(ClientConfig(endpoints=endpoints, **files))  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_mutual_tls_and_a_certificate_that_is_replaced(tmp_path: Path) -> None:
    """The certificate of the first connections is good for the server; one of another CA is not; a new good one is used at once."""
    now = datetime.datetime.now(datetime.UTC)
    pki = Pki(tmp_path / "pki", now)
    serving = pki.serving("etcd", "127.0.0.1", "10.96.0.1")
    with EtcdProcess(tmp_path / "data", tls=TlsFiles(ca=pki.ca.certificate, certificate=serving.certificate, key=serving.key)) as etcd:
        good, foreign = pki.client("client", Subject("apiserver")), Pki(tmp_path / "other", now).client("client", Subject("apiserver"))
        certificate, key = tmp_path / "client.crt", tmp_path / "client.key"

        def use(pair: KeyPair) -> None:
            shutil.copy(pair.certificate, certificate)
            shutil.copy(pair.key, key)

        use(foreign)
        url = f"https://{etcd.tls_target}"
        files = {"ca_file": pki.ca.certificate, "cert_file": certificate, "key_file": key}
        config = ClientConfig(endpoints=(url,), connect_timeout_seconds=1.0, **files)  # type: ignore[arg-type]
        kv = EtcdKV(config)
        with pytest.raises(errors.UnavailableError):
            await kv.start()
        use(good)
        await kv.start()
        assert await put(kv, b"a") == 2
        await kv.close()
        stranger = EtcdKV(ClientConfig(endpoints=(url,), connect_timeout_seconds=0.5))  # trusts the system's authorities only
        with pytest.raises(errors.UnavailableError):
            await stranger.start()
        await stranger.close()
        with pytest.raises(errors.DataDirError, match="no-such-file: No such file"):
            await EtcdKV(ClientConfig(endpoints=(url,), ca_file=tmp_path / "no-such-file")).start()
