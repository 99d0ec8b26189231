"""Our rows for the objects that a real kube-apiserver 1.20 printed, next to its own (``tables/record.py``)."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from apiserver.kubernetes_versions import KUBERNETES_VERSIONS
from apiserver.resources.columns import Printer, printer_for, printer_of_kind
from apiserver.resources.table import ResourceTable
from apiserver.schemas.schema_set import SchemaSet

RECORDED = json.loads((Path(__file__).parent / "tables" / "recorded-1.20.json").read_text())
OLDEST = ResourceTable("1.25")
NEWEST = ResourceTable("1.37")

#: a duration as people read it: it has grown since
AGE = re.compile(r"^(?:\d+[smhdy])+$")

#: what later versions print otherwise: resource, object, column → their cell
CHANGED_SINCE: dict[tuple[str, str, str], Any] = {
    # a pod that ended keeps its own word while something still holds it
    ("pods", "done-and-deleted", "Status"): "Completed",
    # the condition outweighs what a restarted init container says
    ("pods", "init-restarted", "Ready"): "2/2",
    ("pods", "init-restarted", "Status"): "Running",
    ("pods", "init-restarted", "Restarts"): "0",
    ("events", "series", "Count"): 5,
    ("horizontalpodautoscalers", "hpa-average", "Targets"): "memory: 50Mi/100Mi",
    ("horizontalpodautoscalers", "hpa-default", "Targets"): "cpu: <unknown>/80%",
    ("horizontalpodautoscalers", "hpa-many", "Targets"): "memory: <unknown>/60%, <unknown>/10 + 1 more...",
    ("horizontalpodautoscalers", "hpa-unknown", "Targets"): "memory: <unknown>/100Mi",
    ("horizontalpodautoscalers", "hpa-utilization", "Targets"): "cpu: 20%/50%",
}
#: columns that have come or changed their type since
NEW_COLUMNS = {
    "csidrivers": {"StorageCapacity", "TokenRequests", "RequiresRepublish"},
    "pods": {"Restarts"},
}


def printer_of(recorded: dict[str, Any]) -> Printer:
    info = OLDEST.preferred(recorded["group"], recorded["resource"])
    assert info is not None
    return printer_for(info, OLDEST.minor)


@pytest.fixture(scope="module")
def schemas() -> SchemaSet:
    return SchemaSet.load("1.25")


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: str(recorded["resource"]))
def test_columns_are_those_of_a_real_server(recorded: dict[str, Any], schemas: SchemaSet) -> None:
    ours = printer_of(recorded).definitions(schemas.description_of)
    new = NEW_COLUMNS.get(recorded["resource"], set())
    keys = ("name", "type", "format", "priority")
    shown = [tuple(c[key] for key in keys) for c in ours if c["name"] not in new]
    assert shown == [tuple(c[key] for key in keys) for c in recorded["columns"] if c["name"] not in new]
    described = {c["name"] for c in ours if c["description"]}
    # what the columns of a driver said was out of step with their names; the older name of the shares is documented nowhere any more
    excepted = {"csidrivers": {"Age"}, "prioritylevelconfigurations": {"AssuredConcurrencyShares"}}.get(recorded["resource"], set())
    assert described >= {c["name"] for c in recorded["columns"] if c["description"]} - excepted


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: str(recorded["resource"]))
def test_cells_are_those_of_a_real_server(recorded: dict[str, Any]) -> None:
    printer = printer_of(recorded)
    names = [c.name for c in printer.columns]
    assert recorded["rows"]
    for row in recorded["rows"]:
        obj = row["object"]
        ours = dict(zip(names, printer.cells(obj, time.time()), strict=True))
        for column, theirs in zip((c["name"] for c in recorded["columns"]), row["cells"], strict=True):
            what = (recorded["resource"], obj["metadata"]["name"], column)
            assert ours[column] == expected(what, theirs, ours[column]), what
        assert printer.conditions(obj) == (row.get("conditions") or [])


def expected(what: tuple[str, str, str], theirs: Any, ours: Any) -> Any:
    if what in CHANGED_SINCE:
        return CHANGED_SINCE[what]
    if what[::2] == ("pods", "Restarts"):
        # a number then; now a text that says when, too
        assert str(ours).partition(" ")[0] == str(theirs)
        return ours
    if isinstance(theirs, str) and isinstance(ours, str) and AGE.match(theirs) and AGE.match(ours):
        return ours
    return theirs


def test_rows_of_a_list_come_in_a_real_servers_order() -> None:
    for recorded in RECORDED:
        objects = [row["object"] for row in recorded["rows"]]
        order = printer_of(recorded).order
        by_name = sorted(objects, key=lambda obj: obj["metadata"]["name"])
        assert (sorted(by_name, key=order) if order else by_name) == objects


def test_restarts_tell_when_the_last_one_was() -> None:
    pods = next(recorded for recorded in RECORDED if recorded["resource"] == "pods")
    rows = {row["object"]["metadata"]["name"]: row["object"] for row in pods["rows"]}
    cells = {name: printer_of(pods).cells(obj, 1577836923.0 + 300)[3] for name, obj in rows.items()}  # five minutes after LATER
    assert (cells["crashing"], cells["restarted"], cells["restarted-without-end"]) == ("4 (5m ago)", "1 (5m ago)", "2")


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_column_of_every_version_says_what_it_is(version: str) -> None:
    schemas, served = SchemaSet.load(version), ResourceTable(version)
    # upstream looks these two up in the wrong type and finds nothing
    silent = {("RuntimeClass", "Handler"), ("PriorityLevelConfiguration", "AssuredConcurrencyShares")}
    for info in served:
        for column in printer_for(info, served.minor).definitions(schemas.description_of):
            assert bool(column["description"]) != ((info.kind, column["name"]) in silent), (info.kind, column["name"])
    scale = printer_of_kind("autoscaling", "Scale", served.minor)
    assert [c["name"] for c in scale.definitions(schemas.description_of)] == ["Name", "Desired", "Available", "Age"]


def test_a_policy_bindings_selector_reads_as_go_prints_it() -> None:
    info = NEWEST.preferred("admissionregistration.k8s.io", "validatingadmissionpolicybindings")
    assert info is not None
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]}
    obj = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "paramRef": {"selector": selector}}}
    assert printer_for(info, NEWEST.minor).cells(obj, 0.0)[2] == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    )
