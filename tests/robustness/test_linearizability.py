"""The checker itself: known good and known bad histories, and a brute-force twin that tries every order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import api, errors
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.member import request as log_request
from storage.member import txn
from storage.member.applier import Applier
from storage.watch.watchable_store import WatchableStore
from tests.robustness import kv_model
from tests.robustness.history import UNKNOWN, Answered, Operation, Outcome, Refused, Unknown, agrees
from tests.robustness.linearizability import UndecidedError, Verdict, check_against_log, check_search

KEYS = (b"a", b"b")


def put(key: str, value: str, **options: bool) -> api.PutRequest:
    return api.PutRequest(key=key.encode(), value=value.encode(), **options)


def get(key: str, *, serializable: bool = False, revision: int = 0) -> api.RangeRequest:
    return api.RangeRequest(key=key.encode(), serializable=serializable, revision=revision)


def delete(key: str) -> api.DeleteRangeRequest:
    return api.DeleteRangeRequest(key=key.encode())


def swap(key: str, mod_revision: int, value: str) -> api.TxnRequest:
    """Compare and swap, with the newest value in the answer where it fails: what an API server's update is."""
    compare = api.Compare(key=key.encode(), target=api.CompareTarget.MOD, operand=mod_revision)
    return api.TxnRequest(compare=(compare,), success=(put(key, value),), failure=(get(key),))


def header(revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=7, member_id=8, revision=revision, raft_term=9)


def done(revision: int) -> Answered:
    return Answered(api.PutResponse(header=header(revision)))


def found(revision: int, key: str, value: str, mod: int, created: int | None = None, version: int = 1) -> Answered:
    kv = api.KeyValue(key.encode(), created or mod, mod, version, value.encode())
    return Answered(api.RangeResponse(header=header(revision), kvs=(kv,), more=False, count=1))


def absent(revision: int) -> Answered:
    return Answered(api.RangeResponse(header=header(revision), kvs=(), more=False, count=0))


def history(*calls: tuple[kv_model.Request, float, float, Outcome]) -> list[Operation]:
    return [Operation(client, request, called, returned, outcome) for client, (request, called, returned, outcome) in enumerate(calls)]


def both(operations: Sequence[Operation], log: Sequence[kv_model.Request]) -> tuple[Verdict, Verdict]:
    return check_search(operations), check_against_log(operations, log)


def assert_good(operations: Sequence[Operation], log: Sequence[kv_model.Request]) -> None:
    for verdict in both(operations, log):
        assert verdict.ok, verdict.problems


def assert_bad(operations: Sequence[Operation], log: Sequence[kv_model.Request], text: str) -> None:
    """By both, and the log's verdict says what is wrong."""
    search, by_log = both(operations, log)
    assert not search.ok
    assert any(text in problem for problem in by_log.problems), by_log.problems


# -- good


def test_calls_one_after_the_other() -> None:
    one, two = put("a", "1"), put("a", "2")
    assert_good(
        history((one, 0, 1, done(2)), (get("a"), 2, 3, found(2, "a", "1", 2)), (two, 4, 5, done(3)), (get("b"), 6, 7, absent(3))),
        [one, two],
    )


def test_calls_at_one_time_may_take_effect_in_any_order() -> None:
    one, two = put("a", "1"), put("a", "2")
    read = found(3, "a", "1", 3, created=2, version=2)
    assert_good(history((one, 0, 10, done(3)), (two, 0, 10, done(2)), (get("a"), 5, 6, read)), [two, one])


@pytest.mark.parametrize("was_done", [True, False])
def test_a_write_without_an_answer_may_have_been_done_or_not(was_done: bool) -> None:
    one, two = put("a", "1"), put("a", "2")
    read = found(3, "a", "2", 3, created=2, version=2) if was_done else found(2, "a", "1", 2)
    calls = history((one, 0, 1, done(2)), (two, 2, 3, UNKNOWN), (get("a"), 9, 10, read))
    assert_good(calls, [one, two] if was_done else [one])


