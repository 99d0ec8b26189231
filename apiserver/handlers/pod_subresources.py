"""What is particular to pods: binding, eviction, and the streams that only a real kubelet has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.admission.interfaces import Operation
from apiserver.authentication.user import UserInfo
from apiserver.handlers import response
from apiserver.handlers import scope as scopes
from apiserver.handlers.create import check_namespace
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import field_errors, go_json, labels, objects, status, timestamps
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore.interface import Selection
from apiserver.registry import object_deletion
from apiserver.registry.deletion import DeleteOptions, validate_options
from apiserver.registry.environment import Write
from apiserver.registry.registry import Registry
from apiserver.registry.store import Preconditions, Store
from apiserver.request import body as request_body
from apiserver.request.body import Receive
from apiserver.request.negotiation import negotiate
from apiserver.request.options import META_GROUP, integer, text, write_options
from apiserver.request.request_context import RequestContext

_BINDING = scopes.kind_info("", "v1", "Binding")
_EVICTION = scopes.kind_info("policy", "v1", "Eviction")

STREAMS = frozenset(("log", "exec", "attach", "portforward", "proxy"))

#: Pods that a disruption budget remembers as being evicted (upstream's MaxDisruptedPodSize).
DISRUPTED_PODS_MAX = 2_000

#: of an eviction whose pod changes meanwhile (upstream's EvictionsRetry, without its pauses)
EVICTION_ATTEMPTS_MAX = 20

#: after which an eviction may be tried again whose budget's controller has not caught up yet
PROCESSING_SECONDS = 10

_SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."


async def stream(scope: ResourceScope, context: RequestContext) -> None:
    """logs, exec, attach, port-forward: nodes here are hollow and run no containers, which is all that can be said."""
    info = context.info
    store = scope.store
    if info.subresource == "log":
        _check_log_options(context.query, info.name)
    else:
        await _admit_connection(scope, context)
    found = store.decode(await store.get(info.namespace if scope.info.namespaced else "", info.name))
    if scope.info.resource != "pods":
        raise status.service_unavailable(f"{scope.info.resource} {info.name!r} cannot be proxied to: nothing listens behind it")
    if info.subresource in ("log", "exec", "attach"):
        _check_container(found, context.query_value("container"))
    if info.subresource != "proxy" and not objects.get(found, "spec", "nodeName"):
        raise status.bad_request(f"pod {info.name} does not have a host assigned")
    what = {"log": "has no logs", "exec": "cannot run a command", "attach": "cannot be attached to"}
    why = what.get(info.subresource, "cannot be connected to")
    raise StatusError(
        status.failure(
            501,
            "NotImplemented",
            f'pod "{info.name}" {why}: the nodes of this cluster are hollow, they run no containers',
            {"name": info.name, "kind": "pods"},
        )
    )


async def _admit_connection(scope: ResourceScope, context: RequestContext) -> None:
    """CONNECT: what the query asks for is the object. Raises StatusError."""
    info = context.info
    found = next(sub for sub in scope.info.subresources if sub.name == info.subresource)
    options: Object = {"kind": found.kind, "apiVersion": "v1"}
    for name, values in context.query.items():
        kind = _CONNECT_OPTIONS.get(name)
        if kind is bool:
            options[name] = values[0] in ("", "1", "true", "True", "TRUE", "t", "T")
        elif kind is int:
            options[name] = [int(value) for value in values if value.isascii() and value.isdigit()]
        elif kind is not None:
            options[name] = values if kind is list else values[0]
    namespace = info.namespace if scope.info.namespaced else ""
    write = Write(user=user_of(context), warn=context.warn, annotate=context.annotate)
    await scope.store.admit_apart(Operation.CONNECT, write, namespace, info.name, options, None, info.subresource)


#: the fields of PodExecOptions and its like, and what they hold
_CONNECT_OPTIONS: dict[str, type] = {
    "command": list,
    "container": str,
    "path": str,
    "ports": int,
    "stderr": bool,
    "stdin": bool,
    "stdout": bool,
    "tty": bool,
}


def user_of(context: RequestContext) -> UserInfo:
    assert context.user is not None, "the chain authenticates"
    return context.user


def _check_log_options(query: Mapping[str, list[str]], name: str) -> None:
    """PodLogOptions: numbers and moments that are none (400), then what does not go together (422)."""
    since, limit, tail = (integer(query, option) for option in ("sinceSeconds", "limitBytes", "tailLines"))
    moment = text(query, "sinceTime")
    if moment:
        try:
            timestamps.parse_time(moment)
        except ValueError as error:
            shown = go_json.quote(moment)
            why = f'parsing time {shown} as "2006-01-02T15:04:05Z07:00": cannot parse {shown} as "2006"'
            raise status.bad_request(why) from error
    errors = []
    if tail is not None and tail < 0:
        errors.append(field_errors.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(field_errors.invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and moment:
        errors.append(field_errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(field_errors.invalid("sinceSeconds", since, "must be greater than 0"))
    if errors:
        raise status.invalid("", "PodLogOptions", name, errors)


def _check_container(pod: Object, asked: str) -> None:
    """Raises 400 where the pod has no such container, or several and none is asked for."""
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    if not asked and len(spec["containers"]) == 1:
        return
    containers = [c["name"] for kind in ("initContainers", "containers", "ephemeralContainers") for c in spec.get(kind) or ()]
    if not asked:
        raise status.bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]")
    if asked not in containers:
        raise status.bad_request(f"container {asked} is not valid for pod {name}")


async def bind(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    """The scheduler's decision: sets spec.nodeName once, and the PodScheduled condition."""
    negotiated = negotiate(context.headers, context.query, list_of_objects=False)
    info = context.info
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = write_options(context.query, "CreateOptions")
    binding = await scopes.decode_apart(scope.schemas, _BINDING, "Binding", body, options, context)
    said = binding["metadata"].get("name") or ""
    if info.name and said != info.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    await assign(scope, scope.write_of(context, options, "CreateOptions"), info.namespace, said, binding)
    answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    await response.send_object(send, context, 201, negotiated, answer)


