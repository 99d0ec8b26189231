"""Alerts and dashboard: well formed, about metrics that this server exposes, and (where Prometheus is installed) right."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from apiserver.config import ServerConfig
from apiserver.metrics import Exposition, expose_families
from storage.config import MemberConfig
from storage.member.member import Member
from storage.member.peer_metrics import PeerMetrics
from tests.apiserver.api import running

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "manifests" / "monitoring"
RULES_TEST = Path(__file__).parent / "rules_test.yaml"
#: of Prometheus itself
OWN_OF_PROMETHEUS = {"up"}
_METRIC = re.compile(r"\b(?:up|(?:etcd|apiserver|sampan|process)_\w+)\b")
_SEVERITIES = {"critical", "warning", "info"}


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    document = json.loads((MONITORING / "dashboard.json").read_text())
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for rule in rules():
        yield rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]
    document = json.loads((MONITORING / "dashboard.json").read_text())
    yield from (one["query"]["query"] for one in document["templating"]["list"] if one["type"] == "query")


def used_metrics() -> set[str]:
    """Names in the expressions, without what a label or a function is called."""
    without_labels = (re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression) for expression in expressions())
    return {name for expression in without_labels for name in _METRIC.findall(expression)}


@pytest.fixture
async def exposed(server_config: ServerConfig, tmp_path: Path) -> set[str]:
    """The names of the series of a server with a store of its own, and of one with peers."""
    member = Member(MemberConfig(data_dir=tmp_path / "data", unsafe_no_fsync=True))
    await member.start()
    try:
        async with running(server_config, member) as api:
            await api.created("/api/v1/namespaces", {"metadata": {"name": "a"}})
            text = (await api.get("/metrics")).body.decode()
    finally:
        await member.stop()
    peers = PeerMetrics()
    for counter in (peers.active_peers, peers.sent_bytes, peers.sent_failures):
        counter[7] += 1
    peers.observe_round_trip(7, 0.01)
    out = Exposition()
    expose_families(peers.families(1), out)
    found: set[str] = set()
    for part in (text, out.text()):
        assert list(text_string_to_metric_families(part)), "Prometheus reads it"
        # errors have no series before the first, but a type
        for name, kind in re.findall(r"^# TYPE (\S+) (\w+)$", part, re.MULTILINE):
            found |= {f"{name}{suffix}" for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}
    return found


async def test_each_metric_that_is_watched_is_exposed(exposed: set[str]) -> None:
    used = used_metrics()
    assert len(used) > 20, "the expressions were not understood"
    assert used - exposed - OWN_OF_PROMETHEUS == set()


def test_each_alert_says_what_is_wrong_and_how_bad() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert re.fullmatch(r"Sampan[A-Z]\w+", rule["alert"]), rule
        assert rule["labels"]["severity"] in _SEVERITIES, rule
        assert {"summary", "description"} <= rule["annotations"].keys(), rule
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "0m")), rule
        assert 'job="sampan"' in rule["expr"], rule


def test_there_is_an_alert_for_each_of_the_great_failures() -> None:
    wanted = {
        "SampanNoLeader", "SampanLeaderChanges", "SampanFsyncSlow", "SampanQuotaNear", "SampanCertificateExpires", "SampanMemberDown"
    }  # fmt: skip
    assert wanted <= {rule["alert"] for rule in rules()}


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    document = json.loads((MONITORING / "dashboard.json").read_text())
    ids = [panel["id"] for panel in document["panels"]]
    assert len(ids) == len(set(ids))
    assert {"title", "uid", "schemaVersion", "templating"} <= document.keys()
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, f"{panel['title']} covers another panel"
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    for panel in panels():
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")"), target
            assert '$job"' in target["expr"], target
    assert "sampan" in (MONITORING / "prometheus.yaml").read_text()


def test_promtool_agrees() -> None:
    """In addition, where Debian's package ``prometheus`` is installed; the structure is checked in any case."""
    if shutil.which("promtool") is None:
        return
    for command in (
        ("check", "rules", str(MONITORING / "rules.yaml")),
        ("check", "config", "--syntax-only", str(MONITORING / "prometheus.yaml")),
        ("test", "rules", str(RULES_TEST)),
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_tests_of_the_alerts_name_alerts_that_exist() -> None:
    """Also where promtool is not there to run them."""
    text = RULES_TEST.read_text()
    assert yaml.safe_load(text)["tests"]
    names = {rule["alert"] for rule in rules()}
    for found in re.findall(r"Sampan[A-Z]\w+(?![\w.])", text):
        assert found in names or any(name.startswith(found) for name in names), found
