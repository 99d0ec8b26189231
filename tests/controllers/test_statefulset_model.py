"""The plan of a StatefulSet under random sizes, updates and failures: it never breaks the order, and it arrives."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.lib.controller_history import patch_of
from controllers.statefulset import decision, identity
from controllers.statefulset.decision import Create, Delete, Revisions

NOW = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
#: more steps than any world here needs; each pod takes a few
STEPS_MAX = 80


def revision(name: str) -> Object:
    return {"metadata": {"name": name}, "data": patch_of({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": []}})}


OLD, NEW = revision("old"), revision("new")


class Model:
    """Pods by ordinal; a step carries a plan out at once, as an API server without kubelets would."""

    def __init__(self, replicas: int, *, parallel: bool, partition: int, start: int) -> None:
        self.set: Object = {
            "metadata": {"name": "w", "uid": "u"},
            "spec": {
                "replicas": replicas,
                "ordinals": {"start": start},
                "template": {"metadata": {}, "spec": {}},
                "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
            },
        }
        self.parallel = parallel
        self.update = OLD
        self.pods: dict[int, Object] = {}

    @property
    def wanted(self) -> range:
        start = decision.first_ordinal(self.set)
        return range(start, start + decision.replicas_wanted(self.set))

    def step(self) -> bool:
        """Whether anything was done; asserts what must hold for every plan."""
        revisions = Revisions(current=OLD, update=self.update)
        plan = decision.plan(self.set, list(self.pods.values()), revisions, NOW)
        creates = [a for a in plan.actions if isinstance(a, Create)]
        deletes = [a for a in plan.actions if isinstance(a, Delete)]
        if not self.parallel:
            assert len(creates) + len(deletes) <= 1
        for create in creates:
            assert create.ordinal in self.wanted and create.ordinal not in self.pods
            if not self.parallel:
                assert all(n in self.pods and decision.is_running_and_ready(self.pods[n]) for n in self.wanted if n < create.ordinal)
        replaced = [d for d in deletes if not d.condemned and not d.recreate]
        assert len(replaced) <= 1, "an update takes one at a time"
        for delete in replaced:
            ordinal = identity.ordinal_of(self.set, delete.pod)
            assert ordinal is not None and identity.revision_of(delete.pod) != self.update["metadata"]["name"]
            assert ordinal >= decision.first_ordinal(self.set) + decision.partition(self.set)
            above = [n for n in self.wanted if n > ordinal]
            assert all(identity.revision_of(self.pods[n]) == self.update["metadata"]["name"] for n in above)
        for create in creates:
            made = identity.pod(self.set, create.ordinal, create.revision)
            self.pods[create.ordinal] = {**made, "status": {"phase": "Pending"}}
        for delete in deletes:
            ordinal = identity.ordinal_of(self.set, delete.pod)
            assert ordinal is not None
            assert not delete.condemned or ordinal not in self.wanted
            del self.pods[ordinal]
        return bool(creates or deletes)

    def run_to_rest(self) -> None:
        for _ in range(STEPS_MAX):
            acted = self.step()
            for pod in self.pods.values():
                if pod["status"]["phase"] != "Failed":
                    pod["status"] = READY
            if not acted:
                return
        raise AssertionError("it does not arrive")


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 5)),
        st.tuples(st.just("update"), st.booleans()),
        st.tuples(st.just("ready"), st.integers(0, 6)),
        st.tuples(st.just("unready"), st.integers(0, 6)),
        st.tuples(st.just("fail"), st.integers(0, 6)),
        st.tuples(st.just("gone"), st.integers(0, 6)),
        st.tuples(st.just("step"), st.just(0)),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(st.integers(0, 5), st.booleans(), st.integers(0, 3), st.integers(0, 1), EVENTS)
def test_the_order_holds_and_the_set_arrives(
    replicas: int, parallel: bool, partition: int, start: int, events: list[tuple[str, Any]]
) -> None:
    model = Model(replicas, parallel=parallel, partition=partition, start=start)
    for what, value in events:
        pod = model.pods.get(value)
        match what:
            case "scale":
                model.set["spec"]["replicas"] = value
            case "update":
                model.update = NEW if value else OLD
            case "ready" if pod is not None:
                pod["status"] = READY
            case "unready" if pod is not None:
                pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
            case "fail" if pod is not None:
                pod["status"] = {"phase": "Failed"}
            case "gone" if pod is not None:
                del model.pods[value]
        model.step()
    for pod in model.pods.values():
        if pod["status"]["phase"] != "Failed":
            pod["status"] = READY
    model.run_to_rest()
    assert sorted(model.pods) == list(model.wanted)
    kept = {n: identity.revision_of(pod) for n, pod in model.pods.items() if n >= start + partition}
    assert all(name == model.update["metadata"]["name"] for name in kept.values())
