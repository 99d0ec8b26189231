"""DefaultIngressClass: an ingress that names no class gets the default one; of several the newest."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, new_object, spec_of
from apiserver.machinery import objects

_IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    name = "DefaultIngressClass"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((("networking.k8s.io", "ingresses"),))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def admit(self, attributes: AdmissionAttributes) -> None:
        ingress = new_object(attributes)
        if objects.get(ingress, "spec", "ingressClassName") is not None or _CLASS_ANNOTATION in objects.annotations(ingress):
            return
        classes = self._getter.list("networking.k8s.io", "ingressclasses")
        defaults = sorted((c for c in classes if objects.annotations(c).get(_IS_DEFAULT) == "true"), key=objects.name)
        if not defaults:
            return
        defaults.sort(key=lambda c: str(objects.metadata(c).get("creationTimestamp") or ""), reverse=True)
        spec_of(ingress)["ingressClassName"] = objects.name(defaults[0])