def test_a_write_without_an_answer_may_be_done_long_after_its_caller_gave_up() -> None:
    one, two = put("a", "1"), put("a", "2")
    calls = history(
        (two, 0, 1, UNKNOWN), (one, 2, 3, done(2)), (get("a"), 4, 5, found(2, "a", "1", 2)),
        (get("a"), 6, 7, found(3, "a", "2", 3, created=2, version=2)),
    )  # fmt: skip
    assert_good(calls, [one, two])


def test_a_serializable_read_may_look_back() -> None:
    one, two = put("a", "1"), put("a", "2")
    calls = history((one, 0, 1, done(2)), (two, 2, 3, done(3)), (get("a", serializable=True), 4, 5, found(2, "a", "1", 2)))
    assert_good(calls, [one, two])


def test_swaps_that_fail_change_nothing_and_show_what_is_there() -> None:
    one, lost = swap("a", 0, "1"), swap("a", 0, "2")
    failure = api.TxnResponse(header=header(2), succeeded=False, responses=(found(2, "a", "1", 2).response,))  # type: ignore[arg-type]
    success = api.TxnResponse(header=header(2), succeeded=True, responses=(api.PutResponse(header=header(2)),))
    assert_good(history((one, 0, 5, Answered(success)), (lost, 1, 6, Answered(failure))), [one, lost])


def test_what_a_door_does_not_show_is_not_compared() -> None:
    """An API server shows no header revision of a GET, no create revision and no version."""
    one, two = put("a", "1"), put("a", "2")
    kv = api.KeyValue(b"a", 0, 3, 0, b"2")
    read = Answered(api.RangeResponse(header=header(0), kvs=(kv,), more=False, count=1))
    assert_good(history((one, 0, 1, done(2)), (two, 2, 3, done(3)), (get("a"), 4, 5, read)), [one, two])


def test_refusals_must_be_right() -> None:
    one, two = put("a", "1"), put("a", "2")
    compact = log_request.CompactionRequest(revision=3)
    too_late = get("a", revision=2)
    calls = history(
        (one, 0, 1, done(2)), (two, 2, 3, done(3)), (compact, 4, 5, Answered(api.CompactionResponse(header=header(3)))),
        (too_late, 6, 7, Refused(errors.CompactedError)), (get("a", revision=9), 6, 7, Refused(errors.FutureRevisionError)),
    )  # fmt: skip
    assert_good(calls, [one, two, compact])
    early = [*calls[:2], replace(calls[3], called=3.1, returned=3.2), calls[2]]
    assert_bad(early, [one, two, compact], "no entry after position 3")


def test_leases_take_their_keys_at_one_revision() -> None:
    grant, revoke = log_request.LeaseGrantRequest(id=5, ttl_seconds=60), log_request.LeaseRevokeRequest(id=5)
    leased = api.PutRequest(key=b"a", value=b"1", lease=5)
    calls = history(
        (grant, 0, 1, Answered(api.LeaseGrantResponse(header=header(1), id=5, ttl_seconds=60))),
        (leased, 2, 3, done(2)), (revoke, 4, 5, Answered(header(3))), (get("a"), 6, 7, absent(3)),
        (leased, 8, 9, Refused(errors.LeaseNotFoundError)),
    )  # fmt: skip
    assert_good(calls, [grant, leased, revoke])


# -- bad


def test_a_stale_read() -> None:
    one, two = put("a", "1"), put("a", "2")
    calls = history((one, 0, 1, done(2)), (two, 2, 3, done(3)), (get("a"), 4, 5, found(2, "a", "1", 2)))
    assert_bad(calls, [one, two], "is stale")


def test_a_read_that_goes_back_behind_another() -> None:
    """The write has not returned, but a read has shown it: from then on everybody must see it."""
    one, two = put("a", "1"), put("a", "2")
    seen = found(3, "a", "2", 3, created=2, version=2)
    calls = history((one, 0, 1, done(2)), (two, 2, 99, done(3)), (get("a"), 3, 4, seen), (get("a"), 5, 6, found(2, "a", "1", 2)))
    assert_bad(calls, [one, two], "is stale")


