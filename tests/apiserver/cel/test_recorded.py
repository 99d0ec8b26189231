"""What the real 1.36 server said of nine hundred expressions, and of random ones (tests/cel_differential records it)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cel_differential import compare

RECORDED: dict[str, str] = json.loads((Path(__file__).parent / "recorded.json").read_text())

# The recording server has a newer cel-go than Kubernetes 1.36 pins: other words for timestamps, no order for NaN, a check of sizes.
# The last one has a line break, which the server does not show.
DIFFERENT = {"0.0/0.0 < 1.0", "timestamp(self.s)", "timestamp(dyn('x'))", "lists.range(-1)", r"""'\x41\101\n\\\'\"\?\`'"""}


@pytest.mark.parametrize("start", range(0, len(RECORDED), 100))
def test_we_say_what_the_real_server_said(start: int) -> None:
    wrong = {
        expression: (answer, ours)
        for expression, answer in list(RECORDED.items())[start : start + 100]
        if expression not in DIFFERENT and not compare.same(answer, ours := compare.ours(expression))
    }
    assert not wrong
