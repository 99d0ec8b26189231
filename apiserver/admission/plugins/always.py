"""AlwaysAdmit and AlwaysDeny: for tests of old; the first does nothing, the second refuses every write. Off by default."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, forbidden

_EVERYTHING = frozenset(Operation)


class AlwaysAdmit(Plugin):
    name = "AlwaysAdmit"


class AlwaysDeny(Plugin):
    name = "AlwaysDeny"
    operations = _EVERYTHING
    subresources = None

    async def admit(self, attributes: AdmissionAttributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    async def validate(self, attributes: AdmissionAttributes) -> None:
        await self.admit(attributes)
