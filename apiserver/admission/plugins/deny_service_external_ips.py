"""DenyServiceExternalIPs: no service takes addresses that nobody gave it (CVE-2020-8554). Off by default."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, forbidden, new_object
from apiserver.machinery import objects


class DenyServiceExternalIPs(Plugin):
    name = "DenyServiceExternalIPs"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((("", "services"),))

    async def validate(self, attributes: AdmissionAttributes) -> None:
        had = set(objects.get(attributes.old_object, "spec", "externalIPs", default=()))
        if not set(objects.get(new_object(attributes), "spec", "externalIPs", default=())) <= had:
            raise forbidden(attributes, "Use of external IPs is denied by admission control")
