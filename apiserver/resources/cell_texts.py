"""Texts that several kinds' cells share, as kube-apiserver writes them (``pkg/printers/internalversion``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.machinery import labels
from apiserver.machinery.objects import Object

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def count(value: Any) -> int:
    """A counter of a status, 0 where it is not set."""
    return int(value or 0)


def container_names(containers: list[Object] | None) -> str:
    return ",".join(str(c.get("name", "")) for c in containers or ())


def container_images(containers: list[Object] | None) -> str:
    return ",".join(str(c.get("image", "")) for c in containers or ())


def label_map(values: dict[str, str] | None) -> str:
    """``a=b,c=d`` in order of the keys, ``<none>`` for no labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(values.items())) if values else NONE


def label_selector(selector: Object | None) -> str:
    """A LabelSelector in selector syntax, ``<none>`` if it selects everything or nothing, ``<error>`` if it is none."""
    try:
        return str(labels.from_label_selector(selector)) or NONE
    except labels.SelectorError:
        return "<error>"


def shortened(parts: list[str], shown_max: int, total: int | None = None) -> str:
    """The first ``shown_max`` parts, and how many more there are."""
    total = len(parts) if total is None else total
    text = ",".join(parts[:shown_max])
    return f"{text} + {total - shown_max} more..." if total > shown_max else text


def boolean(value: bool | None) -> str:
    """``True``/``False`` as Kubernetes prints optional booleans."""
    if value is None:
        return UNSET
    return "True" if value else "False"


def condition(obj: Object, type_: str) -> Object | None:
    """The condition of a type in ``status.conditions``."""
    return next((c for c in (obj.get("status") or {}).get("conditions") or () if c.get("type") == type_), None)


def is_true(obj: Object, type_: str) -> bool:
    found = condition(obj, type_)
    return found is not None and found.get("status") == "True"


def load_balancer(status: Object | None) -> str:
    """Addresses or host names of ``status.loadBalancer``, sorted, each once."""
    ingress: Iterable[Object] = ((status or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({str(i.get("ip") or i.get("hostname")) for i in ingress if i.get("ip") or i.get("hostname")}))


def access_modes(modes: list[str] | None) -> str:
    """``RWO,ROX,RWX,RWOP``, in that order."""
    short = (("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP"))
    return ",".join(text for mode, text in short if mode in (modes or ()))
