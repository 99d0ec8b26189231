"""From label and field selectors to a ``Selection`` of the object store."""

from __future__ import annotations

from apiserver.machinery import fields, labels, status
from apiserver.objectstore.interface import Selection
from apiserver.registry.store import Store
from apiserver.resources import field_labels

#: The field by which the watches of a resource differ when there are many of them (upstream's index triggers).
_TRIGGERS = {("", "pods"): "spec.nodeName"}


def selection_of(store: Store, namespace: str, name: str, label_selector: labels.Selector, field_selector: fields.Selector) -> Selection:
    """``namespace`` and ``name`` are those of the path. Raises 400 for fields by which the kind cannot be selected."""
    if label_selector.empty and field_selector.empty:
        return Selection(namespace=namespace, name=name)
    match_fields = trigger = fields_of = None
    if not field_selector.empty:
        own = store.strategy.selectable_field_names
        known = field_labels.of(store.info, own)
        fields_of = store.strategy.selectable_fields if own else None if known.of_metadata_only else known.values
        try:
            field_selector = known.convert(field_selector)
        except fields.SelectorError as error:
            raise status.bad_request(str(error)) from error
        wanted = field_selector.exact_value(fields.METADATA_NAME)
        if name and wanted != name:
            raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
        if wanted:
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
        fields_of=fields_of,
        trigger=trigger,
    )
