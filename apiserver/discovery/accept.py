"""Which form of discovery an Accept header asks for."""

from __future__ import annotations

import enum

from apiserver.discovery.documents import AGGREGATED_GROUP, AGGREGATED_KIND

#: clauses of one header that are looked at
_CLAUSES_MAX = 32


class DiscoveryForm(enum.Enum):
    """The value is the version of the aggregated document, "" for the plain ones."""

    PLAIN = ""
    AGGREGATED_V2 = "v2"
    AGGREGATED_V2BETA1 = "v2beta1"

    @property
    def media_type(self) -> str:
        if self is DiscoveryForm.PLAIN:
            return "application/json"
        return f"application/json;g={AGGREGATED_GROUP};v={self.value};as={AGGREGATED_KIND}"


def wanted_form(accept: str, *, minor: int, aggregated: bool) -> DiscoveryForm | None:
    """The best form that the header allows; None where it allows none (406). ``minor`` is that of the Kubernetes version, whose v2
    came with 1.30 and v2beta1 with 1.27; ``aggregated``: whether the endpoint has aggregated forms at all."""
    if not accept.strip():
        return DiscoveryForm.PLAIN
    ranked: list[tuple[float, int, DiscoveryForm]] = []
    for position, clause in enumerate(accept.split(",")[:_CLAUSES_MAX]):
        media_range, parameters = _clause(clause)
        form = _form(media_range, parameters, minor, aggregated)
        quality = _quality(parameters)
        if form is not None and quality > 0:
            ranked.append((-quality, position, form))
    return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None


def _clause(clause: str) -> tuple[str, dict[str, str]]:
    media_range, *pairs = (part.strip() for part in clause.split(";"))
    split = (pair.partition("=") for pair in pairs)
    return media_range.lower(), {key.strip().lower(): value.strip().strip('"') for key, _, value in split}


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0


def _form(media_range: str, parameters: dict[str, str], minor: int, aggregated: bool) -> DiscoveryForm | None:
    if media_range not in ("application/json", "application/*", "*/*"):
        return None
    if "as" not in parameters:
        return DiscoveryForm.PLAIN
    if not aggregated or parameters["as"] != AGGREGATED_KIND or parameters.get("g") != AGGREGATED_GROUP:
        return None
    if parameters.get("v") == "v2" and minor >= 30:
        return DiscoveryForm.AGGREGATED_V2
    if parameters.get("v") == "v2beta1" and minor >= 27:
        return DiscoveryForm.AGGREGATED_V2BETA1
    return None