async def assign(scope: ResourceScope, write: Write, namespace: str, name: str, binding: Object) -> None:
    """Put a pod on the node that ``binding`` names. Nobody comes to own what this sets. Raises 400, 404, 409, and, as upstream, 500 for
    what is wrong with the target."""
    store = scope.store
    check_namespace(binding, namespace)
    target, sent = binding.get("target") or {}, binding["metadata"]
    errors = []
    if target.get("kind", "Node") not in ("", "Node"):
        errors.append(field_errors.not_supported("target.kind", target.get("kind"), ["Node", "<empty>"]))
    if not target.get("name"):
        errors.append(field_errors.required("target.name", ""))
    if errors:
        # upstream answers 500 with the same lines; what the client did wrong is its own fault here
        raise status.invalid("", "Binding", name, errors)
    if not name:
        raise status.bad_request("Name parameter required.")
    write = await store.admit_apart(Operation.CREATE, write, namespace, name, binding, None, "binding")
    sent, target = binding["metadata"], binding.get("target") or {}

    async def build(pod: Object) -> Object:
        metadata, spec = pod["metadata"], pod["spec"]
        if metadata.get("deletionTimestamp"):
            raise status.conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise status.conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise status.conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = target["name"]
        for field in ("annotations", "labels"):
            if sent.get(field):
                metadata[field] = {**(metadata.get(field) or {}), **sent[field]}
        pod["status"] = with_condition(pod.get("status") or {}, "PodScheduled", "True", store.env.clock.text())
        return pod

    wanted = Preconditions(uid=sent.get("uid") or None, resource_version=sent.get("resourceVersion") or None)
    await store.update(write, namespace, name, build, subresource="binding", manages_fields=False, preconditions=wanted)


