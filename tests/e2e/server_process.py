"""A server process that a test starts, kills and starts again on the same data and port."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apiserver import pytest_plugin

REQUEST_SECONDS_MAX = 30.0


class ServerProcess:
    """``users`` are further users with their groups; ``tokens`` has a token for each."""

    def __init__(
        self, directory: Path, *flags: str, users: dict[str, tuple[str, ...]] | None = None, token: str = "", ca: Path | None = None
    ) -> None:
        """``token``: of the administrator, else a new one; ``ca``: of the server, where it is not in the data directory."""
        self._directory = directory
        self._ca = ca or directory / "data" / "pki" / "ca.crt"
        self._flags = flags
        self.token = token or secrets.token_hex(12)
        self.tokens = {user: secrets.token_hex(12) for user in users or {}}
        self.port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        lines = [f'{self.token},tester,tester,"system:masters"']
        lines += [f'{self.tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in (users or {}).items()]
        (directory / "tokens.csv").write_text("\n".join(lines) + "\n")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self._directory / "data" / "admin.kubeconfig"

    @property
    def data_dir(self) -> Path:
        return self._directory / "data"

    @property
    def log(self) -> Path:
        return self._directory / "log.txt"

    def start(self) -> None:
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        flags = ["--data-dir", str(self.data_dir), "--secure-port", str(self.port)]
        if "--listen-client-urls" not in self._flags:
            flags += ["--listen-client-urls", ""]  # the default port is one for all
        flags += ["--token-auth-file", str(self._directory / "tokens.csv"), *self._flags]
        self.process = pytest_plugin.start(flags, self.log)

    def wait_ready(self) -> None:
        assert self.process is not None
        pytest_plugin.wait_until_ready(self.process, self.log)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End as Ctrl-C does; the exit status."""
        assert self.process is not None
        pytest_plugin.stop(self.process)
        return self.process.returncode

    def connection(self, timeout: float = REQUEST_SECONDS_MAX) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._ca))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def request(
        self, method: str, path: str, body: Any = None, *, connection: http.client.HTTPSConnection | None = None
    ) -> tuple[int, Any]:
        used = connection or self.connection()
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            used.request(method, path, None if body is None else json.dumps(body), headers)
            answer = used.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            if connection is None:
                used.close()

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a watch until the stream ends, however it ends."""
        connection = self.connection()
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            while line := answer.readline():
                yield json.loads(line)
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
