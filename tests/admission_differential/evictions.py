"""POST …/eviction: what disruption budgets answer, and what is asked of admission."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.admission_differential.steps import Body, Script, pod


def evictions() -> Iterator[Script]:
    script = Script("eviction", "evictions")
    script.open()
    budgets: dict[str, Any] = {"group": "policy", "version": "v1beta1"}
    states: dict[str, Body] = {
        "allowed": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
        "forbidden": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2},
        "negative": {"disruptionsAllowed": -1, "currentHealthy": 2, "desiredHealthy": 3, "expectedPods": 2},
        "stale": {"observedGeneration": 0, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
    }
    for name, status in states.items():
        labels = {"of": name}
        script.create(
            f"budget {name}",
            "poddisruptionbudgets",
            {"metadata": {"name": name}, "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}}},
            **budgets,
        )
        state = {"observedGeneration": 1, **status}
        script.patch(f"budget state {name}", "poddisruptionbudgets", name, {"status": state}, sub="status", **budgets)
        for phase in ("Pending", "Running", "Succeeded", "Failed"):
            made = f"{name}-{phase.lower()}"
            script.create(f"pod {made}", "pods", pod(made, metadata={"labels": labels}))
            conditions = [{"type": "Ready", "status": "True"}]
            script.patch(f"phase {made}", "pods", made, {"status": {"phase": phase, "conditions": conditions}}, sub="status")
            body: Body = {"metadata": {"name": made}}
            script.create(f"evict dry {made}", "pods", body, name=made, sub="eviction", query="?dryRun=All")
            script.create(f"evict really {made}", "pods", body, name=made, sub="eviction")
            script.get(f"then {made}", "pods", made)
            script.get(f"budget after {made}", "poddisruptionbudgets", name, **budgets)
    script.create("unready", "pods", pod("unready", metadata={"labels": {"of": "forbidden"}}))
    script.patch("unready state", "pods", "unready", {"status": {"phase": "Running"}}, sub="status")
    script.create("evict unready", "pods", {"metadata": {"name": "unready"}}, name="unready", sub="eviction")
    script.create("no budget", "pods", pod("free"))
    script.create(
        "evict with the delete's dry run",
        "pods",
        {"metadata": {"name": "free"}, "deleteOptions": {"dryRun": ["All"]}},
        name="free",
        sub="eviction",
    )
    script.create(
        "evict with unlike dry runs",
        "pods",
        {"metadata": {"name": "free"}, "deleteOptions": {"dryRun": ["All"]}},
        name="free",
        sub="eviction",
        query="?dryRun=All",
    )
    script.create("evict another name", "pods", {"metadata": {"name": "other"}}, name="free", sub="eviction")
    script.create(
        "evict wrong uid",
        "pods",
        {"metadata": {"name": "free"}, "deleteOptions": {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}},
        name="free",
        sub="eviction",
    )
    script.create(
        "evict wrong version",
        "pods",
        {"metadata": {"name": "free"}, "deleteOptions": {"preconditions": {"resourceVersion": "1"}}},
        name="free",
        sub="eviction",
    )
    script.create(
        "evict with grace", "pods", {"metadata": {"name": "free"}, "deleteOptions": {"gracePeriodSeconds": 0}}, name="free", sub="eviction"
    )
    script.create("evict gone", "pods", {"metadata": {"name": "free"}}, name="free", sub="eviction")
    second = {"metadata": {"name": "second"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"of": "forbidden"}}}}
    script.create("second budget", "poddisruptionbudgets", second, **budgets)
    script.create("evict under two budgets", "pods", {"metadata": {"name": "forbidden-running"}}, name="forbidden-running", sub="eviction")
    nothing: Body = {"metadata": {"name": "nothing"}, "spec": {"minAvailable": 1, "selector": {}}}
    script.create("budget of an empty selector", "poddisruptionbudgets", nothing, **budgets)
    script.create("pod under the empty selector", "pods", pod("under-empty"))
    script.patch("it runs", "pods", "under-empty", {"status": {"phase": "Running"}}, sub="status")
    script.create(
        "evict under the empty selector",
        "pods",
        {"metadata": {"name": "under-empty"}},
        name="under-empty",
        sub="eviction",
        query="?dryRun=All",
    )
    yield script
