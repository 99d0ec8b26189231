"""From label and field selectors to a ``Selection`` of the object store."""

from __future__ import annotations

from apiserver.machinery import fields, labels, status
from apiserver.objectstore.interface import Selection
from apiserver.registry.store import Store

_COMMON = frozenset((fields.METADATA_NAME, fields.METADATA_NAMESPACE))

#: The field by which the watches of a resource differ when there are many of them (upstream's index triggers).
_TRIGGERS = {("", "pods"): "spec.nodeName"}


def selection_of(store: Store, namespace: str, name: str, label_text: str, field_text: str) -> Selection:
    """``namespace`` and ``name`` are those of the path. Raises 400 for selectors that do not parse or that the kind does not know."""
    if not label_text and not field_text:
        return Selection(namespace=namespace, name=name)
    try:
        label_selector = labels.parse(label_text)
        field_selector = fields.parse(field_text)
        own = store.strategy.selectable_field_names
        has_own_fields = bool(own) or not store.info.builtin
        fields.check_supported(field_selector, _COMMON | own, has_own_fields=has_own_fields)
    except (labels.SelectorError, fields.SelectorError) as error:
        raise status.bad_request(str(error)) from error
    match_fields = trigger = None
    if not field_selector.empty:
        wanted = field_selector.exact_value(fields.METADATA_NAME)
        if wanted and not name:
            name = wanted
        wanted_namespace = field_selector.exact_value(fields.METADATA_NAMESPACE)
        if wanted_namespace and not namespace and store.info.namespaced:
            namespace = wanted_namespace
        simple = len(field_selector.terms) == 1 and wanted == name and bool(wanted)
        if not simple:
            match_fields = field_selector.matches
        field = _TRIGGERS.get((store.info.group, store.info.resource))
        value = field_selector.exact_value(field) if field else None
        if field and value is not None:
            trigger = (field, value)
    return Selection(
        namespace=namespace,
        name=name,
        labels=None if label_selector.empty else label_selector.matches,
        fields=match_fields,
        fields_of=store.strategy.selectable_fields if own else None,
        trigger=trigger,
    )
