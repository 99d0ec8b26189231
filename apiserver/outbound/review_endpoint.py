"""A server that answers reviews (TokenReview, SubjectAccessReview), as a kubeconfig file names it; the file is read again when it has
changed, so that certificates and tokens rotate."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from apiserver.outbound import kubeconfig
from apiserver.outbound.json_client import JsonClient, OutboundError
from apiserver.reloaded_file import ReloadedFile


class ReviewObserver(Protocol):
    def answered(self, code: str, seconds: float) -> None:
        """A review was answered, with all its attempts; ``code`` of HTTP, or <error> where there was none."""


class ReviewEndpoint:
    """Called with a review, it answers what came back. Raises OutboundError."""

    def __init__(self, path: Path, *, timeout_seconds: float, now: Callable[[], float], observer: ReviewObserver | None = None) -> None:
        """Raises OSError, ValueError for a file that cannot be used."""

        def read(text: str) -> tuple[kubeconfig.Endpoint, ssl.SSLContext]:
            endpoint = kubeconfig.parse(text, path.parent)
            return endpoint, endpoint.ssl_context()

        self._file = ReloadedFile(path, read, now)
        self._now = now
        self._observer = observer
        self._client = JsonClient(timeout_seconds=timeout_seconds)
        self.close = self._client.close

    async def __call__(self, review: dict[str, Any]) -> Any:
        endpoint, context = self._file.current()
        try:
            headers = endpoint.credentials.headers()
        except kubeconfig.KubeconfigError as error:
            raise OutboundError(str(error)) from error
        began = self._now()
        code = "<error>"
        try:
            answer = await self._client.post(endpoint.url, review, context, headers=headers, server_name=endpoint.server_name)
            code = "200"
        except OutboundError as error:
            code = str(error.status or code)
            raise
        finally:
            if self._observer is not None:
                self._observer.answered(code, self._now() - began)
        return answer
