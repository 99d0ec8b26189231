"""DefaultStorageClass: a claim that names no class gets the one that is marked as default; of several the newest."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, new_object, spec_of
from apiserver.machinery import objects

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
#: the field's first form; an empty value there means "no class", as it does in the field
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Plugin):
    name = "DefaultStorageClass"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((("", "persistentvolumeclaims"),))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def admit(self, attributes: AdmissionAttributes) -> None:
        claim = new_object(attributes)
        spec = spec_of(claim)
        if spec.get("storageClassName") is not None or _CLASS_ANNOTATION in objects.annotations(claim):
            return
        default = self._default_class()
        if default is not None:
            spec["storageClassName"] = objects.name(default)

    def _default_class(self) -> objects.Object | None:
        classes = self._getter.list("storage.k8s.io", "storageclasses")
        defaults = [c for c in classes if any(objects.annotations(c).get(key) == "true" for key in _IS_DEFAULT)]
        defaults.sort(key=objects.name)
        # the newest first; a stable sort keeps the order of names among equals
        defaults.sort(key=lambda c: str(objects.metadata(c).get("creationTimestamp") or ""), reverse=True)
        return defaults[0] if defaults else None
