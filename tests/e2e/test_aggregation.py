"""An extension API server behind a real one, used by the real kubectl; killed, started again, and told to misbehave."""

from __future__ import annotations

import base64
import datetime
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiserver.cli.pki import Authority, KeyPair, Subject
from tests.e2e.conftest import Kubectl
from tests.e2e.server_process import ServerProcess, free_port
from tests.fakes.extension_server import GROUP, VERSION

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = f"{VERSION}.{GROUP}"
Eventually = Callable[[Callable[[], Any]], Any]


def trusted(main: ServerProcess, home: Path) -> str:
    """Whom an extension server is to believe what it says of users, as every one of them learns it."""
    where = ("-n", "kube-system", "configmap", "extension-apiserver-authentication", "-o", "json")
    data = json.loads(Kubectl(main.kubeconfig, "default", home)("get", *where))["data"]
    assert json.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"]
    assert json.loads(data["requestheader-username-headers"]) == ["X-Remote-User"]
    return str(data["requestheader-client-ca-file"])


class Extension:
    """The process of an extension API server, on one port for all of its lives."""

    def __init__(self, directory: Path, main: ServerProcess) -> None:
        directory.mkdir()
        self._log = directory / "log.txt"
        authority = Authority(directory, "zoo-ca", datetime.datetime.now(datetime.UTC))
        pair = KeyPair(directory / "tls.crt", directory / "tls.key")
        authority.leaf(pair, Subject("zoo"), (ExtendedKeyUsageOID.SERVER_AUTH,), (x509.DNSName("zoo.default.svc"),))
        self.ca = authority.files.certificate.read_bytes()
        self.port = free_port()
        front = directory / "front-proxy-ca.crt"
        front.write_text(trusted(main, directory))
        self._command = [
            *(sys.executable, "-m", "tests.fakes.extension_server", "--port", str(self.port)),
            *("--certificate", str(pair.certificate), "--key", str(pair.key), "--client-ca", str(front)),
            *("--main-url", f"https://127.0.0.1:{main.port}", "--token", main.token),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def manifest(self) -> str:
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "zoo", "namespace": "default"}}
        service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        api_service = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": NAME},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "service": {"name": "zoo", "namespace": "default", "port": self.port},
                "caBundle": base64.b64encode(self.ca).decode(),
            },
        }
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, api_service]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    found = ServerProcess(tmp_path_factory.mktemp("aggregation"), "--nodes", "0", users={"alice": ()})
    found.start()
    yield found
    found.kill()


@pytest.fixture
def extension(server: ServerProcess, tmp_path: Path) -> Iterator[Extension]:
    found = Extension(tmp_path / "zoo", server)
    found.start()
    yield found
    found.kill()


@pytest.fixture
def kubectl(server: ServerProcess, tmp_path: Path) -> Iterator[Kubectl]:
    found = Kubectl(server.kubeconfig, "default", tmp_path)
    yield found
    found("delete", "apiservice", NAME, "--ignore-not-found")


def test_kubectl_works_with_an_extension_server_that_dies_and_comes_back(
    kubectl: Kubectl, extension: Extension, eventually: Eventually
) -> None:
    kubectl("apply", "-f", "-", stdin=extension.manifest())
    kubectl("wait", "--for=condition=Available", f"apiservice/{NAME}", "--timeout=30s")
    assert "default/zoo" in kubectl("get", "apiservice", NAME)
    eventually(lambda: "ferrets" in kubectl("api-resources", "--api-group", GROUP))
    ferret = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Ferret", "metadata": {"name": "kit"}, "spec": {"color": "sable"}}
    assert kubectl("apply", "-f", "-", stdin=json.dumps(ferret)) == "ferret.zoo.example.com/kit created\n"
    ferret["spec"] = {"color": "white"}
    assert kubectl("apply", "-f", "-", stdin=json.dumps(ferret)) == "ferret.zoo.example.com/kit configured\n"
    assert kubectl("get", "fer", "kit", "-o", "jsonpath={.spec.color}") == "white"
    assert "kit" in kubectl("get", "ferrets")
    eventually(lambda: "Color of the fur." in kubectl.run("explain", "ferret.spec.color", check=False).stdout)

    extension.kill()
    gone = eventually(lambda: (r := kubectl.run("get", "ferrets", check=False)).returncode and r.stderr)
    assert "(ServiceUnavailable)" in gone
    eventually(lambda: "FailedDiscoveryCheck" in kubectl("get", "apiservice", NAME))
    # nothing else suffers
    assert "kubernetes" in kubectl("get", "services")
    assert "deployments" in kubectl.run("api-resources", check=False).stdout
    # a namespace does not go before it is known what is in it, and says so
    kubectl("create", "namespace", "doomed")
    kubectl("delete", "namespace", "doomed", "--wait=false")
    reason = '{.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].message}'
    eventually(lambda: GROUP in kubectl("get", "namespace", "doomed", "-o", f"jsonpath={reason}"))
    extension.start()
    kubectl("wait", "--for=condition=Available", f"apiservice/{NAME}", "--timeout=60s")
    kubectl("wait", "--for=delete", "namespace/doomed", "--timeout=80s")
    assert eventually(lambda: kubectl.run("get", "ferrets", check=False).returncode == 0)


def test_an_extension_server_that_hangs_holds_up_nobody(
    kubectl: Kubectl, extension: Extension, server: ServerProcess, eventually: Eventually
) -> None:
    import signal

    kubectl("apply", "-f", "-", stdin=extension.manifest())
    kubectl("wait", "--for=condition=Available", f"apiservice/{NAME}", "--timeout=30s")
    assert extension.process is not None
    extension.process.send_signal(signal.SIGSTOP)
    try:
        stuck = [kubectl.start("get", "--raw", f"/apis/{GROUP}/{VERSION}/namespaces/default/ferrets?timeout=3s") for _ in range(4)]
        assert "kubernetes" in kubectl("get", "services")
        kubectl("create", "configmap", "meanwhile")
        kubectl("delete", "configmap", "meanwhile")
        assert all(process.wait(30) != 0 for process in stuck)
    finally:
        extension.process.send_signal(signal.SIGCONT)


def test_whoever_talks_to_the_extension_server_itself_is_asked_about_here(
    kubectl: Kubectl, extension: Extension, server: ServerProcess, eventually: Eventually
) -> None:
    """Its delegated authentication and authorization: TokenReview and SubjectAccessReview of the main server."""
    import ssl
    import urllib.error
    import urllib.request

    context = ssl.create_default_context(cadata=extension.ca.decode())
    context.check_hostname = False

    def ask(token: str, **headers: str) -> int:
        url = f"https://127.0.0.1:{extension.port}/apis/{GROUP}/{VERSION}/namespaces/default/ferrets"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", **headers})
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except urllib.error.URLError as error:
            raise AssertionError("not up yet") from error

    assert eventually(lambda: ask(server.token)) == 200
    assert ask(server.tokens["alice"]) == 403
    rules = [{"apiGroups": [GROUP], "resources": ["ferrets"], "verbs": ["list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "keeper"}, "rules": rules}
    kubectl("apply", "-f", "-", stdin=json.dumps(role))
    kubectl("create", "rolebinding", "keeper", "--role=keeper", "--user=alice")
    assert ask(server.tokens["alice"]) == 200
    assert ask("nobody") == 401
    # headers are believed from the front proxy alone
    assert ask("nobody", **{"X-Remote-User": "root", "X-Remote-Group": "system:masters"}) == 401
