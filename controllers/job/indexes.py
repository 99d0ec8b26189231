"""Completion indexes as the status writes them: ``0-3,5,7-9``. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

ANNOTATION = "batch.kubernetes.io/job-completion-index"


def of_pod(pod: Object) -> int | None:
    text = objects.annotations(pod).get(ANNOTATION, "")
    return int(text) if text.isdigit() else None


def parse(text: str) -> set[int]:
    """
    >>> sorted(parse("0-2,5"))
    [0, 1, 2, 5]
    """
    out: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


def text(indexes: Iterable[int]) -> str:
    """
    >>> text([5, 0, 1, 2, 7, 8])
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(str(i) for i in run) for run in runs)
