"""The order in which a request passes the filters.

1. The context is made first, since whatever goes wrong later is told with its audit id.
2. ``request_info``: every later step speaks of verb, resource and namespace.
3. ``deadline`` before anything that may take time; a bad ``timeout`` is the client's fault whoever it is.
4. ``authentication``: from here on the request has a user.
5. ``impersonation`` before all that treats users differently: limits and rights are those of the user acted as.
6. ``flow_control`` before authorization, so that a flood costs as little as possible; after authentication, since it is about users.
7. ``authorization`` last: a handler never runs for somebody who may not.

On the way out: metrics and the audit log see every answer, also those of the steps. The steps are sync and cheap, so the chain is a plain
loop in one ASGI callable; only the handler waits, under the deadline. The exceptions: a request may have to wait for its turn
(``apiserver.flowcontrol``), and before a refusal for who somebody is or what he may, a server whose caches may be behind other servers'
writes catches up, and looks again.
"""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote_plus

from apiserver.authorization.authorizer import Authorizer
from apiserver.filters.asgi import ASGIApp, Message, Receive, Scope, Send
from apiserver.filters.authentication import Authentication, Authenticator
from apiserver.filters.authorization import Authorization, AuthorizationObserver
from apiserver.filters.deadline import Deadline, Limited
from apiserver.filters.flow_control import FlowControl, Limiter, Seat
from apiserver.filters.impersonation import Impersonation, ImpersonationObserver
from apiserver.filters.panic_recovery import recover
from apiserver.filters.request_id import audit_id_of
from apiserver.filters.response import Response
from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import SCOPE_KEY, RequestContext, RequestInfo
from apiserver.request.unanswered import Unanswered, settled

if TYPE_CHECKING:
    from apiserver.audit.auditor import Auditor

#: key of the ASGI scope under which the server puts the client's DER certificate, unverified
PEER_CERTIFICATE_KEY = "sampan.peer_certificate"
#: under which it puts the further certificates that the client sent along, a tuple
PEER_INTERMEDIATES_KEY = "sampan.peer_intermediates"
#: under which it puts a function without arguments that ends the connection at once
CUT_KEY = "sampan.cut"
#: under which it puts one that tells whether the client is gone
GONE_KEY = "sampan.gone"
#: parameters of a query; a request has a dozen at most, and each costs time to parse
QUERY_FIELDS_MAX = 256

ResolveRequestInfo = Callable[[str, str, Mapping[str, list[str]]], RequestInfo]


class RequestObserver(Protocol):
    def watch_flow_control(self, flow_control: Limiter) -> None:
        """Once, at the start: where the number of requests in flight is to be seen."""

    def request_done(self, context: RequestContext, seconds: float, response_bytes: int) -> None:
        """After each response; ``seconds`` it took."""


class IdentityObserver(AuthorizationObserver, Protocol):
    @property
    def impersonation(self) -> ImpersonationObserver: ...


