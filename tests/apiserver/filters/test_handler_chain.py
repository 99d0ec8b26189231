"""The whole chain in process: what each filter does to a request and its answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from apiserver.audit import policy
from apiserver.audit.auditor import Auditor, Output
from apiserver.audit.sinks import Losses
from apiserver.authentication.anonymous import AnonymousAuthenticator
from apiserver.authentication.bearer import BearerTokenAuthenticator, TokenUnion
from apiserver.authentication.token_file import TokenFileAuthenticator, parse_token_file
from apiserver.authentication.union import UnionAuthenticator
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.union import build_authorizer
from apiserver.filters.asgi import Message, Receive, Scope, Send
from apiserver.filters.request_id import new_audit_id
from apiserver.handler_chain import HandlerChain, build_handler_chain
from apiserver.machinery import status
from apiserver.request.request_context import SCOPE_KEY, RequestContext, RequestInfo
from apiserver.schemas import protobuf

TOKENS = 'admin,admin,1,"system:masters"\nalice,alice,2,devs\n'


def resolve(method: str, path: str, query: Any) -> RequestInfo:
    parts = path.strip("/").split("/")
    if parts[0] != "api" or len(parts) < 5:
        return RequestInfo(is_resource_request=False, path=path, verb=method.lower())
    verb = {"GET": "get" if len(parts) > 5 else "list", "POST": "create", "DELETE": "delete"}[method]
    if "watch" in query:
        verb = "watch"
    name = parts[5] if len(parts) > 5 else ""
    return RequestInfo(is_resource_request=True, path=path, verb=verb, version="v1", namespace=parts[3], resource=parts[4], name=name)


class Handler:
    """Answers 200 with ``ok``, or does what a test says."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.start_first = False
        self.warnings: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: RequestContext = scope[SCOPE_KEY]
        self.contexts.append(context)
        for text in self.warnings:
            context.warn(text)
        if self.start_first:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Answer:
    def __init__(self, messages: list[Message]) -> None:
        self.status = messages[0]["status"]
        self.headers: list[tuple[bytes, bytes]] = list(messages[0]["headers"])
        self.body = b"".join(m.get("body", b"") for m in messages[1:])

    def header(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Lines:
    """An audit sink."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines

    def put(self, event: bytes) -> bool:
        self._lines.append(event)
        return True

    def close(self) -> None:
        pass


class World:
    def __init__(self, **limits: Any) -> None:
        self.handler = Handler()
        self.data = RbacData()
        self.lines: list[bytes] = []
        tokens = TokenUnion([TokenFileAuthenticator(parse_token_file(TOKENS))])
        self.chain: HandlerChain = build_handler_chain(
            self.handler,
            resolve=resolve,
            authenticator=UnionAuthenticator([BearerTokenAuthenticator(tokens)], AnonymousAuthenticator()),
            authorizer=build_authorizer(["RBAC"], {"RBAC": RbacAuthorizer(self.data)}),
            auditor=Auditor(policy.everything(), [Output(sink=Lines(self.lines))], Losses(), lambda: 1_700_000_000.0),
            **({"max_requests_inflight": 10, "max_mutating_requests_inflight": 10, "request_timeout_seconds": 60.0} | limits),
        )

    def grant(self, verbs: list[str], resources: list[str], groups: list[str] | None = None) -> None:
        rules = [{"verbs": verbs, "apiGroups": groups or [""], "resources": resources}]
        self.data.object_changed("clusterroles", "", "r", {"rules": rules})
        subjects = [{"kind": "User", "name": "alice"}]
        self.data.object_changed("clusterrolebindings", "", "b", {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects})

    async def call(self, do: str, user: str = "", query: str = "", headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        method, path = do.split()
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        if user:
            raw.append((b"authorization", f"Bearer {user}".encode()))
        scope: Scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": raw}
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        await self.chain(scope, receive, send)
        return Answer(sent)


LIST = "GET /api/v1/namespaces/ns/pods"
CREATE = "POST /api/v1/namespaces/ns/pods"


async def test_an_administrator_gets_through_and_the_answer_carries_its_id() -> None:
    world = World()
    answer = await world.call(LIST, "admin", headers=(("Audit-ID", "my-id"),))
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.header(b"audit-id") == [b"my-id"]
    assert answer.header(b"cache-control") == [b"no-cache, private"]
    [context] = world.handler.contexts
    assert context.user is not None and context.user.groups == ("system:masters", "system:authenticated")


@pytest.mark.parametrize("sent", ["x" * 200, "a\tb"])
async def test_an_unusable_audit_id_is_replaced(sent: str) -> None:
    [value] = (await World().call(LIST, "admin", headers=(("Audit-ID", sent),))).header(b"audit-id")
    assert len(value) == 36 and value != sent.encode()


def test_ids_are_random_uuids() -> None:
    import uuid

    ids = {new_audit_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(uuid.UUID(i).version == 4 and uuid.UUID(i).variant == uuid.RFC_4122 and str(uuid.UUID(i)) == i for i in ids)


async def test_a_wrong_token_is_unauthorized() -> None:
    answer = await World().call(LIST, "wrong")
    assert answer.status == 401
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert answer.header(b"audit-id")


async def test_refusals_say_what_kubernetes_says() -> None:
    world = World()
    answer = await world.call(LIST, "alice")
    assert answer.status == 403
    what = 'User "alice" cannot list resource "pods" in API group "" in the namespace "ns"'
    assert answer.json["message"] == f"pods is forbidden: {what}"
    assert answer.json["details"] == {"kind": "pods"}
    answer = await world.call("GET /metrics")
    assert answer.json["message"] == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert answer.json["details"] == {}
    assert world.handler.contexts == []


DEADLINES = [("", 60), ("10m", 60), ("1s", 1), ("1m0.5s", 60), ("0", 60), ("250ms", 0.25), ("-5s", 60)]


@pytest.mark.parametrize(("asked", "seconds"), DEADLINES)
async def test_deadlines(asked: str, seconds: float) -> None:
    world = World()
    await world.call(LIST, "admin", query=f"timeout={asked}")
    [context] = world.handler.contexts
    assert context.deadline is not None
    assert context.deadline - context.received_at == pytest.approx(seconds)


@pytest.mark.parametrize("asked", ["abc", "5", "1s2", "s", "1x", "1" * 100 + "s"])
async def test_a_bad_timeout_is_a_bad_request(asked: str) -> None:
    answer = await World().call(LIST, "admin", query=f"timeout={asked}")
    assert answer.status == 400
    assert answer.json["message"].startswith("invalid timeout specified in the request URL")


async def test_a_handler_past_its_deadline_is_a_timeout() -> None:
    world = World()
    world.handler.gate = asyncio.Event()
    answer = await world.call(LIST, "admin", query="timeout=1ms")
    assert answer.status == 504
    assert answer.json["reason"] == "Timeout"
    assert "request did not complete within" in answer.json["message"]


async def test_a_request_that_is_cancelled_from_outside_ends_without_an_answer() -> None:
    world = World()
    world.handler.gate = asyncio.Event()
    task = asyncio.create_task(world.call(LIST, "admin"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    world.handler.gate = None
    assert (await world.call(LIST, "admin")).status == 200


async def test_a_handler_may_wait_many_times_within_its_deadline() -> None:
    world = World()
    seen: list[int] = []

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        for n in range(5):
            await asyncio.sleep(0)
            seen.append(n)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except TimeoutError:
            seen.append(99)
        await world.handler(scope, receive, send)

    world.chain._handler = waits
    assert (await world.call(LIST, "admin")).status == 200
    assert seen == [0, 1, 2, 3, 4, 99]


async def test_watches_have_no_deadline() -> None:
    world = World()
    await world.call(LIST, "admin", query="watch=1&timeout=1s")
    assert world.handler.contexts[0].deadline is None


async def test_a_fault_is_a_500_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.handler.error = ZeroDivisionError("secret detail")
    answer = await world.call(LIST, "admin")
    assert answer.status == 500 and b"secret detail" not in answer.body
    assert answer.json["reason"] == "InternalError"
    assert "secret detail" in caplog.text
    world.handler.error = None
    assert (await world.call(LIST, "admin")).status == 200


async def test_a_fault_in_the_middle_of_an_answer_breaks_it_off() -> None:
    world = World()
    world.handler.start_first = True
    world.handler.error = ZeroDivisionError()
    with pytest.raises(status.StatusError):
        await world.call(LIST, "admin")


async def test_a_handler_may_raise_its_status() -> None:
    world = World()
    world.handler.error = status.too_many_requests("slower", 7)
    answer = await world.call(LIST, "admin")
    assert answer.status == 429 and answer.header(b"retry-after") == [b"7"]


async def test_a_refusal_comes_in_the_type_that_the_client_takes_and_in_any_case() -> None:
    """Also where a refusal holds what protobuf has no place for, or the client takes nothing that there is."""
    world = World()
    world.handler.error = status.conflict("", "pods", "a", "busy")
    kept = ("Accept", "application/vnd.kubernetes.protobuf")
    answer = await world.call("GET /api/v1/namespaces/n/pods/a", "admin", headers=(kept,))
    assert answer.header(b"content-type") == [b"application/vnd.kubernetes.protobuf"]
    assert protobuf.decode(answer.body)["reason"] == "Conflict"
    world.handler.error = status.StatusError(status.failure(409, "Conflict", "busy", {"retryAfterSeconds": "soon"}))
    answer = await world.call("GET /api/v1/namespaces/n/pods/a", "admin", headers=(kept,))
    assert (answer.header(b"content-type"), answer.json["message"]) == ([b"application/json"], "busy")
    answer = await world.call("GET /api/v1/namespaces/n/pods/a", "admin", headers=(("Accept", "text/html"),))
    assert (answer.status, answer.header(b"content-type"), answer.json["message"]) == (409, [b"application/json"], "busy")


async def test_requests_in_flight_are_limited_by_kind_and_seats_come_back() -> None:
    world = World(max_requests_inflight=1, max_mutating_requests_inflight=1)
    world.grant(["*"], ["pods"])
    gate = world.handler.gate = asyncio.Event()
    reading = asyncio.create_task(world.call(LIST, "alice"))
    await asyncio.sleep(0)
    refused = await world.call(LIST, "alice")
    assert refused.status == 429 and refused.header(b"retry-after") == [b"1"]
    writing = asyncio.create_task(world.call(CREATE, "alice"))
    watching = asyncio.create_task(world.call(LIST, "alice", query="watch=1"))
    master = asyncio.create_task(world.call(LIST, "admin"))
    await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.gather(reading, writing, watching, master)
    assert [a.status for a in answers] == [200] * 4
    assert (await world.call(LIST, "alice")).status == 200


async def test_seats_come_back_from_refused_and_failed_requests() -> None:
    world = World(max_requests_inflight=1)
    for _ in range(3):
        assert (await world.call(LIST, "alice")).status == 403
    world.handler.error = ValueError()
    world.grant(["*"], ["pods"])
    for _ in range(3):
        assert (await world.call(LIST, "alice")).status == 500


async def test_warnings_become_headers_once_each() -> None:
    world = World()
    world.handler.warnings = ["old API", 'say "no" \\ now', "old API", "bad\ncontrol"]
    answer = await world.call(LIST, "admin")
    assert answer.header(b"warning") == [b'299 - "old API"', b'299 - "say \\"no\\" \\\\ now"']


async def test_too_many_warnings_are_cut() -> None:
    world = World()
    world.handler.warnings = [f"{n:03}" + "x" * 997 for n in range(100)]
    values = (await world.call(LIST, "admin")).header(b"warning")
    assert 1 < len(values) < 20 and all(len(v) < 300 for v in values)


async def test_impersonation_acts_with_the_rights_of_the_other() -> None:
    world = World()
    answer = await world.call(LIST, "admin", headers=(("Impersonate-User", "bob"),))
    assert answer.json["message"].startswith('pods is forbidden: User "bob" cannot list')
    groups = (("Impersonate-User", "bob"), ("Impersonate-Group", "devs"), ("Impersonate-Group", "system:masters"))
    extra = (("Impersonate-Uid", "7"), ("Impersonate-Extra-acme.com%2Fproject", "x"))
    assert (await world.call(LIST, "admin", headers=groups + extra)).status == 200
    context = world.handler.contexts[-1]
    assert context.user is not None and context.original_user is not None
    assert context.original_user.name == "admin"
    assert context.user.groups == ("devs", "system:masters", "system:authenticated")
    assert (context.user.uid, context.user.extra) == ("7", {"acme.com/project": ("x",)})


async def test_impersonation_needs_rights_and_a_user() -> None:
    world = World()
    refused = await world.call(LIST, "alice", headers=(("Impersonate-User", "bob"),))
    assert refused.status == 403
    what = 'User "alice" cannot impersonate resource "users" in API group "" at the cluster scope'
    assert refused.json["message"] == f'users "bob" is forbidden: {what}'
    refused = await world.call(LIST, "alice", headers=(("Impersonate-User", "system:serviceaccount:x:robot"),))
    what = 'User "alice" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "x"'
    assert refused.json["message"] == f'serviceaccounts "robot" is forbidden: {what}'
    bad = await world.call(LIST, "admin", headers=(("Impersonate-Group", "dev"),))
    assert bad.status == 400 and bad.json["message"].endswith("without impersonating a user")


async def test_a_right_to_impersonate_a_user_does_not_give_groups() -> None:
    world = World()
    world.grant(["impersonate"], ["users"])
    answer = await world.call(LIST, "alice", headers=(("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")))
    assert answer.status == 403 and 'groups "system:masters" is forbidden' in answer.json["message"]


async def test_every_request_is_in_the_audit_log_without_its_credential() -> None:
    world = World()
    await world.call("GET /api/v1/namespaces/ns/pods/p", "alice", query="timeout=5s")
    [line] = world.lines
    event = json.loads(line)
    assert event["user"] == {"username": "alice", "uid": "2", "groups": ["devs", "system:authenticated"]}
    assert event["objectRef"] == {"resource": "pods", "namespace": "ns", "name": "p", "apiVersion": "v1"}
    assert event["responseStatus"]["code"] == 403
    assert event["requestURI"] == "/api/v1/namespaces/ns/pods/p?timeout=5s"
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert b"Bearer" not in line


@pytest.mark.parametrize("query", ["a=1&b=2&a=3", "watch", "watch=", "&&a=1", "a=b=c", "a=1%2C2&b=x+y", "=1"])
async def test_queries_are_read_as_the_standard_library_reads_them(query: str) -> None:
    world = World()
    await world.call("GET /x", "admin", query=query)
    assert world.handler.contexts[0].query == parse_qs(query, keep_blank_values=True)


@pytest.mark.parametrize("query", ["x;y=1", "a=%zz", "%zz=1", "a=%4", "b=%"])
async def test_fields_that_are_none_are_passed_over(query: str) -> None:
    """As Go does, which takes neither semicolons nor broken escapes."""
    world = World()
    await world.call("GET /x", "admin", query=f"{query}&kept=%41")
    assert world.handler.contexts[0].query == {"kept": ["A"]}


async def test_too_many_parameters_are_a_bad_request() -> None:
    answer = await World().call(LIST, "admin", query="&".join(f"a{n}=1" for n in range(1000)))
    assert answer.status == 400
