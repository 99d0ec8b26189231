"""Plugins that are off by default, beyond what the differential asks of a real server: configuration, clocks, other servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.admission import configuration
from apiserver.admission.chain import DEFAULT_PLUGINS, PLUGIN_ORDER, enabled_plugins
from apiserver.admission.optional_settings import EventLimit, ImagePolicy, TolerationConfiguration
from apiserver.admission.plugins.always import AlwaysDeny
from apiserver.admission.plugins.deny_service_external_ips import DenyServiceExternalIPs
from apiserver.admission.plugins.event_rate_limit import EventRateLimit
from apiserver.admission.plugins.image_policy_webhook import ImagePolicyWebhook
from apiserver.admission.plugins.pod_node_selector import PodNodeSelector
from apiserver.admission.plugins.pod_resize import PodResizeValidator
from apiserver.admission.plugins.pod_toleration_restriction import PodTolerationRestriction
from apiserver.machinery.config_file import ConfigFileError
from apiserver.machinery.quota.evaluators import is_best_effort
from apiserver.machinery.status import StatusError
from apiserver.outbound.json_client import OutboundError
from tests.apiserver.api import config_in, running
from tests.fakes.admission import container, pod, request, run
from tests.fakes.object_getter import FakeObjects


async def refusal(plugin: Any, attributes: Any) -> str:
    try:
        await run(plugin, attributes)
    except StatusError as error:
        return error.message
    return ""


def test_every_plugin_is_on_or_off_by_name() -> None:
    assert len(PLUGIN_ORDER) == len(set(PLUGIN_ORDER))
    assert set(enabled_plugins()) == DEFAULT_PLUGINS
    assert enabled_plugins(PLUGIN_ORDER) == PLUGIN_ORDER
    assert enabled_plugins(disable=PLUGIN_ORDER) == ()


async def test_always_deny_denies_everything() -> None:
    told = "admission control is denying all modifications"
    for attributes in (
        request("pods", pod()),
        request("pods", None, name="a"),
        request("nodes", {"metadata": {"name": "n"}}, namespace=""),
    ):
        assert (await refusal(AlwaysDeny(), attributes)).endswith(told)


@pytest.mark.parametrize(
    ("new", "old", "refused"), [(["1.1.1.1"], None, True), ([], None, False), (["a"], ["a", "b"], False), (["a", "c"], ["a"], True)]
)
async def test_external_addresses_stay_or_go(new: list[str], old: list[str] | None, refused: bool) -> None:
    def service(addresses: list[str]) -> dict[str, Any]:
        return {"metadata": {"name": "s"}, "spec": {"externalIPs": addresses}}

    attributes = request("services", service(new), None if old is None else service(old))
    told = await refusal(DenyServiceExternalIPs(), attributes)
    assert told == ('services "s" is forbidden: Use of external IPs is denied by admission control' if refused else "")


async def test_events_are_let_in_at_their_rate() -> None:
    clock = [0.0]
    limits = [EventLimit(type="Namespace", per_second=1, burst=2), EventLimit(type="SourceAndObject", per_second=1, burst=3, buckets_max=2)]
    plugin = EventRateLimit(limits, lambda: clock[0])

    async def send(about: str, namespace: str = "ns") -> str:
        event = {"metadata": {"name": "e"}, "source": {"component": "c", "host": "h"}, "involvedObject": {"kind": "Pod", "name": about}}
        return await refusal(plugin, request("events", event, namespace=namespace))

    assert [await send("a"), await send("a")] == ["", ""]
    assert await send("b") == "Too many requests: limit reached on type Namespace for key ns"
    assert await send("b", "other") == ""
    clock[0] = 1.0
    assert [await send("a"), bool(await send("a"))] == ["", True]
    clock[0] = 2.0
    assert [await send("a", "third") for _ in range(2)] == ["", "Too many requests: limit reached on type SourceAndObject for key chPoda"]
    await send("x", "fourth"), await send("y", "fourth")
    assert await send("a", "fifth") == "", "the bucket that was unused longest is forgotten"


class Backend:
    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()

    async def __call__(self, review: dict[str, Any]) -> Any:
        self.asked.append(review)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_images_are_reviewed_and_the_answers_remembered() -> None:
    backend = Backend({"status": {"allowed": True}}, {"status": {"allowed": False, "reason": "old"}}, {"status": {}})
    clock = [0.0]
    plugin = ImagePolicyWebhook(ImagePolicy(kubeconfig="", allow_seconds=5, deny_seconds=1), backend, lambda: clock[0])
    made = pod("p", initContainers=[container("i")])
    made["metadata"]["annotations"] = {"x.image-policy.k8s.io/break-glass": "1", "other": "2"}
    for _ in range(2):
        assert await refusal(plugin, request("pods", made)) == ""
    spec = {"containers": [{"image": "i"}, {"image": "i"}], "namespace": "ns", "annotations": {"x.image-policy.k8s.io/break-glass": "1"}}
    assert [review["spec"] for review in backend.asked] == [spec]
    clock[0] = 5.0
    told = 'pods "p" is forbidden: image policy webhook backend denied one or more images: old'
    assert [await refusal(plugin, request("pods", made)) for _ in range(2)] == [told, told]
    clock[0] = 6.0
    assert await refusal(plugin, request("pods", made)) == 'pods "p" is forbidden: one or more images rejected by webhook backend'
    assert await refusal(plugin, request("pods", {**made, "metadata": {"name": "p"}}, made)) == "", "the images are those of before"


@pytest.mark.parametrize("answer", [OutboundError("no route"), {"status": {"allowed": "yes"}}, "text"])
async def test_a_backend_that_fails_lets_in_or_refuses_as_configured(answer: Any) -> None:
    for default_allow in (True, False):
        plugin = ImagePolicyWebhook(ImagePolicy(kubeconfig="", default_allow=default_allow), Backend(answer), lambda: 0.0)
        attributes = request("pods", pod("p"))
        told = await refusal(plugin, attributes)
        assert bool(told) is not default_allow
        if default_allow:
            assert attributes.object is not None
            assert attributes.object["metadata"]["annotations"] == {"alpha.image-policy.k8s.io/failed-open": "true"}


async def test_a_cluster_says_what_namespaces_do_not() -> None:
    world = FakeObjects()
    world.add("", "namespaces", "ns")
    selecting = PodNodeSelector(world, {"clusterDefaultNodeSelector": "env=test", "ns": "env=test,disk=ssd"})
    made = await run(selecting, request("pods", pod(nodeSelector={"disk": "ssd"})))
    assert made["spec"]["nodeSelector"] == {"env": "test", "disk": "ssd"}
    told = await refusal(selecting, request("pods", pod(nodeSelector={"os": "linux"})))
    assert told.endswith("pod node label selector labels conflict with its namespace whitelist")
    tolerated = {"key": "a", "operator": "Exists"}
    tolerating = PodTolerationRestriction(world, TolerationConfiguration(defaults=(tolerated,), allowed=(tolerated,)), is_best_effort)
    assert (await run(tolerating, request("pods", pod())))["spec"]["tolerations"] == [tolerated]
    assert "conflict with its namespace whitelist" in await refusal(tolerating, request("pods", pod(tolerations=[{"operator": "Exists"}])))


@pytest.mark.parametrize(
    ("asked", "labels", "told"),
    [
        ({"cpu": "2", "memory": "1Gi"}, {"kubernetes.io/os": "linux"}, ""),
        (
            {"cpu": "2001m", "memory": "2Gi"},
            {"kubernetes.io/os": "linux"},
            "Node didn't have enough allocatable resources: cpu, requested: 2001, allocatable: 2000; "
            "memory, requested: 2147483648, allocatable: 1073741824",
        ),
        ({"cpu": "1"}, {"kubernetes.io/os": "windows"}, 'pod resize is only supported on linux nodes, node "n" is "windows"'),
        ({"cpu": "1"}, {}, 'pod resize is only supported on linux nodes, node "n" is ""'),
    ],
)
async def test_pods_grow_within_their_node(asked: dict[str, str], labels: dict[str, str], told: str) -> None:
    world = FakeObjects()
    world.add("", "nodes", "n", metadata={"labels": labels}, status={"allocatable": {"cpu": "2", "memory": "1Gi"}})
    old, new = (pod("p", containers=[container(requests=requests)], nodeName="n") for requests in ({"cpu": "1m"}, asked))
    plugin = PodResizeValidator(world)
    assert await refusal(plugin, request("pods", new, old, subresource="resize")) == (f'pods "p" is forbidden: {told}' if told else "")
    assert await refusal(plugin, request("pods", new, old)) == ""
    elsewhere = {**new, "spec": {**new["spec"], "nodeName": "gone"}}
    assert (await refusal(plugin, request("pods", elsewhere, old, subresource="resize"))).endswith('node "gone" not found')


FILE = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Server, qps: 5, burst: 10}, {type: User, qps: 1, burst: 2, cacheSize: 7}]
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
    kind: Configuration
    default: [{key: a, operator: Exists}]
    whitelist: [{operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
- {name: PodNodeSelector, path: selectors.yaml}
- {name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: backend.yaml, allowTTL: 50, denyTTL: -1, defaultAllow: true}}}
"""


