"""What ``sampan up`` says of what it has found in the store: all of it of a backup, else only what is not as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from apiserver.objectstore.interface import Unreadable
from apiserver.objectstore.object_store import Census, PrefixCount

#: kinds in one line of the list
_LINE_CHARACTERS = 100
#: keys shown of what cannot be read
EXAMPLES_MAX = 5
#: keys of API servers themselves, which are no objects: who lives, which addresses are taken, a lock of the storage layer
SERVERS_OWN = frozenset(("health", "masterleases", "peerserverleases", "ranges", "serviceips", "servicenodeports"))


def of(census: Census, *, each_kind: bool, prefix: str = "/registry") -> str:
    """Lines to print, with a blank one at the end; nothing where all is as usual and ``each_kind`` is not asked for. ``prefix``: where the
    objects were looked for."""
    if each_kind and not census.prefixes and not census.elsewhere:
        return f"nothing is stored under {prefix}: is it another cluster's, with its keys elsewhere (--etcd-prefix)?\n\n"
    foreign = {place: count for place, count in census.elsewhere.items() if place not in SERVERS_OWN}
    unreadable = census.unreadable
    lines: list[str] = []
    if each_kind:
        kinds = [f"{count.prefix} {count.read:,}" for count in census.prefixes if count.read]
        lines += [f"{census.read:,} objects were read:", *_wrapped(kinds)]
        own = sum(count for place, count in census.elsewhere.items() if place in SERVERS_OWN)
        if own:
            lines.append(f"{own:,} keys are the old servers' own (addresses given, who lives): left alone")
    for reason in Unreadable:
        lines += _lines_of(reason, census.prefixes)
    if foreign:
        lines.append(f"{sum(foreign.values()):,} keys of resources that are not served here are left alone:")
        lines += _wrapped(f"{place} {count:,}" for place, count in sorted(foreign.items()))
    if not lines:
        return ""
    if each_kind and not unreadable and not foreign:
        lines.append("nothing is encrypted, unknown or damaged")
    return "".join(f"{line}\n" for line in lines) + "\n"


def _lines_of(reason: Unreadable, prefixes: Iterable[PrefixCount]) -> list[str]:
    found = [error for count in prefixes for error in count.unreadable if error.reason is reason]
    if not found:
        return []
    counted = Counter(count.prefix for count in prefixes for error in count.unreadable if error.reason is reason)
    what = ", ".join(f"{prefix} {number:,}" for prefix, number in sorted(counted.items()))
    lines = [f"{len(found):,} objects are {reason.value} and left alone ({what}):"]
    lines += [f"  {error}" for error in found[:EXAMPLES_MAX]]
    if len(found) > EXAMPLES_MAX:
        lines.append(f"  … and {len(found) - EXAMPLES_MAX:,} more")
    return lines


def _wrapped(parts: Iterable[str]) -> list[str]:
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > _LINE_CHARACTERS:
            lines[-1] += ","
            lines.append("")
        lines[-1] += f", {part}" if lines[-1] else f"  {part}"
    return [line if line.startswith("  ") else f"  {line}" for line in lines if line]
