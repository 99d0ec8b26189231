"""New inputs from known good ones: the changes that find most, by a seeded generator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

MUTATIONS_MAX: Final = 6
BYTES_MAX: Final = 64 * 1024
"""Of an input: larger ones find nothing more and slow everything down."""

_INTERESTING: Final = (
    *(b"\xff" * 10, b"\x80" * 9 + b"\x01", b"\x7f", b"\x80\x80\x80\x80\x10"),
    *(
        (number % (1 << 8 * size)).to_bytes(size, "big")
        for size in (1, 2, 4, 8)
        for number in (0, 1, 256, -1, (1 << (8 * size - 1)) - 1, 1 << (8 * size - 1))
    ),
)
"""Numbers at the edges of their width; varints that are too long or too large."""


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of ``seeds``, changed one or several times."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, MUTATIONS_MAX)):
        _mutate(rng, data, seeds)
    return bytes(data[:BYTES_MAX])


def _mutate(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, rng.randint(0, 64))))
    match rng.randrange(9):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1 if at < len(data):
            data[at] = rng.randrange(256)
        case 2:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        case 3:
            del data[at:end]
        case 4:
            data[at:at] = data[at:end]
        case 5:
            interesting = rng.choice(_INTERESTING)
            data[at : at + len(interesting)] = interesting
        case 6:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[at:end] = other[start : start + rng.randint(0, 64)]
        case 7:
            del data[at:]
        case _:
            if at < len(data):
                data[at] = (data[at] + rng.choice((-1, 1))) % 256
