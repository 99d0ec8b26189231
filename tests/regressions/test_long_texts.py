"""Texts of a request that cost more than they look: a number of a million digits was looked at digit by digit for the words of its refusal
(two seconds in which nobody else was served), and a selector of a hundred thousand requirements was taken apart whole."""

from __future__ import annotations

import pytest

from apiserver.machinery import labels
from apiserver.schemas import json_bodies, json_syntax


def test_digits_are_passed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    real = json_syntax._DIGITS

    class Counting:
        def match(self, body: bytes, at: int) -> object:
            nonlocal looked_at
            looked_at += 1
            return real.match(body, at)

    monkeypatch.setattr(json_syntax, "_DIGITS", Counting())
    with pytest.raises(json_bodies.DecodeError):
        json_bodies.parse(b'{"k":' + b"9" * 1_000_000 + b"}")
    assert looked_at <= 4


def test_a_selector_has_a_bounded_number_of_requirements() -> None:
    assert len(labels.parse(",".join(f"k{n}" for n in range(labels.REQUIREMENTS_MAX))).requirements) == labels.REQUIREMENTS_MAX
    with pytest.raises(labels.SelectorError, match="more than 5000 requirements"):
        labels.parse("a," * 100_000 + "b")
