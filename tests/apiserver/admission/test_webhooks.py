"""Admission webhooks on the smallest request that shows what they do; the texts are those of kube-apiserver."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
import pytest

from apiserver.admission.chain import AdmissionChain
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin
from apiserver.admission.webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook
from apiserver.machinery.status import StatusError
from apiserver.webhooks.client import CallError
from tests.fakes.admission import USER
from tests.fakes.webhooks import TABLE, FakeWebhookWorld, patch, webhook

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
ALLOW = {"allowed": True}


class World(FakeWebhookWorld):
    def __init__(self, *before: Plugin) -> None:
        super().__init__()
        self.chain = AdmissionChain([*before, MutatingAdmissionWebhook(self), ValidatingAdmissionWebhook(self)])
        self.annotations: dict[str, str] = {}

    async def write(
        self,
        obj: dict[str, Any] | None = None,
        operation: Operation = Operation.CREATE,
        *,
        resource: tuple[str, str, str] = ("", "v1", "pods"),
        subresource: str = "",
        dry_run: bool = False,
    ) -> AdmissionAttributes:
        info = TABLE.lookup(*resource)
        assert info is not None
        new = None if operation is Operation.DELETE else obj or {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}
        old = (
            None if operation is Operation.CREATE else {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"o": "1"}}}
        )
        attributes = AdmissionAttributes(
            operation=operation,
            info=info,
            subresource=subresource,
            namespace="ns" if info.namespaced else "",
            name="a",
            user=USER,
            object=new,
            old_object=old,
            dry_run=dry_run,
            options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            annotate=self.annotations.__setitem__,
        )
        await self.chain.admit(attributes)
        await self.chain.validate(attributes)
        return attributes

    async def refused(self, **write: Any) -> dict[str, Any]:
        with pytest.raises(StatusError) as caught:
            await self.write(**write)
        return caught.value.status

    def order(self) -> list[str]:
        return [url.removeprefix("https://") for url, _ in self.asked]


def add(path: str, value: Any) -> dict[str, Any]:
    return patch({"op": "add", "path": path, "value": value})


async def test_the_question_tells_everything_of_the_request() -> None:
    world = World()
    world.configure(VALIDATING, "c", webhook("v.example.com"))
    world.answers["https://v.example.com"] = lambda request: ALLOW
    await world.write(operation=Operation.UPDATE)
    ((_, asked),) = world.asked
    assert asked == {
        "uid": "uid-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "a",
        "namespace": "ns",
        "operation": "UPDATE",
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}},
        "oldObject": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"o": "1"}}},
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_an_equivalent_version_is_what_the_webhook_asked_for() -> None:
    world = World()
    rule = {"operations": ["*"], "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"]}
    world.configure(MUTATING, "c", webhook("m.example.com", rules=[rule]))
    world.answers["https://m.example.com"] = lambda request: patch({"op": "add", "path": "/note", "value": "changed"})
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "a"}, "involvedObject": {"name": "x"}, "message": "m"}
    written = await world.write(event, resource=("", "v1", "events"))
    asked = world.asked[0][1]
    assert asked["kind"] == {"group": "events.k8s.io", "version": "v1", "kind": "Event"}
    assert asked["requestKind"] == {"group": "", "version": "v1", "kind": "Event"}
    assert asked["object"]["regarding"] == {"name": "x"} and asked["object"]["apiVersion"] == "events.k8s.io/v1"
    assert written.object is event, "the store goes on with the object that it gave"
    assert (event["message"], event["apiVersion"], event["involvedObject"]) == ("changed", "v1", {"name": "x"})


async def test_mutating_webhooks_run_by_configuration_and_see_each_others_work() -> None:
    world = World()
    world.configure(MUTATING, "b", webhook("second.example.com"))
    world.configure(MUTATING, "a", webhook("first.example.com"), webhook("then.example.com"))
    world.answers["https://first.example.com"] = lambda request: add("/metadata/labels", {"a": "1"})
    world.answers["https://then.example.com"] = lambda request: add("/metadata/labels/b", request["object"]["metadata"]["labels"]["a"])
    world.answers["https://second.example.com"] = lambda request: add("/metadata/labels/c", str(request["object"]["metadata"]["labels"]))
    written = await world.write()
    assert world.order() == ["first.example.com", "then.example.com", "second.example.com"]
    assert written.object is not None
    assert written.object["metadata"]["labels"] == {"a": "1", "b": "1", "c": "{'a': '1', 'b': '1'}"}


async def test_a_webhook_is_called_again_where_a_later_one_changed_something() -> None:
    world = World()
    world.configure(
        MUTATING,
        "c",
        webhook("once.example.com"),
        webhook("again.example.com", reinvocationPolicy="IfNeeded"),
        webhook("changes.example.com", reinvocationPolicy="IfNeeded"),
    )
    world.answers["https://once.example.com"] = lambda request: ALLOW
    world.answers["https://again.example.com"] = lambda request: ALLOW
    world.answers["https://changes.example.com"] = lambda request: add("/metadata/labels", {"a": "1"})
    await world.write()
    assert world.order() == ["once.example.com", "again.example.com", "changes.example.com", "again.example.com"]


async def test_a_plugin_that_changes_the_object_in_its_second_run_has_webhooks_called_again() -> None:
    class Sidecars(Plugin):
        name = "Sidecars"
        operations = frozenset((Operation.CREATE,))

        async def admit(self, attributes: AdmissionAttributes) -> None:
            assert attributes.object is not None
            if "injected" in attributes.object["metadata"].get("labels", {}):
                attributes.object["metadata"]["labels"]["defaulted"] = "1"

    world = World(Sidecars())
    world.configure(MUTATING, "c", webhook("m.example.com", reinvocationPolicy="IfNeeded"))
    world.answers["https://m.example.com"] = lambda request: (
        add("/metadata/labels/injected", "1") if "labels" in request["object"]["metadata"] else add("/metadata/labels", {"injected": "1"})
    )
    written = await world.write()
    assert written.object is not None and written.object["metadata"]["labels"] == {"injected": "1", "defaulted": "1"}
    assert [request["object"]["metadata"].get("labels") for _, request in world.asked] == [None, {"injected": "1", "defaulted": "1"}]


async def test_a_webhook_is_not_called_for_the_first_time_in_the_second_round() -> None:
    world = World()
    late = webhook("late.example.com", objectSelector={"matchLabels": {"a": "1"}}, reinvocationPolicy="IfNeeded")
    world.configure(MUTATING, "c", late, webhook("m.example.com"))
    world.answers["https://m.example.com"] = lambda request: add("/metadata/labels", {"a": "1"})
    await world.write()
    assert world.order() == ["m.example.com"]


async def test_validating_webhooks_run_at_once_and_the_first_in_order_is_told() -> None:
    world = World()
    world.configure(VALIDATING, "c", webhook("a.example.com"), webhook("b.example.com"))
    both = asyncio.Barrier(2)

    async def refuse(request: dict[str, Any]) -> dict[str, Any]:
        await both.wait()
        return {"allowed": False, "status": {"message": "no"}}

    world.answers["https://a.example.com"] = world.answers["https://b.example.com"] = refuse
    assert (await world.refused())["message"] == 'admission webhook "a.example.com" denied the request: no'


@pytest.mark.parametrize(
    ("said", "code", "reason", "message"),
    [
        (None, 400, None, "without explanation"),
        ({"message": "no"}, 400, None, ": no"),
        ({"reason": "Invalid"}, 400, "Invalid", ": Invalid"),
        ({"code": 403, "reason": "Forbidden", "message": "not you"}, 403, "Forbidden", ": not you"),
        ({"code": 200, "message": "no", "status": "Success"}, 400, None, ": no"),
        ({"code": 9999, "message": "no"}, 400, None, ": no"),
        ({"code": 422, "message": "no", "details": {"name": "a"}}, 422, None, ": no"),
    ],
)
async def test_a_refusal_carries_what_the_webhook_said(said: Any, code: int, reason: str | None, message: str) -> None:
    world = World()
    world.configure(VALIDATING, "c", webhook("v.example.com"))
    world.answers["https://v.example.com"] = lambda request: {"allowed": False, **({} if said is None else {"status": said})}
    found = await world.refused()
    separator = "" if message.startswith(":") else " "
    assert found["message"] == f'admission webhook "v.example.com" denied the request{separator}{message}'
    assert (found["code"], found.get("reason"), found["status"]) == (code, reason, "Failure")
    assert found.get("details") == (said or {}).get("details")


def review(**response: Any) -> bytes:
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})


PATCH = base64.b64encode(b"[]").decode()
CALL, INVALID = "failed to call webhook: ", "received invalid webhook response: "
PARSING, FIELD = f"{CALL}couldn't get version/kind; json parse error: ", "Go struct field AdmissionResponse.response"
WANTED = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got"
HEAD = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
ADDS = base64.b64encode(b'[{"op":"add","path":"/metadata/labels","value":{}}]').decode()
ABSENT = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'


@pytest.mark.parametrize(
    ("resource", "answer", "why"),
    [
        (VALIDATING, b"garbage", f"{PARSING}invalid character 'g' looking for beginning of value"),
        (VALIDATING, b"[]", f"{PARSING}json: cannot unmarshal array into Go value of type {HEAD}"),
        (VALIDATING, b"{}", f"{INVALID}webhook response was absent"),
        (VALIDATING, b'{"kind":"Pod","apiVersion":"v1"}', f"{INVALID}{WANTED} v1, Kind=Pod"),
        (VALIDATING, ABSENT, f"{INVALID}webhook response was absent"),
        (VALIDATING, review(uid="other", allowed=True), f'{INVALID}expected response.uid="uid-1", got "other"'),
        (VALIDATING, review(uid="uid-1", allowed="yes"), f"{CALL}json: cannot unmarshal string into {FIELD}.allowed of type bool"),
        (VALIDATING, review(uid="uid-1", allowed=True, patch=PATCH), f"{INVALID}validating webhook may not return response.patch"),
        (
            VALIDATING,
            review(uid="uid-1", allowed=True, patchType="JSONPatch"),
            f"{INVALID}validating webhook may not return response.patchType",
        ),
        (MUTATING, review(uid="uid-1", allowed=True, patch=PATCH), f"{INVALID}webhook returned response.patch but not response.patchType"),
        (
            MUTATING,
            review(uid="uid-1", allowed=True, patchType="JSONPatch"),
            f"{INVALID}webhook returned response.patchType but not response.patch",
        ),
        (MUTATING, review(uid="uid-1", allowed=True, patchType="Merge", patch=ADDS), f'{INVALID}unsupported patch type "Merge"'),
        (MUTATING, review(uid="uid-1", allowed=True, patchType="JSONPatch", patch="%%"), f"{CALL}illegal base64 data at input byte 0"),
        (
            MUTATING,
            review(uid="uid-1", allowed=True, patchType="JSONPatch", patch=base64.b64encode(b"{").decode()),
            "received undecodable patch in webhook response: unexpected end of JSON input",
        ),
    ],
)
async def test_an_answer_that_is_none_fails_by_the_failure_policy(resource: str, answer: bytes, why: str) -> None:
    world = World()
    world.configure(resource, "c", webhook("w.example.com"))
    world.answers["https://w.example.com"] = lambda request: answer
    found = await world.refused()
    assert found["message"] == f'Internal error occurred: failed calling webhook "w.example.com": {why}'
    assert (found["code"], found["reason"]) == (500, "InternalError")
    world.configure(resource, "c", webhook("w.example.com", failurePolicy="Ignore"))
    await world.write()
    kind = "mutation" if resource == MUTATING else "validating"
    assert world.annotations[f"failed-open.{kind}.webhook.admission.k8s.io/round_0_index_0"] == "w.example.com"


async def test_a_webhook_that_cannot_be_reached_fails_by_the_failure_policy() -> None:
    world = World()

    def unreachable(request: dict[str, Any]) -> bytes:
        raise CallError('Post "https://w.example.com/?timeout=10s": dial tcp: connect: connection refused')

    world.answers["https://w.example.com"] = unreachable
    world.configure(MUTATING, "c", webhook("w.example.com"))
    assert (await world.refused())["message"] == (
        'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: '
        'Post "https://w.example.com/?timeout=10s": dial tcp: connect: connection refused'
    )
    world.configure(MUTATING, "c", webhook("w.example.com", failurePolicy="Ignore"))
    await world.write()


async def test_a_patch_that_does_not_apply_is_the_servers_fault_whatever_the_policy() -> None:
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com", failurePolicy="Ignore"))
    world.answers["https://m.example.com"] = lambda request: add("/spec/none/a", "1")
    found = await world.refused()
    assert found["code"] == 500 and 'doc is missing path: "/spec/none/a"' in found["message"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "add", "path": "/x/y", "value": 1}, 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        ({"op": "remove", "path": "/data"}, "error in remove for path: '/data': Unable to remove nonexistent key: data: missing value"),
        ({"op": "test", "path": "/metadata/name", "value": "z"}, "testing value /metadata/name failed: test failed"),
    ],
)
async def test_why_a_patch_does_not_apply_is_told_as_a_real_server_tells_it(operation: dict[str, Any], why: str) -> None:
    """Recorded from kube-apiserver 1.20 with the same webhook."""
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com"))
    world.answers["https://m.example.com"] = lambda request: patch(operation)
    assert (await world.refused())["message"] == f"Internal error occurred: {why}"


async def test_a_webhook_does_not_move_an_object_to_another_namespace() -> None:
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com"))
    world.answers["https://m.example.com"] = lambda request: add("/metadata/namespace", "elsewhere")
    found = await world.refused()
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert (found["code"], found["message"]) == (400, why)


async def test_a_patch_of_what_is_deleted_is_refused() -> None:
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com"))
    world.answers["https://m.example.com"] = lambda request: add("/metadata/labels", {})
    found = await world.refused(operation=Operation.DELETE)
    why = 'admission webhook "m.example.com" attempted to modify the object, which is not supported for this operation'
    assert found["message"] == f"Internal error occurred: {why}"
    assert world.asked[0][1]["object"] is None and world.asked[0][1]["oldObject"]["metadata"]["name"] == "a"


async def test_dry_run_reaches_only_webhooks_without_side_effects() -> None:
    world = World()
    world.configure(VALIDATING, "c", webhook("v.example.com", sideEffects="NoneOnDryRun"))
    world.answers["https://v.example.com"] = lambda request: ALLOW
    await world.write(dry_run=True)
    assert world.asked[0][1]["dryRun"] is True
    world.configure(VALIDATING, "c", webhook("v.example.com", sideEffects="Some"))
    found = await world.refused(dry_run=True)
    assert (found["code"], found["message"]) == (400, 'admission webhook "v.example.com" does not support dry run')


async def test_v1beta1_is_spoken_where_it_comes_first_and_is_less_strict() -> None:
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com", admissionReviewVersions=["v2", "v1beta1", "v1"]))
    body = base64.b64encode(orjson.dumps([{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}])).decode()
    world.answers["https://m.example.com"] = lambda request: orjson.dumps(
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": {"uid": "", "allowed": True, "patch": body}}
    )
    written = await world.write()
    assert written.object is not None and written.object["metadata"]["labels"] == {"a": "1"}


async def test_warnings_and_audit_annotations_are_handed_on() -> None:
    world = World()
    world.configure(MUTATING, "c", webhook("m.example.com"))
    world.answers["https://m.example.com"] = lambda request: {
        **add("/metadata/labels", {"a": "1"}), "warnings": ["w1", "w2"], "auditAnnotations": {"k": "v"}
    }  # fmt: skip
    written = await world.write()
    assert written.warnings == ["w1", "w2"]
    assert world.annotations["m.example.com/k"] == "v"
    said = orjson.loads(world.annotations["mutation.webhook.admission.k8s.io/round_0_index_0"])
    assert said == {"configuration": "c", "webhook": "m.example.com", "mutated": True}
    said = orjson.loads(world.annotations["patch.webhook.admission.k8s.io/round_0_index_0"])
    assert said["patch"] == [{"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}] and said["patchType"] == "JSONPatch"


async def test_configurations_count_from_the_moment_they_change() -> None:
    world = World()
    await world.write()
    world.configure(VALIDATING, "c", webhook("v.example.com"))
    world.answers["https://v.example.com"] = lambda request: {"allowed": False}
    await world.refused()
    world.forget(VALIDATING, "c")
    await world.write()


async def test_webhooks_are_not_asked_about_webhooks() -> None:
    world = World()
    everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
    world.configure(VALIDATING, "c", webhook("v.example.com", rules=everything))
    await world.write({"metadata": {"name": "a"}}, resource=("admissionregistration.k8s.io", "v1", VALIDATING))
    assert world.asked == []


async def test_conditions_decide_last() -> None:
    world = World()
    world.configure(VALIDATING, "c", webhook("v.example.com", matchConditions=[{"name": "n", "expression": "false"}]))
    await world.write()
    assert world.asked == []
    world.configure(VALIDATING, "c", webhook("v.example.com", matchConditions=[{"name": "y", "expression": "true"}]))
    world.answers["https://v.example.com"] = lambda request: ALLOW
    await world.write()
    assert world.order() == ["v.example.com"]