def with_condition(pod_status: Object, type_: str, value: str, now: str) -> Object:
    """A status in which one condition has ``value``; its time moves only when the value does."""
    found: dict[str, Any] = {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": now}
    conditions = []
    for condition in pod_status.get("conditions") or []:
        if condition.get("type") != type_:
            conditions.append(condition)
        elif condition.get("status") == value:
            found["lastTransitionTime"] = condition.get("lastTransitionTime", now)
    return {**pod_status, "conditions": [*conditions, found]}


async def evict(scope: ResourceScope, registry: Registry, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    """A delete that asks the pod's disruption budget first."""
    negotiated = negotiate(context.headers, context.query, list_of_objects=False)
    info, store = context.info, scope.store
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = write_options(context.query, "CreateOptions")
    eviction = await scopes.decode_apart(scope.schemas, _EVICTION, "Eviction", body, options, context)
    if eviction["metadata"].get("name", "") != info.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    deleting = _delete_options(eviction.get("deleteOptions") or {}, options.dry_run)
    if errors := validate_options(deleting):
        raise status.invalid(META_GROUP, "DeleteOptions", "", errors)
    assert context.user is not None, "the chain authenticates"
    write = Write(
        user=context.user, dry_run=bool(deleting.dry_run), options=deleting.as_object(), warn=context.warn, annotate=context.annotate
    )
    write = await store.admit_apart(Operation.CREATE, write, info.namespace, info.name, eviction, None, "eviction")
    for attempt in range(EVICTION_ATTEMPTS_MAX):
        pod = store.decode(await store.get(info.namespace, info.name))
        told, spared = deleting.copy(), ""
        if not _needs_no_budget(pod):
            spared = await _spend_budget(registry, write, info.namespace, pod, store.env.clock.text())
        # what may go because it does not run, or is not ready, must not have become so meanwhile
        guarded = deleting.resource_version is None and (spared or _may_yet_run(pod))
        if guarded:
            told.resource_version = pod["metadata"]["resourceVersion"]
        try:
            await object_deletion.delete(store, write, info.namespace, info.name, told)
            break
        except StatusError as error:
            if error.code != 409 or not guarded:
                raise
            if spared:
                raise _too_many(_still_processed(spared), PROCESSING_SECONDS) from error
            if attempt + 1 == EVICTION_ATTEMPTS_MAX:
                raise
    answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    await response.send_object(send, context, 201, negotiated, answer)


def _delete_options(said: Object, dry_run: bool) -> DeleteOptions:
    preconditions = said.get("preconditions") or {}
    return DeleteOptions(
        grace_period_seconds=said.get("gracePeriodSeconds"),
        orphan_dependents=said.get("orphanDependents"),
        propagation_policy=said.get("propagationPolicy"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=list(said.get("dryRun") or (["All"] if dry_run else [])),
    )


def _needs_no_budget(pod: Object) -> bool:
    """Evicting what does not run, or is on its way out, disrupts nothing."""
    return objects.get(pod, "status", "phase") in ("Succeeded", "Failed", "Pending") or objects.is_being_deleted(pod)


def _may_yet_run(pod: Object) -> bool:
    return objects.get(pod, "status", "phase") == "Pending" and not objects.is_being_deleted(pod)


def _still_processed(budget: str) -> str:
    return f"The disruption budget {budget} is still being processed by the server."


async def _spend_budget(registry: Registry, write: Write, namespace: str, pod: Object, now: str) -> str:
    """Raises StatusError 429 where nothing is left. The name of the budget that nothing was taken from, since the pod is not ready and it
    does without; "" else."""
    budgets: Store = registry.stored("policy", "poddisruptionbudgets")
    found = await budgets.list_objects(Selection(namespace=namespace))
    matching = []
    for stored in found.objects:
        budget = budgets.decode(stored)
        if labels.from_label_selector(objects.get(budget, "spec", "selector")).matches(objects.labels(pod)):
            matching.append(budget)
    if not matching:
        return ""
    if len(matching) > 1:
        raise StatusError(status.failure(500, "", _SEVERAL_BUDGETS))
    budget = matching[0]
    name, pod_name = budget["metadata"]["name"], pod["metadata"]["name"]
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in objects.get(pod, "status", "conditions", default=[]))
    if not ready and _tolerates_unready(budget):
        return str(name)

    async def spend(current: Object) -> Object:
        found_status = current.get("status") or {}
        if found_status.get("observedGeneration", 0) < current["metadata"].get("generation", 0):
            raise _too_many(_still_processed(name), PROCESSING_SECONDS)
        allowed = found_status.get("disruptionsAllowed", 0)
        disrupted = found_status.get("disruptedPods") or {}
        if allowed < 0:
            raise status.forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
        if len(disrupted) > DISRUPTED_PODS_MAX:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise status.forbidden("policy", "poddisruptionbudget", name, why)
        if allowed == 0:
            healthy, desired = found_status.get("currentHealthy", 0), found_status.get("desiredHealthy", 0)
            raise _too_many(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        spent = {**found_status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod_name: now}}
        if allowed == 1:
            spent["conditions"] = _none_allowed(found_status, now)
        current["status"] = spent
        return current

    await budgets.update(write, namespace, name, spend, subresource="status")
    return ""


def _tolerates_unready(budget: Object) -> bool:
    """An unready pod may go when the budget says so, or when enough others are healthy."""
    if objects.get(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    found = budget.get("status") or {}
    return bool(found.get("desiredHealthy", 0) > 0 and found.get("currentHealthy", 0) >= found.get("desiredHealthy", 0))


def _none_allowed(budget_status: Object, now: str) -> list[Object]:
    """The conditions of a budget of which nothing is left. A time moves only with the status."""
    conditions = []
    since = now
    for condition in budget_status.get("conditions") or []:
        if condition.get("type") != "DisruptionAllowed":
            conditions.append(condition)
        elif condition.get("status") == "False":
            since = condition.get("lastTransitionTime", now)
    found = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget_status.get("observedGeneration", 0),
        "lastTransitionTime": since,
    }
    return [*conditions, found]


def _too_many(why: str, retry_after_seconds: int = 0) -> StatusError:
    error = status.too_many_requests(_WOULD_VIOLATE, retry_after_seconds)
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after_seconds:
        error.status["details"] = {**details, "retryAfterSeconds": retry_after_seconds}
    else:
        error.status["details"] = details
        error.headers.pop("Retry-After", None)
    return error
