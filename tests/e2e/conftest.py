"""End-to-end tests use the fixtures that the package gives its users; from a checkout they are loaded by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.pytest_plugin import SampanServer

KUBECTL_SECONDS_MAX = 90


class Kubectl:
    """The real kubectl against the session's server, as its administrator, in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self.namespace = namespace
        self._environment = dict(os.environ, KUBECONFIG=str(kubeconfig), HOME=str(home), KUBE_EDITOR="", EDITOR="")

    def run(self, *arguments: str, stdin: str | None = None, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["kubectl", "--namespace", self.namespace, *arguments],
            input=stdin, text=True, capture_output=True, timeout=KUBECTL_SECONDS_MAX, env={**self._environment, **environment},
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        return self.run(*arguments, stdin=stdin).stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["kubectl", "--namespace", self.namespace, *arguments], stdout=subprocess.PIPE, text=True, env=self._environment
        )


@pytest.fixture
def kubectl(sampan: SampanServer, sampan_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    if shutil.which("kubectl") is None:
        pytest.fail("these tests need the real kubectl on the PATH")
    return Kubectl(sampan.kubeconfig, sampan_namespace, tmp_path_factory.getbasetemp() / "kubectl-home")


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Call until it answers something true (assertion errors count as not yet), at most a minute."""
    import time

    def poll(check: Callable[[], Any], seconds: float = 60.0) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = check()
                if found:
                    return found
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.1)

    return poll