def test_a_lost_acknowledged_write() -> None:
    one, two = put("a", "1"), put("b", "2")
    calls = history((one, 0, 1, done(2)), (two, 2, 3, done(2)), (get("a"), 4, 5, absent(2)))
    assert_bad(calls, [two], "is not what the log has")
    assert_bad(history((one, 0, 1, done(2)), (get("a"), 4, 5, absent(1))), [], "which the log does not have")


def test_a_write_that_was_applied_twice() -> None:
    one = put("a", "1")
    calls = history((one, 0, 1, done(2)), (get("a"), 4, 5, found(3, "a", "1", 3, created=2, version=2)))
    assert_bad(calls, [one, one], "nobody asked for it")


def test_an_unanswered_write_that_was_applied_twice() -> None:
    one = put("a", "1")
    calls = history((one, 0, 1, UNKNOWN), (get("a"), 4, 5, found(3, "a", "1", 3, created=2, version=2)))
    assert_bad(calls, [one, one], "once less often")


def test_writes_in_the_wrong_order() -> None:
    one, two = put("a", "1"), put("a", "2")
    assert_bad(history((one, 0, 1, done(3)), (two, 2, 3, done(2))), [two, one], "stands in the log before")


def test_a_wrong_revision() -> None:
    one, two = put("a", "1"), put("b", "2")
    assert_bad(history((one, 0, 1, done(2)), (two, 2, 3, done(4))), [one, two], "which the log does not have")


def test_two_writes_at_one_revision() -> None:
    one, two = put("a", "1"), put("a", "1")
    assert_bad(history((one, 0, 9, done(2)), (two, 0, 9, done(2))), [one, two], "at one revision")


def test_a_read_of_what_nobody_wrote() -> None:
    one = put("a", "1")
    assert_bad(history((one, 0, 1, done(2)), (get("a"), 2, 3, found(2, "a", "x", 2))), [one], "at revision 2 the log says")


def test_a_write_before_it_was_asked_for() -> None:
    one = put("a", "1")
    calls = history((get("a"), 0, 1, found(2, "a", "1", 2)), (one, 2, 3, UNKNOWN), (get("b"), 0.5, 1, absent(2)))
    search, by_log = both(calls, [one])
    assert not search.ok
    assert not by_log.ok


def test_a_serializable_read_of_the_future() -> None:
    one = put("a", "1")
    read = found(2, "a", "1", 2)
    assert_bad(history((get("a", serializable=True), 0, 1, read), (one, 2, 3, done(2))), [one], "stands in the log before")


def test_a_swap_on_a_value_that_has_passed() -> None:
    one, two, late = put("a", "1"), put("a", "2"), swap("a", 2, "3")
    success = api.TxnResponse(header=header(4), succeeded=True, responses=(api.PutResponse(header=header(4)),))
    calls = history((one, 0, 1, done(2)), (two, 2, 3, done(3)), (late, 4, 5, Answered(success)))
    assert_bad(calls, [one, two, put("a", "3")], "is not what the log has")


def test_keys_of_others_are_not_judged() -> None:
    mine, theirs = put("a", "1"), put("x", "1")
    calls = history((mine, 0, 1, done(3)))
    assert check_against_log(calls, [theirs, mine], is_ours=lambda key: key == b"a").ok
    assert not check_against_log(calls, [theirs, mine]).ok


def test_a_search_that_is_too_long_says_so() -> None:
    calls = history(*[(put("a", str(number)), 0, 1, UNKNOWN) for number in range(12)], (get("a"), 2, 3, absent(99)))
    with pytest.raises(UndecidedError):
        check_search(calls, steps_max=1000)


# -- the twin


def brute_force(operations: Sequence[Operation]) -> bool:
    """Every subset of the unanswered calls, every order that fits real time."""
    certain = [each for each in operations if not isinstance(each.outcome, Unknown)]
    unknown = [each for each in operations if isinstance(each.outcome, Unknown)]
    for count in range(len(unknown) + 1):
        for also in itertools.combinations(unknown, count):
            if any(_explains(order) for order in itertools.permutations((*certain, *also))):
                return True
    return False


