"""HTTP/1.1 for the API server: uvicorn's httptools protocol with the client's certificate in the scope, and bounds on slow clients."""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from collections import OrderedDict
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apiserver.aggregation.tunnel import TAKE_OVER_KEY
from apiserver.handler_chain import CUT_KEY, GONE_KEY, PEER_CERTIFICATE_KEY, PEER_INTERMEDIATES_KEY
from apiserver.handlers.watch import WRITE_CHUNK_KEY
from apiserver.http_exchange import STATUS_LINES, Exchange, name_start
from apiserver.machinery import status

#: From the first byte of a connection, or of a further request, to the end of its head.
HEAD_TIMEOUT_SECONDS = 30.0
#: Of a request's line and header fields together (Go's limit, http.DefaultMaxHeaderBytes and its slack); 431 beyond.
HEAD_BYTES_MAX = 1024 * 1024 + 4096
#: What is read, and passed over, of a body that comes after its answer, so that a client which writes first and reads then gets to see
#: the answer; how much, and for how long. Then the connection is closed.
DRAIN_BYTES_MAX = 64 * 1024 * 1024
DRAIN_SECONDS = 10.0
#: What waits in memory for a client that does not read before whoever writes to it has to wait; a piece that is under way comes to it.
#: uvloop's own limit is twice as much, under another half a mebibyte of the connection below TLS.
WRITE_BUFFER_BYTES_MAX = 256 * 1024
#: What a client gets to read of an answer after its connection is given up.
FLUSH_SECONDS = 10.0
#: An idle connection is kept for Go's clients, which reuse theirs (kube-apiserver's IdleTimeout is three minutes).
KEEP_ALIVE_SECONDS = 180

#: A request line with a method that nobody knows: a request all the same (RFC 9110 §9.1), where other garbage is none.
_UNKNOWN_METHOD = re.compile(rb"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} [^ \r\n]+ HTTP/1\.[01]\r?\n", re.MULTILINE)


