"""A body of a few hundred KiB held up the whole server.

A strategic merge patch of a list with 6 000 items kept the event loop for more than a minute: each item was searched in the list it
was merged into. The same was true of topologySpreadConstraints, of the tolerations of RuntimeClasses, of warnings and of the errors
of a pod with 20 000 containers. Work must grow with the size of a body, not with its square.
"""

from __future__ import annotations

import time
from typing import Any

from apiserver.machinery import field_errors, status, strategic_merge_patch
from apiserver.machinery.types import Shape, Type
from apiserver.registry.validation import scheduling
from apiserver.request.request_context import WARNINGS_MAX, RequestContext, RequestInfo

ITEMS = 20_000
#: hundreds of times what the right way takes, a fiftieth of what the quadratic one took
SECONDS_MAX = 5.0

_STRING = Type(shape=Shape.ANY)
_KEYED = Type(
    shape=Shape.LIST, patch_strategies=("merge",), patch_merge_key="name", element=Type(shape=Shape.STRUCT, fields={"name": _STRING})
)
_SET = Type(shape=Shape.LIST, patch_strategies=("merge",), element=_STRING)
_OBJECT = Type(shape=Shape.STRUCT, fields={"keyed": _KEYED, "set": _SET})


def _seconds(began: float) -> float:
    return time.process_time() - began


def test_strategic_merge_of_long_lists() -> None:
    began = time.process_time()
    document: dict[str, Any] = {"set": [f"a{i}" for i in range(ITEMS)], "keyed": [{"name": f"a{i}"} for i in range(ITEMS)]}
    other: dict[str, Any] = {"set": [f"b{i}" for i in range(ITEMS)], "keyed": [{"name": f"b{i}"} for i in range(ITEMS)]}
    joined = strategic_merge_patch.apply(document, other, _OBJECT)
    assert joined["set"] == other["set"] + document["set"]  # what the patch names comes first
    assert joined["keyed"] == other["keyed"] + document["keyed"]

    backwards = {
        "$setElementOrder/set": joined["set"][::-1],
        "$setElementOrder/keyed": joined["keyed"][::-1],
        "set": document["set"][::-1],
        "keyed": document["keyed"][::-1],
    }
    turned = strategic_merge_patch.apply(joined, backwards, _OBJECT)
    assert turned["set"] == joined["set"][::-1]
    assert turned["keyed"] == joined["keyed"][::-1]

    less = {
        "$deleteFromPrimitiveList/set": other["set"],
        "keyed": [{"$patch": "delete", "name": item["name"]} for item in other["keyed"]],
    }
    left = strategic_merge_patch.apply(joined, less, _OBJECT)
    assert left["set"] == document["set"]
    assert left["keyed"] == document["keyed"]
    assert _seconds(began) < SECONDS_MAX


def test_keys_that_are_equal_in_python_but_not_in_json_stay_apart() -> None:
    kind = Type(shape=Shape.STRUCT, fields={"keyed": _KEYED})
    current = {"keyed": [{"name": 1}, {"name": True}, {"name": {"a": 1}}]}
    patched = strategic_merge_patch.apply(current, {"keyed": [{"name": True, "x": "t"}, {"name": {"a": 1}, "x": "m"}]}, kind)
    assert [item.get("x") for item in patched["keyed"] if item["name"] == 1 and item["name"] is not True] == [None]
    assert [item["x"] for item in patched["keyed"] if item["name"] is True or isinstance(item["name"], dict)] == ["t", "m"]


def test_topology_spread_constraints() -> None:
    began = time.process_time()
    good = [{"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule"} for i in range(ITEMS)]
    errors: list[field_errors.FieldError] = []
    scheduling.topology_spread(errors, "c", good)
    assert errors == []
    scheduling.topology_spread(errors, "c", [good[0], good[1], good[0], good[0]])
    assert [error.field for error in errors] == ["c[0].{topologyKey, whenUnsatisfiable}", "c[2].{topologyKey, whenUnsatisfiable}"]
    assert _seconds(began) < SECONDS_MAX


def test_warnings_of_one_request_are_bounded() -> None:
    info = RequestInfo(is_resource_request=False, path="/", verb="get")
    context = RequestContext(info=info, method="GET", query={}, headers={}, audit_id="", received_at=0.0)
    began = time.process_time()
    for number in range(ITEMS):
        context.warn(f"unknown field {number}")
        context.warn("twice")
    assert len(context.warnings) == WARNINGS_MAX
    assert context.warnings[:2] == ["unknown field 0", "twice"]
    assert _seconds(began) < SECONDS_MAX


def test_errors_of_one_request_are_bounded() -> None:
    errors = [field_errors.invalid(f"spec.containers[{i}].name", "C_", "no") for i in range(ITEMS)]
    found = status.invalid("", "Pod", "p", errors).status
    assert len(found["details"]["causes"]) == status.FIELD_ERRORS_MAX
    assert len(found["message"]) < 100 * status.FIELD_ERRORS_MAX
