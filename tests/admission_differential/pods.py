"""What becomes of pods: LimitRanger, ServiceAccount, Priority, DefaultTolerationSeconds, RuntimeClass."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.admission_differential.steps import Body, Script, container, pod

#: sums and bounds of LimitRanges: (name, limits, containers of the pod as (requests, limits), init containers)
_GIGA = "1Gi"


def limit_ranger() -> Iterator[Script]:
    yield from _defaults()
    yield from _bounds()
    yield _claims()
    yield _limit_range_updates()


def _limit_range(*limits: Body) -> Body:
    return {"metadata": {"name": "limits"}, "spec": {"limits": list(limits)}}


def _defaults() -> Iterator[Script]:
    kinds: dict[str, Body] = {
        "default": {"default": {"cpu": "500m", "memory": "64Mi"}},
        "request": {"defaultRequest": {"cpu": "100m"}},
        "both": {"default": {"cpu": "500m", "memory": "64Mi"}, "defaultRequest": {"cpu": "100m", "memory": "32Mi"}},
        "max": {"max": {"cpu": "2"}},
        "min": {"min": {"cpu": "50m"}},
        "minmax": {"min": {"cpu": "50m"}, "max": {"cpu": "2", "memory": _GIGA}, "default": {"cpu": "1"}},
        "device": {"default": {"acme.com/gpu": "1", "ephemeral-storage": _GIGA}, "defaultRequest": {"ephemeral-storage": "1Mi"}},
    }
    for name, limit in kinds.items():
        script = Script(f"limit defaults {name}", f"limits-{name}")
        script.open()
        script.create("range", "limitranges", _limit_range({"type": "Container", **limit}))
        script.create("bare", "pods", pod("bare"))
        script.create("dry run", "pods", pod("dry"), query="?dryRun=All")
        script.create("generated", "pods", pod("generated-"))
        script.create("said", "pods", pod("said", container(requests={"cpu": "200m"}, limits={"cpu": "400m", "memory": "64Mi"})))
        script.create("limit alone", "pods", pod("limit", container(limits={"cpu": "300m"})))
        script.create("request alone", "pods", pod("request", container(requests={"cpu": "300m"})))
        script.create("two", "pods", pod("two", container("a"), container("b", limits={"cpu": "1"}), initContainers=[container("init")]))
        script.create("annotated", "pods", pod("annotated", metadata={"annotations": {"a": "b", "kubernetes.io/limit-ranger": "mine"}}))
        script.patch("label", "pods", "bare", {"metadata": {"labels": {"a": "b"}}})
        yield script
    script = Script("limit defaults of several", "limits-several")
    script.open()
    for name, cpu in (("b", "500m"), ("a", "250m")):
        body = _limit_range({"type": "Container", "default": {"cpu": cpu}}, {"type": "Container", "default": {"memory": "1Mi"}})
        body["metadata"]["name"] = name
        script.create(f"range {name}", "limitranges", body)
    yield script


def _bounds() -> Iterator[Script]:
    bounds: dict[str, list[Body]] = {
        "min": [{"type": "Container", "min": {"cpu": "100m"}}],
        "memory": [{"type": "Container", "min": {"memory": "10Mi"}, "max": {"memory": _GIGA}}],
        "max": [{"type": "Container", "max": {"cpu": "1"}}],
        "ratio": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}],
        "fraction": [{"type": "Container", "maxLimitRequestRatio": {"memory": "1500m"}}],
        "pod": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "200m"}}],
        "podmemory": [{"type": "Pod", "max": {"memory": _GIGA}}],
        "podratio": [{"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}],
        "both": [{"type": "Container", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1500m"}}],
    }
    amounts: dict[str, tuple[Body | None, Body | None]] = {
        "none": (None, None),
        "small": ({"cpu": "50m", "memory": "1Mi"}, {"cpu": "60m", "memory": "1Mi"}),
        "wide": ({"cpu": "100m", "memory": "100Mi"}, {"cpu": "900m", "memory": "900Mi"}),
        "big": ({"cpu": "2", "memory": "2Gi"}, {"cpu": "3", "memory": "3Gi"}),
        "requests": ({"cpu": "2", "memory": "2Gi"}, None),
        "limits": (None, {"cpu": "800m", "memory": "800Mi"}),
        "zero": ({"cpu": "0", "memory": "0"}, {"cpu": "1", "memory": "1Gi"}),
        "odd": ({"cpu": "333m", "memory": "1000001"}, {"cpu": "667m", "memory": "1500003"}),
    }
    for name, limits in bounds.items():
        script = Script(f"limit bounds {name}", f"bounds-{name}")
        script.open()
        script.create("range", "limitranges", _limit_range(*limits))
        for said, (requests, bound) in amounts.items():
            one = container(requests=requests, limits=bound)
            script.create(said, "pods", pod(f"one-{said}", one), query="?dryRun=All")
            if said in ("none", "wide", "big", "limits"):
                script.create(f"two {said}", "pods", pod(f"two-{said}", one, {**one, "name": "d"}), query="?dryRun=All")
                fine = container("c", {"cpu": "300m", "memory": "100Mi"}, {"cpu": "400m", "memory": "200Mi"})
                init = pod(f"init-{said}", fine, initContainers=[{**one, "name": "init"}])
                script.create(f"init {said}", "pods", init, query="?dryRun=All")
        yield script


def _claims() -> Script:
    script = Script("limit claims", "limit-claims")
    script.open()
    script.create(
        "range", "limitranges", _limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "3Gi"}})
    )
    for size in ("1Gi", "512Mi", "4Gi", "3Gi"):
        body = {
            "metadata": {"name": f"c-{size.lower()}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        }
        script.create(size, "persistentvolumeclaims", body)
    script.patch("update", "persistentvolumeclaims", "c-1gi", {"metadata": {"labels": {"a": "b"}}})
    script.delete("remove the range", "limitranges", "limits")
    script.create(
        "free",
        "persistentvolumeclaims",
        {"metadata": {"name": "free"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}}},
    )
    return script


def _limit_range_updates() -> Script:
    script = Script("limit updates", "limit-updates")
    script.open()
    script.create("pod before", "pods", pod("before"))
    script.create("range", "limitranges", _limit_range({"type": "Container", "min": {"cpu": "1"}, "default": {"cpu": "2"}}))
    script.patch("label", "pods", "before", {"metadata": {"labels": {"a": "b"}}})
    script.patch("status", "pods", "before", {"status": {"phase": "Running"}}, sub="status")
    script.delete("delete", "pods", "before", query="?gracePeriodSeconds=0")
    deployment = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
        },
    }
    script.create("templates are left", "deployments", deployment, group="apps")
    return script


def service_account() -> Iterator[Script]:
    script = Script("account", "accounts")
    script.open("default", "plain", "puller")
    accounts = "serviceaccounts"
    script.create("quiet", accounts, {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False})
    script.create("loud", accounts, {"metadata": {"name": "loud"}, "automountServiceAccountToken": True})
    script.patch("pulls", accounts, "puller", {"imagePullSecrets": [{"name": "registry"}, {"name": "other"}]})
    strict = {"kubernetes.io/enforce-mountable-secrets": "true"}
    for value in ("true", "T", "1", "yes", "false"):
        body: Body = {
            "metadata": {"name": f"strict-{value.lower()}", "annotations": {"kubernetes.io/enforce-mountable-secrets": value}},
            "secrets": [{"name": "mine"}],
            "imagePullSecrets": [{"name": "registry"}],
        }
        script.create(f"strict {value}", accounts, body)
    bare: Body = {"automountServiceAccountToken": None}
    script.create("default account", "pods", pod("default", **bare))
    script.create("gone account", "pods", pod("gone", serviceAccountName="gone", **bare))
    script.create("old name", "pods", pod("old", serviceAccount="plain", **bare))
    script.create("both names", "pods", pod("both", serviceAccount="quiet", serviceAccountName="plain", **bare))
    for account, word in itertools.product(("plain", "quiet", "loud"), (None, True, False)):
        said = pod(f"mount-{account}-{str(word).lower()}", serviceAccountName=account, automountServiceAccountToken=word)
        script.create(f"mount {account} {word}", "pods", said)
    mounts = [{"name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    own = pod("own", container("a", volumeMounts=mounts), container("b"), volumes=[{"name": "own", "emptyDir": {}}], **bare)
    script.create("own mount", "pods", own)
    all_own = pod("all-own", container("a", volumeMounts=mounts), volumes=[{"name": "own", "emptyDir": {}}], **bare)
    script.create("all mounts are its own", "pods", all_own)
    script.create("init containers", "pods", pod("init", container("a"), initContainers=[container("i")], **bare))
    existing = pod("existing", container("a"), volumes=[{"name": "kube-api-access-aaaaa", "emptyDir": {}}], **bare)
    script.create("volume is there", "pods", existing)
    script.create("pull secrets", "pods", pod("pull", serviceAccountName="puller"))
    script.create("pull secrets of its own", "pods", pod("pull-own", serviceAccountName="puller", imagePullSecrets=[{"name": "x"}]))
    yield script
    yield _mountable(strict)
    yield _mirror_pods()


def _mountable(strict: Body) -> Script:
    script = Script("mountable", "mountable")
    script.open()
    body: Body = {
        "metadata": {"name": "strict", "annotations": strict},
        "secrets": [{"name": "mine"}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    script.create("account", "serviceaccounts", body)
    uses: dict[str, Body] = {
        "volume": {"volumes": [{"name": "v", "secret": {"secretName": "NAME"}}]},
        "projected": {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "NAME"}}]}}]},
        "pull": {"imagePullSecrets": [{"name": "NAME"}]},
        "second pull": {"imagePullSecrets": [{"name": "registry"}, {"name": "NAME"}]},
        "env": {"containers": [container(env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": "NAME", "key": "k"}}}])]},
        "env from": {"containers": [container(envFrom=[{"secretRef": {"name": "NAME"}}])]},
        "init env": {"initContainers": [container("i", env=[{"name": "E", "valueFrom": {"secretKeyRef": {"name": "NAME", "key": "k"}}}])]},
        "init env from": {"initContainers": [container("i", envFrom=[{"secretRef": {"name": "NAME"}}])]},
        "flex": {"volumes": [{"name": "v", "flexVolume": {"driver": "a/b", "secretRef": {"name": "NAME"}}}]},
    }
    for (use, spec), name in itertools.product(uses.items(), ("mine", "other", "registry")):
        made = pod(f"{use.replace(' ', '-')}-{name}", serviceAccountName="strict")
        made["spec"] |= _named(spec, name)
        script.create(f"{use} {name}", "pods", made)
    return script


def _named(value: Body, name: str) -> Body:
    import json

    found: Body = json.loads(json.dumps(value).replace("NAME", name))
    return found


def _mirror_pods() -> Script:
    script = Script("mirror", "mirror")
    script.open()
    mirror: Body = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    specs: dict[str, Body] = {
        "plain": {},
        "node": {"nodeName": "n"},
        "account": {"nodeName": "n", "serviceAccountName": "default"},
        "old-account": {"nodeName": "n", "serviceAccount": "default"},
        "secret": {"nodeName": "n", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        "pull": {"nodeName": "n", "imagePullSecrets": [{"name": "s"}]},
        "env": {"nodeName": "n", "containers": [container(envFrom=[{"secretRef": {"name": "s"}}])]},
        "token": {
            "nodeName": "n",
            "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        },
        "priority": {"nodeName": "n", "priorityClassName": "system-node-critical"},
    }
    for name, spec in specs.items():
        made = pod(f"mirror-{name}", metadata=mirror)
        made["spec"].pop("automountServiceAccountToken")
        made["spec"] |= spec
        script.create(name, "pods", made)
    return script


def priority() -> Iterator[Script]:
    script = Script("priority", "priority")
    script.open()
    group: Body = {"group": "scheduling.k8s.io", "cluster": True}
    classes = "priorityclasses"
    script.create("no class", "pods", pod("none"))
    for name, more in (
        ("high", {"value": 1000}),
        ("never", {"value": 500, "preemptionPolicy": "Never"}),
        ("negative", {"value": -5}),
        ("zero", {}),
        ("preempts", {"value": 7, "preemptionPolicy": "PreemptLowerPriority"}),
        ("system-mine", {"value": 1}),
        ("too-high", {"value": 1000000001}),
        ("highest", {"value": 1000000000}),
    ):
        script.create(f"class {name}", classes, {"metadata": {"name": name}, "description": "d", **more}, **group)
    for name in ("high", "never", "negative", "zero", "preempts", "system-node-critical", "system-cluster-critical", "gone", "highest"):
        script.create(f"pod {name}", "pods", pod(f"p-{name}", priorityClassName=name))
    numbers: tuple[tuple[str | None, int], ...] = (("high", 1000), ("high", 999), (None, 0), (None, 5), ("negative", -5))
    for of, value in numbers:
        script.create(f"number {of} {value}", "pods", pod(f"n-{of}-{abs(value)}".lower(), priorityClassName=of, priority=value))
    policies: tuple[tuple[str | None, str], ...] = (
        ("high", "Never"),
        ("high", "PreemptLowerPriority"),
        ("never", "Never"),
        ("never", "PreemptLowerPriority"),
        (None, "Never"),
    )
    for of, policy in policies:
        made = pod(f"policy-{of}-{policy}".lower(), priorityClassName=of, preemptionPolicy=policy)
        script.create(f"policy {of} {policy}", "pods", made)
    script.create("global default", classes, {"metadata": {"name": "common"}, "value": 20, "globalDefault": True}, **group)
    script.create("another default", classes, {"metadata": {"name": "another"}, "value": 10, "globalDefault": True}, **group)
    script.patch("high becomes default", classes, "high", {"globalDefault": True}, **group)
    script.patch("default stays default", classes, "common", {"globalDefault": True, "description": "more"}, **group)
    script.create("defaulted", "pods", pod("defaulted"))
    script.create("defaulted with number", "pods", pod("defaulted-number", priority=20))
    script.create("defaulted with other number", "pods", pod("defaulted-other", priority=0))
    script.patch("value", classes, "common", {"value": 21}, **group)
    script.patch("policy", classes, "common", {"preemptionPolicy": "Never"}, **group)
    script.patch("no default any more", classes, "common", {"globalDefault": False}, **group)
    script.create("undefaulted", "pods", pod("undefaulted"))
    script.delete("delete class", classes, "high", **group)
    script.delete("delete system class", classes, "system-node-critical", **group)
    script.create("pod of deleted system class", "pods", pod("after", priorityClassName="system-node-critical"))
    script.create("system class again", classes, {"metadata": {"name": "system-node-critical"}, "value": 2000001000}, **group)
    script.create("class with other system value", classes, {"metadata": {"name": "system-x"}, "value": 2000001000}, **group)
    script.patch("pod label", "pods", "none", {"metadata": {"labels": {"a": "b"}}})
    script.patch("pod priority", "pods", "none", {"spec": {"priority": 5}})
    script.patch("pod priority away", "pods", "none", {"spec": {"priority": None, "preemptionPolicy": None}})
    script.patch("pod class", "pods", "none", {"spec": {"priorityClassName": "never"}})
    yield script


def tolerations() -> Iterator[Script]:
    script = Script("toleration", "tolerations")
    script.open()
    not_ready, unreachable = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
    said: dict[str, list[Body]] = {
        "none": [],
        "everything": [{"operator": "Exists"}],
        "everything-executed": [{"operator": "Exists", "effect": "NoExecute"}],
        "everything-scheduled": [{"operator": "Exists", "effect": "NoSchedule"}],
        "not-ready": [{"key": not_ready, "operator": "Exists", "effect": "NoExecute"}],
        "not-ready-any": [{"key": not_ready, "operator": "Exists"}],
        "not-ready-schedule": [{"key": not_ready, "operator": "Exists", "effect": "NoSchedule"}],
        "not-ready-equal": [{"key": not_ready, "operator": "Equal", "value": "x", "effect": "NoExecute"}],
        "seconds": [{"key": not_ready, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}],
        "both": [
            {"key": not_ready, "operator": "Exists", "effect": "NoExecute"},
            {"key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
        "unreachable": [{"key": unreachable, "operator": "Exists"}],
        "other": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        "old": [{"key": "node.alpha.kubernetes.io/notReady", "operator": "Exists", "effect": "NoExecute"}],
    }
    for name, tolerated in said.items():
        script.create(name, "pods", pod(name, tolerations=tolerated))
    script.patch("update", "pods", "none", {"metadata": {"labels": {"a": "b"}}})
    script.patch("take away", "pods", "none", {"spec": {"tolerations": []}})
    more = [{"key": "x", "operator": "Exists"}, {"key": not_ready, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    script.patch("add and drop one", "pods", "none", {"spec": {"tolerations": more}})
    yield script


def runtime_class() -> Iterator[Script]:
    script = Script("runtime", "runtimes")
    script.open()
    group: Body = {"group": "node.k8s.io", "cluster": True}
    resources = {"cpu": "100m", "memory": "10Mi"}
    classes: dict[str, Body] = {
        "plain": {},
        "heavy": {"overhead": {"podFixed": resources}},
        "selecting": {"scheduling": {"nodeSelector": {"os": "linux", "gpu": "yes"}}},
        "tolerating": {
            "scheduling": {"tolerations": [{"key": "r", "operator": "Exists"}, {"key": "s", "operator": "Equal", "value": "t"}]}
        },
        "all": {
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"os": "linux"}, "tolerations": [{"key": "r", "operator": "Exists", "effect": "NoSchedule"}]},
        },
        "empty": {"overhead": {"podFixed": {}}, "scheduling": {}},
    }
    for name, more in classes.items():
        script.create(f"class {name}", "runtimeclasses", {"metadata": {"name": name}, "handler": "h", **more}, **group)
    specs: dict[str, Body] = {
        "bare": {},
        "overhead": {"overhead": dict(resources)},
        "equal-overhead": {"overhead": {"cpu": "0.1", "memory": "10485760"}},
        "other-overhead": {"overhead": {"cpu": "101m", "memory": "10Mi"}},
        "selector": {"nodeSelector": {"os": "linux", "a": "b"}},
        "conflict": {"nodeSelector": {"os": "windows"}},
        "conflicts": {"nodeSelector": {"os": "windows", "gpu": "no"}},
        "tolerating": {"tolerations": [{"key": "r", "operator": "Exists"}]},
        "tolerating-effect": {"tolerations": [{"key": "r", "operator": "Exists", "effect": "NoSchedule"}]},
    }
    for (of, _), (name, spec) in itertools.product(classes.items(), specs.items()):
        script.create(f"pod {of} {name}", "pods", pod(f"{of}-{name}", runtimeClassName=of, **spec), query="?dryRun=All")
    script.create("gone", "pods", pod("gone", runtimeClassName="gone"))
    script.create("overhead without class", "pods", pod("alone", overhead=dict(resources)))
    script.create("no class", "pods", pod("none"))
    script.create("stored", "pods", pod("stored", runtimeClassName="all"))
    script.patch("label", "pods", "stored", {"metadata": {"labels": {"a": "b"}}})
    script.delete("class deleted", "runtimeclasses", "all", **group)
    script.patch("label without class", "pods", "stored", {"metadata": {"labels": {"a": "c"}}})
    yield script