def test_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "selectors.yaml").write_text("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b, ns: c=d}")
    file = tmp_path / "admission.yaml"
    file.write_text(FILE)
    found = configuration.load(file)
    assert found.event_limits == (
        EventLimit(type="Server", per_second=5, burst=10),
        EventLimit(type="User", per_second=1, burst=2, buckets_max=7),
    )
    allowed = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    assert found.tolerations == TolerationConfiguration(defaults=({"key": "a", "operator": "Exists"},), allowed=(allowed,))
    assert found.node_selectors == {"clusterDefaultNodeSelector": "a=b", "ns": "c=d"}
    wanted = ImagePolicy(kubeconfig=str(tmp_path / "backend.yaml"), allow_seconds=50, deny_seconds=0, default_allow=True)
    assert found.image_policy == wanted
    wrong = (
        FILE.replace("qps: 5, burst: 10", "qps: 0, burst: -1")
        .replace("type: User", "type: Nobody")
        .replace("allowTTL: 50", "allowTTL: 9999")
    )
    file.write_text(wrong)
    with pytest.raises(ConfigFileError) as caught:
        configuration.load(file)
    told = "\n".join(caught.value.problems)
    for part in ("qps: must be positive", "burst: must be positive", '"Nobody" is none of', "allowTTL: must be between"):
        assert part in told


async def test_a_flag_turns_them_on_in_a_server(tmp_path: Path) -> None:
    config = config_in(tmp_path, enable_admission_plugins=("DenyServiceExternalIPs", "NamespaceAutoProvision"))
    async with running(config) as api:
        made = await api.post(
            "/api/v1/namespaces/new/services", {"metadata": {"name": "s"}, "spec": {"externalIPs": ["192.0.2.1"], "ports": [{"port": 1}]}}
        )
        assert (made.status, made.message) == (403, 'services "s" is forbidden: Use of external IPs is denied by admission control')
        assert (await api.get("/api/v1/namespaces/new")).status == 200
    with pytest.raises(ValueError, match="ImagePolicyWebhook needs a configuration"):
        async with running(config_in(tmp_path, enable_admission_plugins=("ImagePolicyWebhook",))):
            pass
