"""Bad values in messages are shown as Go shows them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.field_errors import Pointed, invalid


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a<b>&\u2028", '"a<b>&\\u2028"'),  # %q
        (Pointed("a<b>&\u2028"), '"a\\u003cb\\u003e\\u0026\\u2028"'),  # encoding/json, as for all that is no scalar
        ({"a": ["<", "\u2029", 'q"']}, '{"a":["\\u003c","\\u2029","q\\""]}'),
        (True, "true"),
        (7, "7"),
    ],
)
def test_a_bad_value_is_shown_as_go_shows_it(value: Any, shown: str) -> None:
    assert invalid("spec.a", value, "why").body() == f"Invalid value: {shown}: why"
