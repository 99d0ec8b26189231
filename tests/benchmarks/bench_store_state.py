"""What the store's state machine costs, without log and network: microseconds of the applying thread's CPU time per operation.

    python -m tests.benchmarks.bench_store_state [--keys 10000] [--value-bytes 1500] [--watchers 60]

The machine's own pace is the first line (building one frozen KeyValue): divide by it to compare machines or moments.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from storage import api
from storage.backend.lmdb_backend import LmdbBackend
from storage.lease.lessor import Lessor
from storage.member.applier import Applier
from storage.mvcc import kv_codec
from storage.watch.watchable_store import WatchableStore

RANGES = 60
ROUNDS = 5


def report(name: str, count: int, work: Callable[[], object], *, rounds: int = ROUNDS) -> None:
    """The best of ``rounds``."""
    best = float("inf")
    for _ in range(rounds):
        started = time.thread_time()
        work()
        best = min(best, time.thread_time() - started)
    print(f"{name:48s} {best / count * 1e6:9.2f} µs", flush=True)


def each(work: Callable[[], object], count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            work()

    return run


class World:
    def __init__(self, path: Path) -> None:
        self.backend = LmdbBackend(path, sync=False)
        self.lessor = Lessor(self.backend)
        self.store = WatchableStore(self.backend, self.lessor)
        self.applier = Applier(self.store, self.lessor, make_header=_header, monotonic=time.monotonic)

    def close(self) -> None:
        self.store.close()
        self.backend.close()


def guarded_put(world: World, key: bytes, value: bytes) -> api.TxnRequest:
    """What the API server sends for an update."""
    current = world.store.store.get(key)
    assert current is not None
    return api.TxnRequest(
        compare=(api.Compare(key=key, target=api.CompareTarget.MOD, operand=current.mod_revision),),
        success=(api.PutRequest(key=key, value=value),),
        failure=(api.RangeRequest(key=key),),
    )


def _header(revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=1, member_id=1, revision=revision, raft_term=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--value-bytes", type=int, default=1500)
    parser.add_argument("--watchers", type=int, default=60, help=f"spread over {RANGES} ranges")
    arguments = parser.parse_args()
    count, value = arguments.keys, b"x" * arguments.value_bytes
    keys = [b"/registry/%02d/default/name-%06d" % (number % RANGES, number) for number in range(count)]
    random.Random(0).shuffle(keys)
    with tempfile.TemporaryDirectory(prefix="bench-state-") as directory:
        world = World(Path(directory) / "db")
        watchers = []
        for number in range(arguments.watchers):
            prefix = b"/registry/%02d/" % (number % RANGES)
            watchers.append(world.store.watch(api.WatchRequest(key=prefix, range_end=prefix[:-1] + b"0")))

        def write_all(write: Callable[[bytes], object]) -> None:
            for number, key in enumerate(keys):
                write(key)
                if number % 500 == 0:
                    world.backend.maybe_commit(time.monotonic())
                    for watcher in watchers:
                        while watcher.take():
                            pass

        def put(key: bytes) -> None:
            txn = world.store.write_txn()
            txn.put(key, value)
            txn.end()

        def guarded_puts() -> None:
            requests = {key: guarded_put(world, key, value) for key in keys}
            started = time.thread_time()
            write_all(lambda key: world.applier.txn(requests[key]))
            spent.append(time.thread_time() - started)

        report("build one KeyValue (the machine's pace)", count, each(lambda: api.KeyValue(b"k", 1, 2, 3, value, 0), count))
        report("put of a new key", count, lambda: write_all(put), rounds=1)
        report("put of a key that exists", count, lambda: write_all(put))
        spent: list[float] = []
        for _ in range(ROUNDS):
            guarded_puts()
        print(f"{'guarded put: compare, put, response':48s} {min(spent) / count * 1e6:9.2f} µs", flush=True)
        requests = [api.RangeRequest(key=key) for key in keys]

        def read_all() -> None:
            for request in requests:
                world.store.range(request)

        report("range of one key, from the buffer", count, read_all)
        world.backend.commit()
        report("range of one key, from disk", count, read_all)
        everything = api.RangeRequest(key=b"/registry/", range_end=b"/registry0")
        report("range of all, per key", count, lambda: world.store.range(everything))
        counting = api.RangeRequest(key=b"/registry/", range_end=b"/registry0", count_only=True)
        report("count of all", 1, lambda: world.store.range(counting))
        record = kv_codec.encode_fields(keys[0], 12_345, 234_567, 3, value, 0)
        report("decode a record", count, each(lambda: kv_codec.decode(record), count))
        report("encode a record", count, each(lambda: kv_codec.encode_fields(keys[0], 12_345, 234_567, 3, value, 0), count))
        world.close()
        worlds = []
        report(f"start, per record ({world.store.current_revision - 1} of {count} keys)", world.store.current_revision - 1,
               lambda: worlds.append(World(Path(directory) / "db")), rounds=1)  # fmt: skip
        world = worlds[0]
        world.store.compact(world.store.current_revision)

        def compact() -> None:
            while world.store.compaction_step():
                pass

        report("compaction, per record", world.store.current_revision - 1, compact, rounds=1)
        many = [world.store.watch(api.WatchRequest(key=b"/fan/", range_end=b"/fan0")) for _ in range(1000)]

        def fan_out() -> None:
            put(b"/fan/out")
            for watcher in many:
                assert watcher.take()

        report("one event to 1000 watchers, per watcher", 1000, fan_out)
        world.close()


if __name__ == "__main__":
    main()
