"""``--runtime-config``: which API versions are switched on and off, as kube-apiserver reads it.

    api/all=true            everything              api/ga, api/beta, api/alpha   versions of that stability
    GROUP/VERSION=false     one version             GROUP/VERSION/RESOURCE=true   one resource of it

The more exact a setting, the more it counts; what no setting is about keeps its default. ``api/v1`` is the core group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_STABLE = re.compile(r"^v\d+$")
_VALUES = {"": True, "true": True, "1": True, "false": False, "0": False}
_STABILITIES = ("ga", "beta", "alpha")


def parse(text: str) -> dict[str, bool]:
    """The settings of ``key=value,…``; a key alone means true. Raises ValueError with one line."""
    found: dict[str, bool] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, _, value = part.partition("=")
        if value.lower() not in _VALUES:
            raise ValueError(f"invalid value {key}={value}, which is neither true nor false")
        if not 1 <= key.count("/") <= 2:
            raise ValueError(f"{key!r} is not of the form api/all, api/beta, GROUP/VERSION or GROUP/VERSION/RESOURCE")
        if key.startswith("api/") and key.count("/") == 1 and not _is_of_core(key):
            raise ValueError(f"unknown api groups {key.partition('/')[2]}")
        found[key] = _VALUES[value.lower()]
    return found


def _is_of_core(key: str) -> bool:
    return key.partition("/")[2] in ("all", "legacy", "v1", *_STABILITIES)


def is_served(settings: Mapping[str, bool], group: str, version: str, resource: str, *, default: bool) -> bool:
    """Whether these settings serve a resource that is served or not by ``default``."""
    served = default
    name = f"{group or 'api'}/{version}"
    for key in ("api/all", f"api/{_stability(version)}", name, f"{name}/{resource}"):
        served = settings.get(key, served)
    return served


def _stability(version: str) -> str:
    return "alpha" if "alpha" in version else "ga" if _STABLE.match(version) else "beta"
