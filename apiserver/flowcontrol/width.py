"""How many seats a request takes: one, or for a list, and a watch that begins with one, more with the number of objects that are looked
at (apiserver ``util/flowcontrol/request/list_work_estimator.go``)."""

from __future__ import annotations

import math
from collections.abc import Callable

from apiserver.request.request_context import RequestContext, RequestInfo

OBJECTS_PER_SEAT = 100
SEATS_MAX = 10
#: of a level's nominal seats, what one request may take at most
LEVEL_FRACTION_MAX = 0.15

#: How many objects of a request's resource are stored; None where that is not known.
CountObjects = Callable[[RequestInfo], int | None]


def widest(nominal: int, hand_size: int) -> int:
    """What one request of a level may take at most, so that a flow's hand of queues cannot take the level whole."""
    return min(SEATS_MAX, max(1, min(math.ceil(nominal * LEVEL_FRACTION_MAX), nominal // max(1, hand_size))))


def seats_of(context: RequestContext, most: int, count: CountObjects) -> int:
    """``most``: ``widest`` of the request's level."""
    info = context.info
    if info.verb not in ("list", "watch") or info.name or not info.is_resource_request:
        return 1
    if info.verb == "watch" and not _begins_with_state(context):
        return 1
    stored = count(info)
    if not stored:
        return 1
    return max(1, min(most, math.ceil(stored / OBJECTS_PER_SEAT)))


def _begins_with_state(context: RequestContext) -> bool:
    return context.query_value("sendInitialEvents") in ("true", "1") or context.query_value("resourceVersion") in ("", "0")
