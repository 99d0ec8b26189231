"""Field cases against the running server, with its controllers and over real TLS: what users of systems of this kind ran into.

Those that need no more than the API server stand in tests/apiserver (reading, writing, watching, bodies) and tests/e2e/test_access.py;
here are those that need controllers, several clients or time. Each test names its case.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
Eventually = Callable[[Callable[[], Any]], Any]


class Client:
    """Requests in one namespace; refusals are answers too."""

    def __init__(self, server: SampanServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace

    def path(self, resource: str, name: str = "") -> str:
        group, _, plural = resource.rpartition("/")
        base = f"/apis/{group}" if group else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def __call__(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        try:
            return 200, self.server.request(method, path, body, content_type)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def created(self, resource: str, body: Any) -> Any:
        code, answer = self("POST", self.path(resource), body)
        assert code == 200, answer
        return answer

    def found(self, resource: str, name: str) -> Any:
        code, answer = self("GET", self.path(resource, name))
        return answer if code == 200 else None

    def items(self, resource: str, query: str = "") -> list[Any]:
        code, answer = self("GET", self.path(resource) + query)
        assert code == 200, answer
        assert isinstance(answer["items"], list)
        return list(answer["items"])

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        request = urllib.request.Request(self.server.url + path, headers={"Authorization": f"Bearer {self.server.token}"})
        context = ssl.create_default_context(cafile=str(self.server.ca_file))
        with urllib.request.urlopen(request, context=context, timeout=90) as answer:
            for line in answer:
                yield json.loads(line)


@pytest.fixture
def client(sampan: SampanServer, sampan_namespace: str) -> Client:
    return Client(sampan, sampan_namespace)


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def owner(found: Any, kind: str = "ConfigMap", **changes: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": found["metadata"]["name"], "uid": found["metadata"]["uid"], **changes}


def deployment(replicas: int = 1) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 53, "protocol": "TCP"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}}


def test_d1_unknown_field_selectors(client: Client) -> None:
    code, answer = client("GET", client.path("pods") + "?fieldSelector=spec.bogus%3Dx")
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert "field label not supported: spec.bogus" in answer["message"]


def test_e4_annotations_up_to_their_limit(client: Client) -> None:
    code, answer = client("POST", client.path("configmaps"), config_map("over", annotations={"k": "v" * 262_144}))
    assert (code, answer["reason"]) == (422, "Invalid")
    assert "metadata.annotations: Too long" in answer["message"]
    client.created("configmaps", config_map("at", annotations={"k": "v" * 262_143}))


def test_g4_two_ports_of_one_number(client: Client) -> None:
    """A strategic merge patch finds ports by their number alone, server-side apply by number and protocol."""
    client.created("apps/v1/deployments", deployment(0))
    udp = {"name": "c", "ports": [{"containerPort": 53, "protocol": "UDP"}]}
    patch = {"spec": {"template": {"spec": {"containers": [udp]}}}}
    path = client.path("apps/v1/deployments", "web")
    code, merged = client("PATCH", path, patch, STRATEGIC)
    assert code == 200
    assert [p["protocol"] for p in merged["spec"]["template"]["spec"]["containers"][0]["ports"]] == ["UDP"]
    tcp = {"name": "c", "image": "i", "ports": [{"containerPort": 53, "protocol": "TCP"}]}
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    applied["spec"] = {"template": {"spec": {"containers": [tcp]}}}
    code, both = client("PATCH", f"{path}?fieldManager=m&force=true", applied, APPLY)
    assert code == 200, both
    assert sorted(p["protocol"] for p in both["spec"]["template"]["spec"]["containers"][0]["ports"]) == ["TCP", "UDP"]


def test_h4_one_manager_with_two_operations(client: Client) -> None:
    code, _ = client("POST", client.path("configmaps") + "?fieldManager=tool", {**config_map("c"), "data": {"k": "1"}})
    assert code == 200
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("c"), "data": {"k": "2"}}
    code, answer = client("PATCH", client.path("configmaps", "c") + "?fieldManager=tool", body, APPLY)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert 'conflict with "tool"' in answer["message"]


def test_m1_an_owner_in_another_namespace_is_none(client: Client, sampan: SampanServer, eventually: Eventually) -> None:
    elsewhere = Client(sampan, "default")
    name = f"own-{client.namespace}"
    own = elsewhere.created("configmaps", config_map(name))
    try:
        client.created("configmaps", config_map("kid", ownerReferences=[owner(own)]))
        eventually(lambda: client.found("configmaps", "kid") is None)
        eventually(lambda: any(e["reason"] == "OwnerRefInvalidNamespace" for e in client.items("events")))
        cluster = {"metadata": {"name": name, "ownerReferences": [owner(own)]}, "rules": []}
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        assert client("POST", path, cluster)[0] == 200
        client.created("configmaps", config_map("later", ownerReferences=[owner(own)]))
        eventually(lambda: client.found("configmaps", "later") is None)
        assert client("GET", f"{path}/{name}")[0] == 200, "a cluster-scoped child stays"
        assert client("DELETE", f"{path}/{name}")[0] == 200
    finally:
        elsewhere("DELETE", elsewhere.path("configmaps", name))


def test_m2_an_owner_made_anew_is_another_one(client: Client, eventually: Eventually) -> None:
    first = client.created("configmaps", config_map("own"))
    stays = client.created("configmaps", config_map("stays"))
    client.created("configmaps", config_map("kid", ownerReferences=[owner(first)]))
    client.created("configmaps", config_map("kept", ownerReferences=[owner(first), owner(stays)]))
    assert client("DELETE", client.path("configmaps", "own"))[0] == 200
    client.created("configmaps", config_map("own"))
    eventually(lambda: client.found("configmaps", "kid") is None)

    def one_owner_left() -> bool:
        return [o["uid"] for o in client.found("configmaps", "kept")["metadata"]["ownerReferences"]] == [stays["metadata"]["uid"]]

    eventually(one_owner_left)
    assert client.found("configmaps", "own")["metadata"]["uid"] != first["metadata"]["uid"]


def test_n3_conditions_say_why_a_namespace_stays(client: Client, eventually: Eventually) -> None:
    client.created("configmaps", config_map("held", finalizers=["x/y"]))
    assert client("DELETE", f"/api/v1/namespaces/{client.namespace}")[0] == 200

    def conditions() -> dict[str, Any]:
        _, found = client("GET", f"/api/v1/namespaces/{client.namespace}")
        return {c["type"]: c for c in found.get("status", {}).get("conditions", []) if c["status"] == "True"}

    eventually(lambda: {"NamespaceContentRemaining", "NamespaceFinalizersRemaining"} <= set(conditions()))
    assert conditions()["NamespaceContentRemaining"]["reason"] == "SomeResourcesRemain"
    assert conditions()["NamespaceFinalizersRemaining"]["reason"] == "SomeFinalizersRemain"
    assert "x/y" in conditions()["NamespaceFinalizersRemaining"]["message"]
    assert client("PATCH", client.path("configmaps", "held"), {"metadata": {"finalizers": None}}, MERGE)[0] == 200
    eventually(lambda: client("GET", f"/api/v1/namespaces/{client.namespace}")[0] == 404)


def test_o1_and_o2_two_phases_of_deletion(client: Client) -> None:
    made = client.created("configmaps", config_map("c", finalizers=["x/y"]))
    path = client.path("configmaps", "c")
    first, second = client("DELETE", path), client("DELETE", path)
    assert first[0] == second[0] == 200
    assert client.found("configmaps", "c")["metadata"]["deletionGracePeriodSeconds"] == 0
    stamps = {client.found("configmaps", "c")["metadata"]["deletionTimestamp"], first[1]["metadata"]["deletionTimestamp"]}
    assert stamps == {second[1]["metadata"]["deletionTimestamp"]}
    code, refused = client("PATCH", path, {"metadata": {"finalizers": ["x/y", "z/w"]}}, MERGE)
    assert code == 422
    assert "no new finalizers can be added if the object is being deleted" in refused["message"]
    assert client("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)[0] == 200
    assert client("GET", path)[0] == 404
    revision = made["metadata"]["resourceVersion"]
    query = f"?watch=1&resourceVersion={revision}&timeoutSeconds=2&fieldSelector=metadata.name%3Dc"
    events = client.watch(client.path("configmaps") + query)
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]


def test_r2_why_a_deployment_has_no_pods(client: Client, eventually: Eventually) -> None:
    client.created("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"limits.cpu": "1"}}})
    # a quota holds from when its controller has taken it up
    eventually(lambda: (client.found("resourcequotas", "q").get("status") or {}).get("hard"))
    client.created("apps/v1/deployments", deployment())

    def told() -> bool:
        sets = client.items("apps/v1/replicasets")
        conditions = [c for s in sets for c in s["status"].get("conditions", [])]
        failures = [c["message"] for c in conditions if (c["type"], c["status"]) == ("ReplicaFailure", "True")]
        failed = any("must specify limits.cpu" in message for message in failures)
        return failed and any(e["reason"] == "FailedCreate" for e in client.items("events"))

    eventually(told)
    assert client.items("pods") == []


def test_s3_managed_fields_stay_few(client: Client) -> None:
    client.created("configmaps", {**config_map("c"), "data": {"a": "b"}})
    path = client.path("configmaps", "c")
    for number in range(30):
        assert client("PATCH", f"{path}?fieldManager=m{number}", {"data": {f"k{number}": "v"}}, MERGE)[0] == 200
    entries = client.found("configmaps", "c")["metadata"]["managedFields"]
    updates = [entry["manager"] for entry in entries if entry["operation"] == "Update"]
    assert len(updates) <= 11
    assert "ancient-changes" in updates


def test_w1_and_py_o4_events_about_what_has_no_namespace(client: Client) -> None:
    def event(name: str, place: str, **more: str) -> tuple[int, Any]:
        body = {"metadata": {"name": name}, "involvedObject": {"kind": "Node", "name": "node-1", **more}, "reason": "R", "message": "m"}
        return client("POST", f"/api/v1/namespaces/{place}/events", body)

    for involved in ({"namespace": "ns-b"}, {}):
        code, answer = event("e", client.namespace, **involved)
        assert code == 422
        assert "does not match event.namespace" in answer["message"]
    name = f"e-{client.namespace}"
    assert event(name, "default")[0] == 200
    _, found = client("GET", "/api/v1/events?fieldSelector=involvedObject.kind%3DNode%2CinvolvedObject.name%3Dnode-1%2Creason%3DR")
    assert name in [item["metadata"]["name"] for item in found["items"]]


def test_w2_the_strict_form_of_events(client: Client) -> None:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    name = f"n-{client.namespace}"
    body = {
        "metadata": {"name": name}, "regarding": {"kind": "Node", "name": "node-1"}, "note": "n", "reason": "R", "action": "A",
        "type": "Normal", "reportingController": "x/y", "reportingInstance": "i",
    }  # fmt: skip
    assert client("POST", path, body)[0] == 422
    timed = {**body, "eventTime": "2030-01-01T00:00:00.000000Z"}
    assert client("POST", path, {**timed, "deprecatedCount": 3})[0] == 422
    code, made = client("POST", path, timed)
    assert code == 200, made
    code, core = client("GET", f"/api/v1/namespaces/default/events/{name}")
    assert (code, core["message"], core["metadata"]["uid"]) == (200, "n", made["metadata"]["uid"])
    assert client("PUT", f"{path}/{name}", {**made, "note": "other"})[0] == 422


def test_y1_one_leader(client: Client) -> None:
    path = client.path("coordination.k8s.io/v1/leases")
    results: list[int] = []

    def create() -> None:
        results.append(client("POST", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}})[0])

    _together(create, 8)
    assert sorted(results) == [200] + [409] * 7
    read = client.found("coordination.k8s.io/v1/leases", "l")
    changed = {**read, "spec": {"holderIdentity": "y"}}
    results.clear()
    _together(lambda: results.append(client("PUT", f"{path}/l", changed)[0]), 8)
    assert sorted(results) == [200] + [409] * 7


def test_counters_lose_no_update(client: Client) -> None:
    """F2 of many clients: each adds to a number under optimistic locking until it has done so ten times."""
    client.created("configmaps", {**config_map("count"), "data": {"n": "0"}})
    path = client.path("configmaps", "count")

    def add() -> None:
        done = 0
        while done < 10:
            found = client.found("configmaps", "count")
            found["data"]["n"] = str(int(found["data"]["n"]) + 1)
            code, answer = client("PUT", path, found)
            assert code in (200, 409), answer
            done += code == 200

    _together(add, 6)
    assert client.found("configmaps", "count")["data"]["n"] == "60"


def _together(work: Callable[[], Any], count: int) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_z2_never_more_pods_than_wanted(client: Client, eventually: Eventually) -> None:
    _, before = client("GET", client.path("pods"))
    client.created("apps/v1/deployments", deployment(3))

    def running() -> bool:
        return [p["status"].get("phase") for p in client.items("pods")] == ["Running"] * 3

    eventually(running)
    assert client("PATCH", client.path("apps/v1/deployments", "web"), {"spec": {"replicas": 5}}, MERGE)[0] == 200
    eventually(lambda: len(client.items("pods")) == 5)
    alive: set[str] = set()
    most = 0
    path = f"{client.path('pods')}?watch=1&resourceVersion={before['metadata']['resourceVersion']}&timeoutSeconds=2"
    for event in client.watch(path):
        name = event["object"]["metadata"]["name"]
        alive = alive - {name} if event["type"] == "DELETED" else alive | {name}
        most = max(most, len(alive))
    assert most == 5


def test_z4_selectors_of_deployments(client: Client) -> None:
    wrong = deployment(0)
    wrong["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    code, answer = client("POST", client.path("apps/v1/deployments"), wrong)
    assert code == 422
    assert "spec.template.metadata.labels: Invalid value" in answer["message"]
    assert "`selector` does not match template `labels`" in answer["message"]
    client.created("apps/v1/deployments", deployment(0))
    wrong["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    code, answer = client("PUT", client.path("apps/v1/deployments", "web"), wrong)
    assert code == 422
    assert "field is immutable" in answer["message"]


def test_aa2_and_py_a2_an_idle_watch_starts_at_once_and_ends_in_time(client: Client) -> None:
    _, listed = client("GET", client.path("secrets"))
    began = time.monotonic()
    events = client.watch(f"{client.path('secrets')}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}&timeoutSeconds=2")
    assert list(events) == []
    assert 1.9 <= time.monotonic() - began < 4


def test_c2_and_a3_pages_and_watches_of_the_past_are_refused_clearly(client: Client) -> None:
    """A revision that the store never had is too large; one before its history is gone: neither is a silent empty stream."""
    code, answer = client("GET", client.path("configmaps") + "?resourceVersion=999999999&limit=5")
    assert (code, answer["reason"]) == (504, "Timeout")
    assert answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    code, answer = client("GET", client.path("configmaps") + "?watch=1&resourceVersion=None")
    assert (code, answer["reason"]) == (422, "Invalid")


def test_py_k3_lists_are_never_null(client: Client) -> None:
    for resource in ("pods", "secrets", "apps/v1/deployments", "batch/v1/jobs", "networking.k8s.io/v1/ingresses"):
        assert client.items(resource, "?labelSelector=none%3Dsuch") == []


def test_py_x2_an_object_made_again_from_what_was_read(client: Client) -> None:
    read = client.created("configmaps", config_map("c"))
    assert client("DELETE", client.path("configmaps", "c"))[0] == 200
    code, answer = client("POST", client.path("configmaps"), read)
    assert (code, answer["message"]) == (500, "resourceVersion should not be set on objects to be created")
    del read["metadata"]["resourceVersion"]
    again = client.created("configmaps", read)
    assert again["metadata"]["uid"] != read["metadata"]["uid"]
