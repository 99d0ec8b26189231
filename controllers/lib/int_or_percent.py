"""Values that are a number or a percentage of something (``intstr.IntOrString``). Pure."""

from __future__ import annotations


def scaled(value: int | str | None, total: int, *, round_up: bool, default: int = 0) -> int:
    """The number itself, or that share of ``total`` rounded up or down. Text without % counts as ``default``.

    >>> scaled("25%", 3, round_up=True), scaled("25%", 3, round_up=False), scaled(2, 3, round_up=True)
    (1, 0, 2)
    """
    if value is None:
        return default
    if isinstance(value, int):
        return value
    if not value.endswith("%") or not value[:-1].isdigit():
        return default
    product = int(value[:-1]) * total
    return -(-product // 100) if round_up else product // 100
