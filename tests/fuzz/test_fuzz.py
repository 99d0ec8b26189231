"""A fixed share of the fuzzing in every build, and what it found before."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=100)
@given(data=st.binary(max_size=200), name=st.sampled_from(sorted(set(TARGETS) - {"http2_connection", "bbolt_file", "protobuf_requests"})))
def test_any_bytes_break_no_promise(data: bytes, name: str) -> None:
    TARGETS[name].run(data)
