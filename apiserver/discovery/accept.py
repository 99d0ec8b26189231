"""Which form of discovery an Accept header asks for, and in which media type."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.discovery.documents import AGGREGATED_GROUP, AGGREGATED_KIND
from apiserver.machinery import status
from apiserver.request import negotiation
from apiserver.request.negotiation import ANSWER_TYPES, JSON, Clause, Negotiated

Headers = Mapping[bytes, bytes]
Query = Mapping[str, list[str]]


class DiscoveryForm(enum.Enum):
    """The value is the version of the aggregated document, "" for the plain ones."""

    PLAIN = ""
    AGGREGATED_V2 = "v2"
    AGGREGATED_V2BETA1 = "v2beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    form: DiscoveryForm
    negotiated: Negotiated

    @property
    def content_type(self) -> str:
        media_type = self.negotiated.media_type
        if self.form is DiscoveryForm.PLAIN:
            return media_type
        return f"{media_type};g={AGGREGATED_GROUP};v={self.form.value};as={AGGREGATED_KIND}"


def wanted(headers: Headers, query: Query, *, minor: int, aggregated: bool, routed: bool) -> Wanted:
    """What the header asks for; raises 406. ``minor`` is that of the Kubernetes version, whose aggregated v2 came with 1.30 and v2beta1
    with 1.27; ``aggregated``: whether the endpoint has aggregated forms at all, of which any clause will do, before all plain ones;
    ``routed``: whether upstream's router stands before it, which knows whole types alone."""
    accept = headers.get(b"accept", b"")
    if routed and not negotiation.passes_router(accept):
        raise status.not_routed(406, ANSWER_TYPES)
    clauses = negotiation.clauses_of(accept) if accept else ()
    for clause in clauses if aggregated else ():
        form = _aggregated_form(clause, minor)
        media_type = _media_type(clause)
        if form is not None and media_type:
            return Wanted(form=form, negotiated=Negotiated(media_type=media_type))
    if accept and not any(clause.convert is None and not clause.server_version and _media_type(clause) for clause in clauses):
        raise status.not_acceptable(ANSWER_TYPES)
    return Wanted(form=DiscoveryForm.PLAIN, negotiated=negotiation.of_status(headers, query))


def check_json(headers: Headers) -> None:
    """For what is served as JSON alone: raises 406."""
    ranges = [part.partition(b";")[0].strip(b" ") for part in headers.get(b"accept", b"*/*").split(b",")]
    if not any(range_ in (b"", b"*/*", JSON.encode()) for range_ in ranges):
        raise status.not_routed(406, (JSON,))


def _media_type(clause: Clause) -> str:
    """The first type that the clause covers, "" for none."""
    return next((media_type for media_type in ANSWER_TYPES if clause.covers(media_type) and clause.can_stream(media_type)), "")


def _aggregated_form(clause: Clause, minor: int) -> DiscoveryForm | None:
    if clause.convert is None or clause.server_version:
        return None
    kind, group, version = clause.convert
    if (kind, group) != (AGGREGATED_KIND, AGGREGATED_GROUP):
        return None
    if version == "v2" and minor >= 30:
        return DiscoveryForm.AGGREGATED_V2
    return DiscoveryForm.AGGREGATED_V2BETA1 if version == "v2beta1" and minor >= 27 else None
