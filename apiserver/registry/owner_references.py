"""Owner references that stand twice are taken out, with a warning (apiserver ``endpoints/handlers/rest.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WARNING = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may reject such requests "
    "as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
_AFTER_ADMISSION = " after mutating admission happens"


def deduplicate(metadata: dict[str, Any], warn: Callable[[str], None], *, after_admission: bool) -> None:
    """Of references that are equal in all fields only the first stays. ``metadata`` is changed, its list is not."""
    references = metadata.get("ownerReferences")
    if not isinstance(references, list) or len(references) < 2:
        return
    kept: list[Any] = []
    twice: list[str] = []
    for reference in references:
        if reference in kept:
            twice.append(str(reference.get("uid", "")))
        else:
            kept.append(reference)
    if twice:
        metadata["ownerReferences"] = kept
        warn(_WARNING.format(_AFTER_ADMISSION if after_admission else "", ", ".join(twice)))
