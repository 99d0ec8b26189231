"""A gRPC connection to each endpoint, and which of them to use. Loads gRPC."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from storage import errors
from storage.etcdclient.config import ClientConfig, address
from storage.etcdpb import services

#: Between attempts to connect to an endpoint that is away; gRPC doubles from the first to the second.
RECONNECT_BACKOFF_MIN_MS = 50
RECONNECT_BACKOFF_MAX_MS = 1_000
#: Bytes of one answer. etcd bounds requests, not answers: a range is as large as what it covers.
ANSWER_BYTES_MAX = 2**31 - 1

_READY = grpc.ChannelConnectivity.READY
#: etcd refuses at once, rather than after its timeout, where the member knows no leader.
REQUIRE_LEADER = (("hasleader", "true"),)


class Endpoint:
    """One URL, its channel, and the calls of etcd's methods over it."""

    def __init__(self, url: str, options: list[tuple[str, int]]) -> None:
        self.url = url
        #: etcd's version, once it has told it: (3, 5, 13); empty before
        self.version: tuple[int, ...] = ()
        #: long-lived calls over it, cancelled when it is given up
        self.streams: set[grpc.aio.Call] = set()
        self._options = options
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[str, Callable[..., Any]] = {}

    async def open(self, credentials: grpc.ChannelCredentials | None) -> None:
        """A new channel, which connects when asked to; calls of the one before fail."""
        await self.close()
        target = address(self.url)
        if credentials is not None and self.url.startswith("https://"):
            self._channel = grpc.aio.secure_channel(target, credentials, options=self._options)
        else:
            self._channel = grpc.aio.insecure_channel(target, options=self._options)

    async def close(self) -> None:
        channel, self._channel, self._calls = self._channel, None, {}
        if channel is not None:
            await channel.close()

    def ready(self) -> bool:
        return self._channel is not None and self._channel.get_state() is _READY

    async def connect(self) -> Endpoint:
        """Return, itself, once there is a connection, however long that takes."""
        channel = self._channel
        assert channel is not None, "open comes first"
        state = channel.get_state(try_to_connect=True)
        while state is not _READY:
            await channel.wait_for_state_change(state)
            state = channel.get_state(try_to_connect=True)
        return self

    def call(self, path: str) -> Callable[..., Any]:
        """The method ``/package.Service/Method`` of this endpoint."""
        made = self._calls.get(path)
        if made is None:
            assert self._channel is not None, "open comes first"
            method = services.methods()[path]
            kinds = {(False, False): "unary_unary", (False, True): "unary_stream", (True, True): "stream_stream"}
            kind = kinds[method.client_streaming, method.server_streaming]
            made = getattr(self._channel, kind)(
                path, request_serializer=method.request_class.SerializeToString, response_deserializer=method.response_class.FromString
            )
            self._calls[path] = made
        return made


class Connections:
    """``ready`` gives the endpoint to use: the one that last worked, or another once ``failed`` was told of it."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        options = [
            ("grpc.keepalive_time_ms", int(config.keep_alive_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", int(config.keep_alive_timeout_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", RECONNECT_BACKOFF_MIN_MS),
            ("grpc.min_reconnect_backoff_ms", int(config.connect_timeout_seconds * 1000)),
            ("grpc.max_reconnect_backoff_ms", RECONNECT_BACKOFF_MAX_MS),
            ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
            ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
            # what is tried again is decided here, not by gRPC
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            # a client has its own connection: endpoints of two clients in one process fail apart
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.endpoints = [Endpoint(url, options) for url in config.endpoints]
        self._current = self.endpoints[0]
        self._files_seen: tuple[int, ...] = ()
        self._opened = False
        self._connecting: asyncio.Task[Endpoint] | None = None

    async def open(self) -> None:
        """Raises DataDirError for files that cannot be read."""
        self._files_seen = self._file_times()
        credentials = self._credentials() if self._config.secure() else None
        for endpoint in self.endpoints:
            await endpoint.open(credentials)
        self._opened = True

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError, errors.StoreError):
                await self._connecting
        for endpoint in self.endpoints:
            await endpoint.close()

    def ready_now(self) -> Endpoint | None:
        """The current endpoint, if it is connected."""
        return self._current if self._current.ready() else None

    async def ready(self) -> Endpoint:
        """A connected endpoint: the current one, or whichever connects first. Raises UnavailableError after the connect timeout."""
        if self._current.ready():
            return self._current
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._connect())
        return await asyncio.shield(self._connecting)

    def failed(self, endpoint: Endpoint) -> None:
        """A call over ``endpoint`` found it unusable: use the next one from now on, if there is one."""
        if len(self.endpoints) == 1:
            return
        if endpoint is self._current:
            self._current = self.endpoints[(self.endpoints.index(endpoint) + 1) % len(self.endpoints)]
        # A member that is silent keeps its streams open and says nothing on them: whoever reads them must not wait for the keep-alive.
        for call in tuple(endpoint.streams):
            call.cancel()

    async def _connect(self) -> Endpoint:
        if self._file_times() != self._files_seen:
            await self.open()
        first = self.endpoints.index(self._current)
        tasks = [asyncio.create_task(endpoint.connect()) for endpoint in self.endpoints[first:] + self.endpoints[:first]]
        try:
            done, _ = await asyncio.wait(tasks, timeout=self._config.connect_timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:  # in order of preference
                if task in done and task.exception() is None:
                    self._current = task.result()
                    return self._current
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        raise errors.UnavailableError(f"etcd: no connection to {', '.join(self._config.endpoints)}")

    def _credentials(self) -> grpc.ChannelCredentials:
        config = self._config
        try:
            ca, key, cert = (
                path.read_bytes() if path is not None else None for path in (config.ca_file, config.key_file, config.cert_file)
            )
        except OSError as error:
            raise errors.DataDirError(f"{error.filename}: {error.strerror}") from error
        return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=cert)

    def _file_times(self) -> tuple[int, ...]:
        """Changes whenever one of the files does; a file that is away for a moment counts as unchanged."""
        try:
            return tuple(path.stat().st_mtime_ns for path in self._config.files())
        except OSError:
            return self._files_seen
