"""A fixed share of the fuzzing in every build, and what it found before."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import write_targets
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import targets

TARGETS = targets()
INPUTS = 250


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_good_inputs_are_taken(name: str) -> None:
    for data in TARGETS[name].seeds:
        TARGETS[name].run(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_mutated_inputs_break_no_promise(name: str) -> None:
    rng = random.Random(name)
    target = TARGETS[name]
    for _ in range(INPUTS):
        target.run(mutated(rng, target.seeds))


@pytest.mark.slow
def test_mutated_structures_of_writes_break_no_promise() -> None:
    rng = random.Random("structures")
    for _ in range(INPUTS):
        write_targets.writes(write_targets.mutated_structure(rng))


#: those that take long for one input
SLOW = {"http2_connection", "bbolt_file", "protobuf_requests", "writes"}


@settings(max_examples=100)
@given(data=st.binary(max_size=200), name=st.sampled_from(sorted(set(TARGETS) - SLOW)))
def test_any_bytes_break_no_promise(data: bytes, name: str) -> None:
    TARGETS[name].run(data)
