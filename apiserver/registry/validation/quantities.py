"""Quantities in resource lists: signs, comparisons and resource names (core ``validateResourceRequirements`` and neighbours)."""

from __future__ import annotations

import functools
from typing import Any

from apiserver.machinery import quantity
from apiserver.machinery.field_errors import duplicate, forbidden, invalid, not_found, required
from apiserver.machinery.quantity import NANOS, QuantityError
from apiserver.registry.validation import formats
from apiserver.registry.validation.common import NEGATIVE, Errors, each

_STANDARD_CONTAINER_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))
_STANDARD_QUOTA_RESOURCES = frozenset((
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers",
    "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
))  # fmt: skip
_STANDARD_LIMIT_RANGE_TYPES = frozenset(("Pod", "Container", "PersistentVolumeClaim"))
_STANDARD_RESOURCES = _STANDARD_QUOTA_RESOURCES | {"storage"}
_INTEGER_RESOURCES = frozenset((
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
))  # fmt: skip
_OVERCOMMITABLE = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES_PREFIX = "hugepages-"
_QUOTA_HUGE_PAGES = (HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")
_NATIVE_DOMAIN = "kubernetes.io/"


#: as many texts as a busy cluster's pods spell
_PARSED_MAX = 4096


@functools.lru_cache(maxsize=_PARSED_MAX)
def amount(value: str | int | float | None) -> int:
    """The exact amount of a valid quantity in nanos (10⁻⁹); 0 for null. Raises QuantityError for what is none."""
    return 0 if value is None else quantity.of_json(value).nanos


def is_whole(value: str | int | float | None) -> bool:
    return amount(value) % NANOS == 0


def whole(value: str | int | float | None) -> int:
    """The quantity rounded up to a whole number, as Go's ``Quantity.Value``."""
    return -(-amount(value) // NANOS)


def same_amount(a: Any, b: Any) -> bool:
    return amount(a) == amount(b)


def nonnegative_quantity(out: Errors, path: str, value: Any) -> None:
    if amount(value) < 0:
        out.append(invalid(path, str(value), NEGATIVE))


def is_native(name: str) -> bool:
    """Whether the resource is Kubernetes' own: without a domain, or of kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """A resource that a device plugin or an administrator advertises: whole numbers, never overcommitted."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not formats.qualified_name(f"requests.{name}")


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES_PREFIX)


def may_be_overcommitted(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def quantity_value(out: Errors, path: str, name: str, value: Any) -> None:
    """An amount of the named resource: not below 0, whole where the resource only comes in whole units."""
    if value is None:
        return
    found = amount(value)
    if found < 0:
        out.append(invalid(path, str(value), NEGATIVE))
    if (name in _INTEGER_RESOURCES or is_extended(name)) and found % NANOS:
        out.append(invalid(path, str(value), "must be an integer"))


def resource_name(out: Errors, path: str, name: str) -> None:
    """A standard resource or a qualified name."""
    found = formats.qualified_name(name)
    for message in found:
        out.append(invalid(path, name, message))
    if not found and "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith(_QUOTA_HUGE_PAGES):
        out.append(invalid(path, name, "must be a standard resource type or fully qualified"))


def container_resource_name(out: Errors, path: str, name: str) -> None:
    before = len(out)
    resource_name(out, path, name)
    if "/" not in name:
        if name not in _STANDARD_CONTAINER_RESOURCES and not is_huge_page(name):
            out.append(invalid(path, name, "must be a standard resource for containers"))
    elif len(out) == before and not is_native(name) and not is_extended(name):
        out.append(invalid(path, name, "doesn't follow extended resource name standard"))


def quota_resource_name(out: Errors, path: str, name: str) -> None:
    resource_name(out, path, name)
    if "/" not in name and name not in _STANDARD_QUOTA_RESOURCES and not name.startswith(_QUOTA_HUGE_PAGES):
        out.append(invalid(path, name, "must be a standard resource for quota"))


def limit_range_resource_name(out: Errors, path: str, kind: str, name: str) -> None:
    if kind in ("Pod", "Container"):
        container_resource_name(out, path, name)
    else:
        resource_name(out, path, name)


def limit_range_type(out: Errors, path: str, kind: str) -> None:
    found = formats.qualified_name(kind)
    for message in found:
        out.append(invalid(path, kind, message))
    if not found and "/" not in kind and kind not in _STANDARD_LIMIT_RANGE_TYPES:
        out.append(invalid(path, kind, "must be a standard limit type or fully qualified"))


def resource_requirements(out: Errors, path: str, resources: dict[str, Any] | None, claim_names: frozenset[str] = frozenset()) -> None:
    """``limits``, ``requests`` and ``claims`` of a container (or of a pod: see ``pod_level``)."""
    if not resources:
        return
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    has_core = _OVERCOMMITABLE_CORE & (limits.keys() | requests.keys())
    has_huge_pages = False
    for name, value in limits.items():
        if name not in _STANDARD_CONTAINER_RESOURCES:
            container_resource_name(out, f"{path}.limits[{name}]", name)
            has_huge_pages = has_huge_pages or is_huge_page(name)
        _amount(out, path, "limits", name, value)
    for name, value in requests.items():
        if name not in _STANDARD_CONTAINER_RESOURCES:
            container_resource_name(out, f"{path}.requests[{name}]", name)
            has_huge_pages = has_huge_pages or is_huge_page(name)
        _amount(out, path, "requests", name, value)
        if name in limits:
            if name not in _OVERCOMMITABLE and not may_be_overcommitted(name):
                if not same_amount(value, limits[name]):
                    out.append(invalid(f"{path}.requests", str(value), f"must be equal to {name} limit of {limits[name]}"))
            elif amount(value) > amount(limits[name]):
                out.append(invalid(f"{path}.requests", str(value), f"must be less than or equal to {name} limit of {limits[name]}"))
        elif name not in _OVERCOMMITABLE and not may_be_overcommitted(name):
            out.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    _claims(out, f"{path}.claims", resources.get("claims") or (), claim_names)
    if has_huge_pages and not has_core:
        out.append(forbidden(path, "HugePages require cpu or memory"))


_OVERCOMMITABLE_CORE = {"cpu", "memory"}


def _amount(out: Errors, path: str, side: str, name: str, value: Any) -> None:
    found = amount(value)
    if found < 0:
        out.append(invalid(f"{path}.{side}[{name}]", str(value), NEGATIVE))
    if name not in _STANDARD_CONTAINER_RESOURCES:
        if (name in _INTEGER_RESOURCES or is_extended(name)) and found % NANOS:
            out.append(invalid(f"{path}.{side}[{name}]", str(value), "must be an integer"))
        if is_huge_page(name):
            _huge_page_size(out, f"{path}.{side}[{name}]", name, value)


def _huge_page_size(out: Errors, path: str, name: str, value: Any) -> None:
    """``hugepages-2Mi``: whole pages only."""
    size = name.removeprefix(HUGE_PAGES_PREFIX)
    try:
        bad = amount(value) % amount(size) if amount(size) > 0 else 1
    except QuantityError:
        bad = 1
    if bad:
        out.append(invalid(path, str(value), f"{value} is not positive integer multiple of {size}"))


def _claims(out: Errors, path: str, claims: Any, claim_names: frozenset[str]) -> None:
    seen: set[str] = set()
    for i, claim in each(out, claims):
        name = claim.get("name") or ""
        request = claim.get("request") or ""
        full = f"{name}/{request}" if request else name
        if not name:
            out.append(required(f"{path}[{i}].name"))
        elif full in seen:
            out.append(duplicate(f"{path}[{i}]", full))
        else:
            seen.add(full)
            if name not in claim_names:
                out.append(not_found(f"{path}[{i}]", name))


def is_standard_quota_resource(name: str) -> bool:
    return name in _STANDARD_QUOTA_RESOURCES
