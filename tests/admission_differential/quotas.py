"""ResourceQuota: what is charged, what is refused, and what the status says afterwards. There is no controller: the steps count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.admission_differential.steps import Body, Script, claim, container, pod

QUOTA = "resourcequotas"


def _quota(script: Script, name: str, hard: Body, used: Body | None = None, **spec: Any) -> None:
    script.create(f"quota {name}", QUOTA, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    counted: Body = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}}
    script.patch(f"count {name}", QUOTA, name, counted, sub="status")


def quotas() -> Iterator[Script]:
    yield _counts()
    yield _uncounted()
    yield _dry()
    yield from _pods()
    yield _updates()
    yield _scopes()
    yield _scope_operators()
    yield _services()
    yield _claims()
    yield _several()
    yield _quota_objects()


def _counts() -> Script:
    script = Script("quota counts", "quota-counts")
    script.open()
    hard = {
        "count/configmaps": "1", "count/deployments.apps": "1", "count/jobs.batch": "0", "secrets": "1", "configmaps": "2",
        "count/things.acme.com": "1", "replicationcontrollers": "0", "resourcequotas": "1", "count/leases.coordination.k8s.io": "1",
        "count/roles.rbac.authorization.k8s.io": "0", "count/serviceaccounts": "0",
    }  # fmt: skip
    _quota(script, "q", hard)
    for name in ("a", "b", "c"):
        script.create(f"config map {name}", "configmaps", {"metadata": {"name": name}})
    script.create("generated", "configmaps", {"metadata": {"generateName": "generated-"}})
    for name in ("a", "b"):
        script.create(f"secret {name}", "secrets", {"metadata": {"name": name}})
        script.create(f"lease {name}", "leases", {"metadata": {"name": name}}, group="coordination.k8s.io")
    template: Body = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
    for name in ("a", "b"):
        spec: Body = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        script.create(f"deployment {name}", "deployments", {"metadata": {"name": name}, "spec": spec}, group="apps")
    job: Body = {"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}}
    script.create("job", "jobs", {"metadata": {"name": "j"}, "spec": job}, group="batch")
    script.create(
        "controller", "replicationcontrollers", {"metadata": {"name": "r"}, "spec": {"selector": {"a": "b"}, "template": template}}
    )
    script.create("role", "roles", {"metadata": {"name": "r"}, "rules": []}, group="rbac.authorization.k8s.io")
    script.create("account", "serviceaccounts", {"metadata": {"name": "x"}})
    script.create("event", "events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "quota-counts"}})
    script.create("second quota", QUOTA, {"metadata": {"name": "r"}, "spec": {"hard": {"pods": "1"}}})
    script.create("taken name", "configmaps", {"metadata": {"name": "a"}})
    script.create("invalid", "configmaps", {"metadata": {"name": "Not Valid"}})
    script.get("used", QUOTA, "q")
    script.delete("delete", "configmaps", "a")
    script.get("used after a delete", QUOTA, "q")
    return script


def _uncounted() -> Script:
    script = Script("quota uncounted", "quota-uncounted")
    script.open()
    script.create("quota", QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5", "pods": "5", "requests.cpu": "1"}}})
    script.create("nothing counted", "configmaps", {"metadata": {"name": "a"}})
    script.create("pod", "pods", pod("a", container(requests={"cpu": "1"})))
    script.patch(
        "half counted",
        QUOTA,
        "q",
        {"status": {"hard": {"configmaps": "5", "pods": "5", "requests.cpu": "1"}, "used": {"configmaps": "0", "pods": "0"}}},
        sub="status",
    )
    script.create("counted", "configmaps", {"metadata": {"name": "a"}})
    script.create("pod half counted", "pods", pod("a", container(requests={"cpu": "1"})))
    script.create("a pod that says nothing", "pods", pod("b"))
    return script


def _dry() -> Script:
    script = Script("quota dry", "quota-dry")
    script.open()
    _quota(script, "q", {"configmaps": "1"})
    script.create("dry", "configmaps", {"metadata": {"name": "a"}}, query="?dryRun=All")
    script.get("unused", QUOTA, "q")
    script.create("real", "configmaps", {"metadata": {"name": "a"}})
    script.create("dry too much", "configmaps", {"metadata": {"name": "b"}}, query="?dryRun=All")
    script.get("used", QUOTA, "q")
    return script


def _pods() -> Iterator[Script]:
    hards: dict[str, Body] = {
        "cpu": {"cpu": "1"},
        "requests": {"requests.cpu": "1", "requests.memory": "1Gi"},
        "limits": {"limits.cpu": "1", "limits.memory": "1Gi"},
        "storage": {"requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "2Gi", "ephemeral-storage": "1Gi"},
        "pods": {"pods": "2", "count/pods": "3"},
        "device": {"requests.acme.com/gpu": "1", "requests.hugepages-2Mi": "4Mi", "hugepages-2Mi": "4Mi"},
        "other": {"services": "0", "requests.storage": "0"},
        "all": {"cpu": "1", "requests.cpu": "1", "memory": "1Gi", "limits.memory": "2Gi", "pods": "5"},
    }
    pods: dict[str, Body] = {
        "bare": pod("bare"),
        "requests": pod("requests", container(requests={"cpu": "600m", "memory": "600Mi"})),
        "limits": pod("limits", container(limits={"cpu": "600m", "memory": "600Mi"})),
        "full": pod("full", container(requests={"cpu": "0.3", "memory": "300000000"}, limits={"cpu": "500m", "memory": "1Gi"})),
        "two": pod("two", container("a", {"cpu": "100m"}, {"memory": "1Mi"}), container("b")),
        "three": pod("three", container("a"), container("c"), container("b", {"cpu": "100m"})),
        "init": pod(
            "init", container("a", {"cpu": "100m", "memory": "1Mi"}), initContainers=[container("i", {"cpu": "2", "memory": "1Mi"})]
        ),
        "init-bare": pod("init-bare", container("a", {"cpu": "100m", "memory": "1Mi"}), initContainers=[container("i")]),
        "storage": pod("storage", container(requests={"ephemeral-storage": "600Mi"}, limits={"ephemeral-storage": "3Gi"})),
        "device": pod("device", container(requests={"acme.com/gpu": "2"}, limits={"acme.com/gpu": "2"})),
        "huge": pod("huge", container(requests={"cpu": "1m", "memory": "1Mi", "hugepages-2Mi": "8Mi"}, limits={"hugepages-2Mi": "8Mi"})),
        "mirror": pod(
            "mirror", container(requests={"cpu": "2"}), metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName="n"
        ),
    }
    pods["mirror"]["spec"].pop("automountServiceAccountToken")
    for name, hard in hards.items():
        script = Script(f"quota pods {name}", f"quota-pods-{name}")
        script.open()
        _quota(script, "q", hard)
        for what, body in pods.items():
            script.create(what, "pods", body)
            again = {**body, "metadata": {**body["metadata"], "name": f"{what}-again"}}
            script.create(f"{what} again", "pods", again)
        script.get("used", QUOTA, "q")
        yield script


def _updates() -> Script:
    script = Script("quota updates", "quota-updates")
    script.open()
    script.create("pod before", "pods", pod("before", container(requests={"cpu": "1"})))
    _quota(script, "q", {"requests.cpu": "1", "pods": "1"}, {"requests.cpu": "1", "pods": "1"})
    script.patch("label", "pods", "before", {"metadata": {"labels": {"a": "b"}}})
    script.patch("deadline", "pods", "before", {"spec": {"activeDeadlineSeconds": 5}})
    script.patch("status", "pods", "before", {"status": {"phase": "Failed"}}, sub="status")
    script.get("still used", QUOTA, "q")
    script.patch("over", QUOTA, "q", {"status": {"used": {"requests.cpu": "5", "pods": "5"}}}, sub="status")
    script.patch("label while over", "pods", "before", {"metadata": {"labels": {"a": "c"}}})
    script.create("create while over", "pods", pod("after", container(requests={"cpu": "1m"})))
    script.create("a config map while over", "configmaps", {"metadata": {"name": "c"}})
    script.delete("delete while over", "pods", "before", query="?gracePeriodSeconds=0")
    return script


def _scopes() -> Script:
    script = Script("quota scopes", "quota-scopes")
    script.open()
    for name, scopes in (
        ("terminating", ["Terminating"]), ("not-terminating", ["NotTerminating"]), ("best-effort", ["BestEffort"]),
        ("not-best-effort", ["NotBestEffort"]), ("both", ["NotTerminating", "BestEffort"]),
    ):  # fmt: skip
        _quota(script, name, {"pods": "1"}, scopes=scopes)
    bodies = {
        "best effort": pod("best"),
        "best effort with deadline": pod("best-deadline", activeDeadlineSeconds=9),
        "burstable": pod("burst", container(requests={"cpu": "1m"})),
        "burstable with deadline": pod("burst-deadline", container(requests={"cpu": "1m"}), activeDeadlineSeconds=9),
        "storage alone is best effort": pod("storage", container(requests={"ephemeral-storage": "1Mi"})),
        "guaranteed": pod("guaranteed", container(requests={"cpu": "1m", "memory": "1Mi"}, limits={"cpu": "1m", "memory": "1Mi"})),
        "zero": pod("zero", container(requests={"cpu": "0"})),
    }
    for name, body in bodies.items():
        script.create(name, "pods", body)
        script.create(f"{name} again", "pods", {**body, "metadata": {"name": body["metadata"]["name"] + "-again"}})
    for name in ("terminating", "not-terminating", "best-effort", "not-best-effort", "both"):
        script.get(f"used {name}", QUOTA, name)
    script.patch("deadline moves a pod between scopes", "pods", "best", {"spec": {"activeDeadlineSeconds": 9}})
    script.create("other objects have no scope", "configmaps", {"metadata": {"name": "c"}})
    for name, hard, scopes in (
        ("services", {"services": "1"}, ["Terminating"]), ("memory-best", {"memory": "1Gi"}, ["BestEffort"]),
        ("opposites", {"pods": "1"}, ["BestEffort", "NotBestEffort"]), ("unknown", {"pods": "1"}, ["Nothing"]),
    ):  # fmt: skip
        script.create(f"invalid {name}", QUOTA, {"metadata": {"name": name}, "spec": {"hard": hard, "scopes": scopes}})
    return script


def _scope_operators() -> Script:
    script = Script("quota selectors", "quota-selectors")
    script.open()
    for name, value in (("quota-high", 10), ("quota-low", 1)):
        script.create(
            f"class {name}", "priorityclasses", {"metadata": {"name": name}, "value": value}, group="scheduling.k8s.io", cluster=True
        )
    selectors: dict[str, list[Body]] = {
        "in": [{"scopeName": "PriorityClass", "operator": "In", "values": ["quota-high"]}],
        "not-in": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["quota-high"]}],
        "exists": [{"scopeName": "PriorityClass", "operator": "Exists"}],
        "absent": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}],
        "terminating": [{"scopeName": "Terminating", "operator": "Exists"}],
        "two": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["quota-high", "quota-low"]},
            {"scopeName": "NotBestEffort", "operator": "Exists"},
        ],
    }
    for name, selector in selectors.items():
        _quota(script, name, {"pods": "1"}, scopeSelector={"matchExpressions": selector})
    classes: dict[str, Body] = {"high": {"priorityClassName": "quota-high"}, "low": {"priorityClassName": "quota-low"}, "none": {}}
    for name, spec in classes.items():
        for number in (1, 2):
            script.create(f"pod {name} {number}", "pods", pod(f"{name}-{number}", **spec))
            script.create(f"burstable {name} {number}", "pods", pod(f"b-{name}-{number}", container(requests={"cpu": "1m"}), **spec))
    for name in selectors:
        script.get(f"used {name}", QUOTA, name)
    for name, wrong in (
        ("in-nothing", {"scopeName": "PriorityClass", "operator": "In"}),
        ("exists-with-values", {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
        ("terminating-in", {"scopeName": "Terminating", "operator": "In", "values": ["a"]}),
        ("unknown-operator", {"scopeName": "PriorityClass", "operator": "Like", "values": ["a"]}),
    ):
        script.create(
            f"invalid {name}",
            QUOTA,
            {"metadata": {"name": name}, "spec": {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [wrong]}}},
        )
    return script


def _services() -> Script:
    script = Script("quota services", "quota-services")
    script.open()
    _quota(script, "q", {"services": "5", "services.nodeports": "2", "services.loadbalancers": "1", "count/services": "9"})
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    for name, spec in (
        ("plain", {"ports": ports}), ("node-port", {"type": "NodePort", "ports": ports[:1]}),
        ("node-ports", {"type": "NodePort", "ports": ports}),
        ("balanced", {"type": "LoadBalancer", "ports": ports[:1]}), ("balanced-more", {"type": "LoadBalancer", "ports": ports[:1]}),
        ("headless", {"clusterIP": "None", "ports": ports}), ("external", {"type": "ExternalName", "externalName": "a.example"}),
    ):  # fmt: skip
        script.create(name, "services", {"metadata": {"name": name}, "spec": spec})
        script.get(f"used after {name}", QUOTA, "q")
    script.patch("plain becomes node port", "services", "plain", {"spec": {"type": "NodePort"}})
    script.patch("plain becomes balanced", "services", "plain", {"spec": {"type": "LoadBalancer"}})
    script.patch(
        "balanced becomes plain", "services", "balanced", {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": None}]}}
    )
    script.get("used after all", QUOTA, "q")
    script.patch("label", "services", "plain", {"metadata": {"labels": {"a": "b"}}})
    return script


def _claims() -> Script:
    script = Script("quota claims", "quota-claims")
    script.open()
    script.create(
        "class",
        "storageclasses",
        {"metadata": {"name": "quota-gold"}, "provisioner": "acme.com/a", "allowVolumeExpansion": True},
        group="storage.k8s.io",
        cluster=True,
    )
    hard = {
        "persistentvolumeclaims": "3", "requests.storage": "10Gi",
        "quota-gold.storageclass.storage.k8s.io/requests.storage": "5Gi",
        "quota-gold.storageclass.storage.k8s.io/persistentvolumeclaims": "2",
    }  # fmt: skip
    _quota(script, "q", hard)
    for name, size, of in (
        ("a", "3Gi", "quota-gold"),
        ("b", "3Gi", "quota-gold"),
        ("c", "6Gi", ""),
        ("d", "5Gi", ""),
        ("e", "1500m", "other"),
        ("f", "1Mi", ""),
    ):
        script.create(f"claim {name}", "persistentvolumeclaims", claim(name, size, storageClassName=of))
    old = {"volume.beta.kubernetes.io/storage-class": "quota-gold"}
    script.create("annotated", "persistentvolumeclaims", claim("g", "3Gi", metadata={"annotations": old}))
    script.get("used", QUOTA, "q")
    script.create("bound", "persistentvolumeclaims", claim("h", "1Gi", storageClassName="quota-gold", volumeName="v"))
    script.patch("bind", "persistentvolumeclaims", "a", {"status": {"phase": "Bound", "capacity": {"storage": "3Gi"}}}, sub="status")
    for size in ("4Gi", "9Gi"):
        script.patch(f"grow to {size}", "persistentvolumeclaims", "a", {"spec": {"resources": {"requests": {"storage": size}}}})
    script.patch("label", "persistentvolumeclaims", "a", {"metadata": {"labels": {"a": "b"}}})
    script.get("used after growth", QUOTA, "q")
    return script


def _several() -> Script:
    script = Script("quota several", "quota-several")
    script.open()
    _quota(script, "b", {"configmaps": "5"})
    _quota(script, "a", {"count/configmaps": "1"})
    _quota(script, "c", {"requests.cpu": "1", "limits.cpu": "1"})
    for name in ("x", "y"):
        script.create(name, "configmaps", {"metadata": {"name": name}})
    script.create("pod lacks for c", "pods", pod("p"))
    for name in ("a", "b"):
        script.get(f"used {name}", QUOTA, name)
    _quota(script, "d", {"pods": "0"})
    script.create("pod lacks for c, exceeds d", "pods", pod("p"))
    script.create("pod exceeds c and d", "pods", pod("p", container(requests={"cpu": "2"}, limits={"cpu": "3"})))
    return script


def _quota_objects() -> Script:
    """Quotas themselves, as objects."""
    script = Script("quota objects", "quota-objects")
    script.open()
    for name, hard in (
        ("negative", {"pods": "-1"}), ("fraction", {"pods": "500m"}), ("cpu-fraction", {"cpu": "500m"}), ("unknown", {"nonsense": "1"}),
        ("domain", {"acme.com/gpu": "1"}), ("limits-device", {"limits.acme.com/gpu": "1"}),
        ("requests-device", {"requests.acme.com/gpu": "1"}),
        ("count", {"count/things.acme.com": "1"}), ("bad-count", {"count/": "1"}), ("empty", {}),
    ):  # fmt: skip
        script.create(name, QUOTA, {"metadata": {"name": name}, "spec": {"hard": hard}})
    script.create("scopes", QUOTA, {"metadata": {"name": "s"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}})
    script.patch("scopes cannot change", QUOTA, "s", {"spec": {"scopes": ["NotBestEffort"]}})
    script.patch("hard can", QUOTA, "s", {"spec": {"hard": {"pods": "2"}}})
    script.patch("status by the main resource", QUOTA, "s", {"status": {"used": {"pods": "1"}}})
    return script
