"""What a container would do if it ran: how long, and with which exit code. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

PREFIX = "hollow.sampan.dev/"
_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?|infinity|inf)\b")
_EXIT = re.compile(r"\bexit\s+(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class Workload:
    """``seconds`` None: until it is stopped."""

    seconds: float | None
    exit_code: int = 0


def workload_of(pod: Object, container: Object, *, default_seconds: float) -> Workload:
    """Annotations first, then the command, then the pod's restartPolicy.

    A command that sleeps (``sleep 5; exit 3``) runs that long, also where restartPolicy is Always; ``sleep infinity`` runs on.
    """
    seconds: float | None = None
    exit_code = 0
    completes = objects.get(pod, "spec", "restartPolicy", default="Always") != "Always"
    if completes:
        seconds = default_seconds
    command = " ".join(str(part) for part in [*(container.get("command") or []), *(container.get("args") or [])])
    if command:
        sleeps = _SLEEP.findall(command)
        if sleeps:
            seconds = None if any(s.startswith("inf") for s in sleeps) else sum(float(s) for s in sleeps)
            if "while" in command or "for ((;;" in command:
                seconds = None
        found = _EXIT.search(command)
        if found:
            exit_code = int(found.group(1)) & 0xFF
            seconds = default_seconds if seconds is None and not sleeps else seconds
        elif command.strip() in ("false", "/bin/false"):
            seconds, exit_code = default_seconds, 1
        elif command.strip() in ("true", "/bin/true"):
            seconds = default_seconds
    wanted = annotation_number(pod, "run-seconds")
    code = annotation_number(pod, "exit-code")
    if code is not None:
        exit_code = int(code) & 0xFF
        seconds = default_seconds if seconds is None else seconds
    return Workload(wanted if wanted is not None else seconds, exit_code)


def annotation_number(pod: Object, name: str) -> float | None:
    """Of a hollow annotation; None where it is missing or no number."""
    try:
        return max(0.0, float(objects.annotations(pod)[PREFIX + name]))
    except (KeyError, ValueError):
        return None


def annotation_flag(pod: Object, name: str) -> bool:
    return objects.annotations(pod).get(PREFIX + name) == "true"