class HandlerChain:
    def __init__(
        self,
        handler: ASGIApp,
        *,
        resolve: ResolveRequestInfo,
        authenticator: Authenticator,
        authorizer: Authorizer,
        flow_control: Limiter,
        request_timeout_seconds: float,
        observer: RequestObserver | None = None,
        auditor: Auditor | None = None,
        catch_up: Callable[[], Awaitable[bool]] | None = None,
        is_passed_on: Callable[[RequestInfo], bool] = lambda info: False,
        constrained_impersonation: bool = False,
        identity_metrics: IdentityObserver | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now``: a monotonic clock in seconds. ``catch_up`` brings what authenticator and authorizer look at up to date, and answers
        whether there was news. ``is_passed_on``: whether another server does the work of a request, which then takes no seat here."""
        self._catch_up = catch_up
        self._is_passed_on = is_passed_on
        self._handler = handler
        self._resolve = resolve
        self._deadline = Deadline(request_timeout_seconds)
        self._authentication = Authentication(authenticator)
        self._impersonation = Impersonation(
            authorizer,
            constrained=constrained_impersonation,
            observer=identity_metrics.impersonation if identity_metrics is not None else None,
            now=now,
        )
        self._flow_control = flow_control
        self._authorization = Authorization(authorizer, identity_metrics, now)
        self._observer = observer
        if observer is not None:
            observer.watch_flow_control(flow_control)
        self._auditor = auditor
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._handler(scope, receive, send)
            return
        # of a header that comes twice the first one counts, as with Go's servers
        headers = dict(reversed(scope["headers"]))
        query: dict[str, list[str]] = {}
        refusal: StatusError | None = None
        try:
            if scope["query_string"]:
                query = _parse_query(scope["query_string"])
            info = self._resolve(scope["method"], scope["path"], query)
        except StatusError as error:
            refusal, info = error, _unresolved(scope["path"], scope["method"])
        context = RequestContext(
            info=info,
            method=scope["method"],
            query=query,
            headers=headers,
            audit_id=audit_id_of(headers),
            received_at=self._now(),
            peer_certificate=scope.get(PEER_CERTIFICATE_KEY),
            peer_intermediates=scope.get(PEER_INTERMEDIATES_KEY, ()),
            raw_headers=scope["headers"],
        )
        scope[SCOPE_KEY] = context
        response = Response(send, context)
        seat: Seat | None = None
        try:
            try:
                if refusal is not None:
                    raise refusal
                self._deadline(context)
                try:
                    self._identify(context)
                except Unanswered:
                    await self._with_others(context, self._identify)
                except StatusError as error:
                    if not await self._has_news(error):
                        raise
                    await self._ask_others(context, self._identify)
                if self._auditor is not None:
                    receive = self._begin_audit(self._auditor, scope, context, receive)
                seat = self._flow_control.acquire(context, scope.get(GONE_KEY))
                if seat is not None:
                    if seat.waiter is not None:
                        await self._flow_control.wait(seat)
                    if context.info.verb == "watch":
                        # what counts of a watch is its beginning
                        response.on_start = functools.partial(self._flow_control.release, seat)
                try:
                    self._authorization(context)
                except Unanswered:
                    await self._with_others(context, self._authorization)
                except StatusError as error:
                    if not await self._has_news(error):
                        raise
                    await self._ask_others(context, self._authorization)
                if self._is_passed_on(info):
                    self._flow_control.release(seat)
                    seat = response.on_start = None
                handling = self._handler(scope, receive, response)
                if context.deadline is not None:
                    handling = Limited(cast(Coroutine[Any, Any, None], handling), context.deadline - self._now())
                await handling
            except StatusError as error:
                if self._auditor is not None and context.audit is None:
                    self._audit_refusal(self._auditor, scope, context, error)
                await _answer(scope, response, error)
            except Exception as error:
                # the outermost edge of a request: a fault in one must not end the others
                if context.audit is not None:
                    context.audit.panic = True
                await _answer(scope, response, recover(context, error))
            else:
                if response.started and not response.complete and CUT_KEY in scope:
                    # the watch of a reader that is too slow
                    scope[CUT_KEY]()
        finally:
            self._flow_control.release(seat)
            self._tell(scope, context, response)

    def _identify(self, context: RequestContext) -> None:
        self._authentication(context)
        self._impersonation(context, context.raw_headers)

    async def _with_others(self, context: RequestContext, step: Callable[[RequestContext], None]) -> None:
        try:
            await self._ask_others(context, step)
        except StatusError as error:
            if not await self._has_news(error):
                raise
            await self._ask_others(context, step)

    async def _ask_others(self, context: RequestContext, step: Callable[[RequestContext], None]) -> None:
        """A step whose answer other servers have. They get as long as the request has."""
        if context.deadline is None:
            await settled(lambda: step(context))
            return
        asking = settled(lambda: step(context))
        await Limited(asking, context.deadline - self._now())

    async def _has_news(self, error: StatusError) -> bool:
        """Whether a refusal may have come of caches that were behind: the account or the role was made through another server."""
        return error.code in (401, 403) and self._catch_up is not None and await self._catch_up()

    def _tell(self, scope: Scope, context: RequestContext, response: Response) -> None:
        seconds = self._now() - context.received_at
        if self._observer is not None:
            self._observer.request_done(context, seconds, response.bytes_sent)
        if self._auditor is not None and context.audit is not None:
            self._auditor.end(context.audit)

    def _begin_audit(self, auditor: Auditor, scope: Scope, context: RequestContext, receive: Receive) -> Receive:
        """``receive``, with what passes noted where that is wanted."""
        event = auditor.begin(context, _uri(scope), _source(scope), self._now() - context.received_at)
        if event is None:
            return receive
        context.audit = event
        if event.request_body is None:
            return receive

        async def noting() -> Message:
            message = await receive()
            event.note_request_bytes(message.get("body", b""))
            return message

        return noting

    def _audit_refusal(self, auditor: Auditor, scope: Scope, context: RequestContext, error: StatusError) -> None:
        """Of a request that came no further than to who asks. Where that is known, it was who he wants to be that was refused."""
        uri, source, age = _uri(scope), _source(scope), self._now() - context.received_at
        if context.user is not None:
            with contextlib.suppress(StatusError):  # it may have been the audit that refused it
                context.audit = auditor.begin(context, uri, source, age)
        elif context.deadline is not None or error.code == 401:
            auditor.refuse(context, uri, source, age, error)


def _uri(scope: Scope) -> str:
    uri: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    return f"{uri}?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else uri


def _source(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def _answer(scope: Scope, response: Response, error: StatusError) -> None:
    if response.started:
        # half an answer is out: ending the connection is the only way left to tell that it is not whole
        if CUT_KEY not in scope:
            raise error
        scope[CUT_KEY]()
        return
    await response.send_status(error)


def _parse_query(raw: bytes) -> dict[str, list[str]]:
    """Raises StatusError 400."""
    text = raw.decode("latin-1")
    if "%" not in text and "+" not in text and ";" not in text and text.count("&") < QUERY_FIELDS_MAX:
        # nothing is escaped, as in nearly every query of a client: five times as fast as the general way
        query: dict[str, list[str]] = {}
        for field in text.split("&"):
            if field:
                name, _, value = field.partition("=")
                query.setdefault(name, []).append(value)
        return query
    if text.count("&") >= QUERY_FIELDS_MAX:
        raise status.bad_request(f"the query of the request URL is not usable: it has more than {QUERY_FIELDS_MAX} fields")
    query = {}
    for field in text.split("&"):
        # as Go reads queries: a field with a bad escape or a semicolon is as good as absent
        if not field or ";" in field or _BAD_ESCAPE(field):
            continue
        name, _, value = field.partition("=")
        query.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return query


_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})").search


def _unresolved(path: str, method: str) -> RequestInfo:
    """What is known of a request before its path was looked at; for what is told of requests that fail before."""
    return RequestInfo(is_resource_request=False, path=path, verb=method.lower())


def build_handler_chain(
    handler: ASGIApp,
    *,
    resolve: ResolveRequestInfo,
    authenticator: Authenticator,
    authorizer: Authorizer,
    flow_control: Limiter | None = None,
    max_requests_inflight: int = 0,
    max_mutating_requests_inflight: int = 0,
    request_timeout_seconds: float,
    observer: RequestObserver | None = None,
    auditor: Auditor | None = None,
    catch_up: Callable[[], Awaitable[bool]] | None = None,
    is_passed_on: Callable[[RequestInfo], bool] = lambda info: False,
    constrained_impersonation: bool = False,
    identity_metrics: IdentityObserver | None = None,
) -> HandlerChain:
    """The chain in front of ``handler``, which is called with ``scope["sampan"]`` filled and may raise ``StatusError``. The maxima are for
    where there is no ``flow_control``."""
    return HandlerChain(
        handler,
        resolve=resolve,
        authenticator=authenticator,
        authorizer=authorizer,
        flow_control=flow_control or FlowControl(max_requests_inflight, max_mutating_requests_inflight),
        request_timeout_seconds=request_timeout_seconds,
        observer=observer,
        auditor=auditor,
        catch_up=catch_up,
        is_passed_on=is_passed_on,
        constrained_impersonation=constrained_impersonation,
        identity_metrics=identity_metrics,
    )
