"""FlowSchemas and priority levels as the store has them, made into what requests are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.flowcontrol import bootstrap
from apiserver.flowcontrol.allocation import Shares
from apiserver.flowcontrol.queue_set import Queuing
from apiserver.flowcontrol.rules import FlowSchema, flow_schema

EXEMPT = "exempt"
CATCH_ALL = "catch-all"

_Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    name: str
    uid: str
    exempt: bool
    shares: Shares
    #: None: what finds no seat is refused
    queuing: Queuing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """``schemas`` are in the order in which they are asked; each names a level that is there, and the last one matches everybody."""

    levels: Mapping[str, Level]
    schemas: tuple[FlowSchema, ...]


def level(obj: _Part) -> Level:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    exempt = spec.get("type") == "Exempt"
    part = spec.get("exempt" if exempt else "limited") or {}
    # of the versions before 1.26 by another name
    shares = part.get("nominalConcurrencyShares", part.get("assuredConcurrencyShares"))
    queuing = (part.get("limitResponse") or {}).get("queuing") if not exempt else None
    return Level(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        exempt=exempt,
        shares=Shares(
            shares=(0 if exempt else 30) if shares is None else shares,
            lendable_percent=part.get("lendablePercent") or 0,
            borrowing_percent=part.get("borrowingLimitPercent"),
        ),
        queuing=None
        if queuing is None
        else Queuing(
            queues=queuing.get("queues") or 64,
            hand_size=queuing.get("handSize") or 8,
            length_limit=queuing.get("queueLengthLimit") or 50,
        ),
    )


def configuration(levels: Iterable[_Part], schemas: Iterable[_Part]) -> Configuration:
    """The mandatory objects stand in where they are missing. A schema whose level is not there is passed over."""
    found = {each.name: each for each in map(level, levels)}
    for obj in bootstrap.mandatory_levels():
        found.setdefault(obj["metadata"]["name"], level(obj))
    parsed = [each for each in map(flow_schema, schemas) if each.level in found]
    names = {each.name for each in parsed}
    parsed += [flow_schema(obj) for obj in bootstrap.mandatory_schemas() if obj["metadata"]["name"] not in names]
    parsed.sort(key=lambda each: (each.precedence, each.name))
    return Configuration(levels=found, schemas=tuple(parsed))