def _explains(order: Sequence[Operation]) -> bool:
    for position, later in enumerate(order):
        for earlier in order[:position]:
            ended = float("inf") if isinstance(later.outcome, Unknown) else later.returned
            began = float("-inf") if earlier.is_serializable_read else earlier.called
            if ended < began:
                return False
    state = kv_model.State()
    for operation in order:
        applied = kv_model.apply(state, operation.request)
        if not agrees(operation.outcome, applied.answer):
            return False
        state = applied.state
    return True


def random_requests(rng: random.Random, state: kv_model.State) -> kv_model.Request:
    key = rng.choice(KEYS).decode()
    known = state.keys.get(key.encode())
    value = str(rng.randrange(1000))
    return rng.choice(
        (
            put(key, value),
            put(key, value, prev_kv=True),
            get(key),
            get(key, serializable=True),
            api.RangeRequest(key=b"a", range_end=b"\0"),
            delete(key),
            swap(key, known.mod_revision if known else 0, value),
            swap(key, rng.randrange(4), value),
        )
    )


def sequential_run(rng: random.Random, count: int, *, unknown: float) -> tuple[list[Operation], list[kv_model.Request]]:
    """A history that is linearizable by construction: at each instant one call takes effect, and lasts from somewhat before to somewhat
    after. And the log that led to it."""
    state = kv_model.State()
    operations: list[Operation] = []
    log: list[kv_model.Request] = []
    states = [state]
    for instant in range(count):
        request = random_requests(rng, state)
        called, returned = instant - rng.random() * 2.5, instant + rng.random() * 2.5
        is_read = isinstance(request, api.RangeRequest)
        if not is_read and rng.random() < unknown / 2:
            operations.append(Operation(instant, request, called, returned, UNKNOWN))
            continue
        if is_read and request.serializable:  # type: ignore[union-attr]
            answer = kv_model.apply(rng.choice(states), request).answer
        else:
            applied = kv_model.apply(state, request)
            answer, state = applied.answer, applied.state
            log.append(request)
            states.append(state)
        if not is_read and rng.random() < unknown:
            outcome: Outcome = UNKNOWN
        else:
            outcome = Refused(answer) if isinstance(answer, type) else Answered(answer)
        operations.append(Operation(instant, request, called, returned, outcome))
    return operations, log


def mutated(rng: random.Random, operations: list[Operation]) -> list[Operation]:
    """One answer of another moment, or a call moved in time."""
    result = list(operations)
    index = rng.randrange(len(result))
    victim = result[index]
    kind = rng.randrange(3)
    if kind == 0:
        shift = rng.choice((-4.0, 4.0))
        result[index] = replace(victim, called=victim.called + shift, returned=victim.returned + shift)
    elif isinstance(victim.outcome, Answered):
        other = kv_model.State()
        for operation in rng.sample(operations, rng.randrange(len(operations))):
            other = kv_model.apply(other, operation.request).state
        answer = kv_model.apply(other, victim.request).answer
        result[index] = replace(victim, outcome=Refused(answer) if isinstance(answer, type) else Answered(answer))
    return result


@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 32), unknown=st.sampled_from((0.0, 0.2)))
def test_every_run_of_the_model_is_linearizable_however_its_calls_overlap(seed: int, unknown: float) -> None:
    rng = random.Random(seed)
    operations, log = sequential_run(rng, 40, unknown=unknown)
    rng.shuffle(operations)
    assert_good(operations, log)


@settings(max_examples=250)
@given(seed=st.integers(0, 1 << 32))
def test_search_and_brute_force_agree(seed: int) -> None:
    rng = random.Random(seed)
    operations, log = sequential_run(rng, 5, unknown=0.2)
    operations = mutated(rng, operations)
    verdict = check_search(operations)
    assert verdict.ok is brute_force(operations), operations
    if not verdict.ok:
        assert not check_against_log(operations, log).ok, "no log can explain it"


def test_the_twin_condemns_a_fair_share() -> None:
    """Else the test before would compare little."""
    rng = random.Random(1)
    verdicts = [check_search(mutated(rng, sequential_run(rng, 5, unknown=0.2)[0])).ok for _ in range(300)]
    assert 60 < sum(verdicts) < 240


# -- the model