class ApiProtocol(HttpToolsProtocol):
    """One connection. Requests are ``Exchange``s; the idle connection has one timer, which looks at the time when it expires, since
    making and cancelling one for each request costs as much as parsing it."""

    # in place of the base's: an Exchange for its cycle, a plain dict for its scope
    cycle: Any
    scope: Any
    parser: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._peer_certificate: bytes | None = None
        self._peer_intermediates: tuple[bytes, ...] = ()
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._head_bytes = 0
        self._in_message = False
        self._drain_timer: asyncio.TimerHandle | None = None
        self._drained_bytes = 0
        self._flush_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since: float | None = None
        self._server_headers: list[tuple[bytes, bytes]] = []
        self._server_lines = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._peer_certificate = tls.getpeercert(binary_form=True)
            if self._peer_certificate is not None:
                self._peer_intermediates = _intermediates(tls, self._peer_certificate)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self.connections.discard(self)
        exchange = self.cycle
        if exchange is not None:
            if not exchange.response_complete:
                exchange.disconnected = True
            exchange.wake()
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.parser = None

    def data_received(self, data: bytes) -> None:
        size = len(data)
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as passed:
                # an upgrade may be passed over (RFC 9110 §7.8); kubectl tries WebSockets for exec before it takes no for an answer
                data = data[passed.args[0] :]
            except httptools.HttpParserError as error:
                if self._head_bytes > HEAD_BYTES_MAX:
                    self._refuse_head()
                elif isinstance(error, httptools.HttpParserInvalidMethodError) and _UNKNOWN_METHOD.search(data):
                    refusal = status.generic_method_not_allowed()
                    self._refuse_with(refusal.code, refusal.status)
                else:
                    self._refuse(400, "BadRequest", "the request is not HTTP/1.1 that can be understood")
                return
        if self._in_head:
            self._head_bytes += size
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse_head()
            elif self._head_timer is None:
                self._watch_head()
        elif self._drain_timer is not None:
            self._drained_bytes += size
            if self._drained_bytes > DRAIN_BYTES_MAX:
                self.transport.close()

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._in_head = self._in_message = True
        self._idle_since = None

    def on_headers_complete(self) -> None:
        if self._head_bytes:
            # it came in several reads, whose last one was not counted yet: what follows the head in it is none of it
            self._head_bytes = len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers])
            if self._head_bytes > HEAD_BYTES_MAX:
                raise ValueError("too large")  # ends the parser
        self._in_head = False
        self._stop_watching()
        parser = self.parser
        version = parser.get_http_version()
        url = self.url
        if url.startswith(b"/") and b"#" not in url:
            raw_path, _, query = url.partition(b"?")
        else:
            parsed = httptools.parse_url(url)
            raw_path, query = parsed.path, parsed.query or b""
        path = raw_path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "method": parser.get_method().decode("ascii"),
            "path": urllib.parse.unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            PEER_CERTIFICATE_KEY: self._peer_certificate,
            PEER_INTERMEDIATES_KEY: self._peer_intermediates,
            WRITE_CHUNK_KEY: self.write_chunk,
            CUT_KEY: self.cut,
            GONE_KEY: self.transport.is_closing,
            TAKE_OVER_KEY: self.take_over,
        }
        before = self.cycle
        exchange = Exchange(
            self.scope,
            self.transport,
            self.flow,
            self._lines_of_server(),
            self.on_response_complete,
            expects_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        self.cycle = exchange
        if before is None or before.response_complete:
            self._start_asgi_task(exchange, self.app)  # type: ignore[arg-type]
        else:
            # pipelined: it waits for its turn
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))  # type: ignore[arg-type]

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if exchange.response_complete:
            return
        exchange.body += body
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        exchange.wake()

    def on_message_complete(self) -> None:
        self._in_message = False
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None
            self._idle_since = self.loop.time()
        exchange = self.cycle
        if not exchange.response_complete:
            exchange.more_body = False
            exchange.wake()

    def _refuse_head(self) -> None:
        self._refuse(431, "RequestHeaderFieldsTooLarge", f"the head of the request is too large: limit is {HEAD_BYTES_MAX}")

    def _refuse(self, code: int, reason: str, message: str) -> None:
        self._refuse_with(code, status.failure(code, reason, message))

    def _refuse_with(self, code: int, answer: dict[str, Any]) -> None:
        """Answer what is no request, or ceased to be one before its answer began, and close."""
        if self.transport.is_closing():
            return
        exchange = self.cycle
        if exchange is None or exchange.response_complete or not (exchange.response_started or self.pipeline):
            if exchange is not None and not exchange.response_complete:
                exchange.disconnected = True
                exchange.wake()
            body = orjson.dumps(answer)
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINES[code] + head + body)
        self.transport.close()

    def cut(self) -> None:
        """End the connection at once: its response cannot be made whole."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    def take_over(self, head: bytes, protocol: asyncio.Protocol) -> None:
        """Answer with this head, and give the connection to another protocol: it speaks something else than HTTP from now on."""
        exchange = self.cycle
        exchange.response_started = exchange.response_complete = True
        self._stop_watching()
        for timer in (self._idle_timer, self._drain_timer):
            if timer is not None:
                timer.cancel()
        self.connections.discard(self)
        self.flow.resume_reading()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        self.transport.write(head)

    def write_chunk(self, framed: bytes) -> bool:
        """Write a chunk of a chunked response that has begun, with its framing, past the ASGI messages; False where that cannot be
        done at once: the client is slow or gone, or the response is not such a one. For watches, whose events go to many at a time.
        ``framed`` may be empty, to ask."""
        cycle = self.cycle
        if cycle is None or not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        if framed:
            self.transport.write(framed)
        return True

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            exchange, app = self.pipeline.pop()
            self._start_asgi_task(exchange, app)
            return
        if self._in_message and self.cycle.response_complete:
            self._drained_bytes = 0
            self._drain_timer = self.loop.call_later(DRAIN_SECONDS, self._give_up)
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(KEEP_ALIVE_SECONDS, self._look_if_idle)

    def _lines_of_server(self) -> bytes:
        """The head's lines that are the server's own (Date), made once for each time they change."""
        headers = self.server_state.default_headers
        if headers is not self._server_headers:
            self._server_headers = headers
            self._server_lines = b"".join([name_start(name) + value + b"\r\n" for name, value in headers])
        return self._server_lines

    def _look_if_idle(self) -> None:
        self._idle_timer = None
        since = self._idle_since
        if since is None:
            return  # a request is under way; its end sets the timer again
        left = since + KEEP_ALIVE_SECONDS - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_if_idle)
        else:
            self._give_up()

    def _watch_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._give_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = self._drain_timer = None
        if not self.transport.is_closing():
            self.transport.close()
            # what was answered and is not read would keep the connection, and the answer in memory, for ever
            self._flush_timer = self.loop.call_later(FLUSH_SECONDS, self.transport.abort)


_ASGI = {"version": "3.0", "spec_version": "2.3"}


#: What clients sent along with their certificates: a session that is resumed brings the certificate back, but not these. As they prove
#: nothing by themselves, it does not matter which connection they came by.
_sent_along: OrderedDict[bytes, tuple[bytes, ...]] = OrderedDict()
#: certificates whose companions are remembered; the oldest goes first
SENT_ALONG_MAX = 1024
#: bytes of the companions of one certificate that are remembered; real ones have some 2 KiB
SENT_ALONG_BYTES_MAX = 16 * 1024


def _intermediates(connection: Any, certificate: bytes) -> tuple[bytes, ...]:
    """What the client of a TLS connection sent along with its certificate, DER, unverified."""
    if connection.session_reused:
        return _sent_along.get(certificate, ())
    if hasattr(connection, "get_unverified_chain"):
        chain = connection.get_unverified_chain()
    else:
        # what Python 3.13 makes public is there since 3.10
        import _ssl

        chain = [each.public_bytes(_ssl.ENCODING_DER) for each in connection._sslobj.get_unverified_chain() or ()]
    found = tuple(chain[1:])
    if found and sum(map(len, found)) <= SENT_ALONG_BYTES_MAX:
        _sent_along[certificate] = found
        if len(_sent_along) > SENT_ALONG_MAX:
            _sent_along.popitem(last=False)
    return found