@settings(max_examples=150)
@given(seed=st.integers(0, 1 << 32))
def test_model_and_state_machine_agree(seed: int) -> None:
    """The model shares nothing with the store; so it is a check of both."""
    rng = random.Random(seed)
    backend = MemoryBackend()
    lessor = Lessor(backend)
    store = WatchableStore(backend, lessor)
    applier = Applier(store, lessor, make_header=header, monotonic=lambda: 0.0)
    state = kv_model.State()
    for _ in range(40):
        request = random_any_request(rng, state)
        actual: Outcome
        try:
            match request:
                case api.RangeRequest():
                    actual = Answered(applier.range(request))
                case api.PutRequest():
                    actual = Answered(applier.put(request))
                case api.DeleteRangeRequest():
                    actual = Answered(applier.delete_range(request))
                case api.TxnRequest():
                    txn.check(request)
                    actual = Answered(applier.txn(request))
                case log_request.CompactionRequest():
                    actual = Answered(applier.compact(request.revision))
                case log_request.LeaseGrantRequest():
                    actual = Answered(applier.lease_grant(request.id, request.ttl_seconds))
                case log_request.LeaseRevokeRequest():
                    actual = Answered(applier.lease_revoke(request.id))
        except errors.InvalidRequestError:
            continue  # never reaches the log
        except errors.StoreError as error:
            actual = Refused(type(error))
        applied = kv_model.apply(state, request)
        assert agrees(actual, applied.answer), (request, actual, applied.answer)
        state = applied.state
    assert store.store.current_revision == state.revision


def random_any_request(rng: random.Random, state: kv_model.State) -> kv_model.Request:
    revision = rng.randrange(state.revision + 2)
    match rng.randrange(8):
        case 0:
            return log_request.CompactionRequest(revision=revision)
        case 1:
            return log_request.LeaseGrantRequest(id=rng.randrange(4), ttl_seconds=60)
        case 2:
            return log_request.LeaseRevokeRequest(id=rng.randrange(4))
        case 3 | 4:
            success, failure = (tuple(random_op(rng, revision) for _ in range(rng.randrange(4))) for _ in range(2))
            return api.TxnRequest(compare=tuple(random_compare(rng) for _ in range(rng.randrange(3))), success=success, failure=failure)
        case _:
            return random_op(rng, revision)


def random_key(rng: random.Random) -> tuple[bytes, bytes]:
    return rng.choice(((b"a", b""), (b"b", b""), (b"c", b""), (b"a", b"c"), (b"b", b"\0"), (b"c", b"a")))


def random_op(rng: random.Random, revision: int) -> api.Op:
    key, end = random_key(rng)
    match rng.randrange(5):
        case 0 | 1:
            ignore_value, ignore_lease = rng.random() < 0.2, rng.random() < 0.2
            return api.PutRequest(
                key=key,
                value=b"" if ignore_value else str(rng.randrange(9)).encode(),
                lease=0 if ignore_lease else rng.choice((0, 0, 1, 2, 3)),
                prev_kv=rng.random() < 0.5,
                ignore_value=ignore_value,
                ignore_lease=ignore_lease,
            )
        case 2:
            return api.DeleteRangeRequest(key=key, range_end=end, prev_kv=rng.random() < 0.5)
        case 3:
            return api.TxnRequest(
                compare=(random_compare(rng),), success=(api.PutRequest(key=b"d", value=b"1"),), failure=(api.RangeRequest(key=b"d"),)
            )
        case _:
            return api.RangeRequest(
                key=key,
                range_end=end,
                revision=rng.choice((0, 0, revision)),
                limit=rng.choice((0, 0, 1, 2)),
                keys_only=rng.random() < 0.2,
                count_only=rng.random() < 0.2,
                sort_order=rng.choice((api.SortOrder.NONE, api.SortOrder.ASCEND)),
            )


def random_compare(rng: random.Random) -> api.Compare:
    key, end = random_key(rng)
    target = rng.choice(tuple(api.CompareTarget))
    operand: int | bytes = str(rng.randrange(9)).encode() if target is api.CompareTarget.VALUE else rng.randrange(5)
    return api.Compare(key=key, range_end=end, target=target, result=rng.choice(tuple(api.CompareResult)), operand=operand)
