"""Who may come in and what they may do, over real TLS with the real kubectl: OpenID tokens by an exec plugin, ServiceAccount tokens, legacy
token Secrets, a proxy, and what ``kubectl auth`` says about all of them."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import Kubectl
from tests.e2e.server_process import REQUEST_SECONDS_MAX, ServerProcess
from tests.fakes.loopback import Authority, Issuer, SigningKey

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KEY = SigningKey("k1", "ES256")
PROXIES = Authority("proxies")
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
Eventually = Callable[[Callable[[], Any]], Any]


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    made = Issuer(tmp_path_factory.mktemp("issuer"), KEY)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("identity")
    proxies = directory / "proxies.crt"
    proxies.write_bytes(PROXIES.pem)
    made = ServerProcess(
        directory, "--nodes=1", "--audit-log-path", str(directory / "audit.log"),
        "--oidc-issuer-url", issuer.url, "--oidc-client-id", "sampan", "--oidc-signing-algs", "ES256",
        "--oidc-ca-file", str(issuer.ca_file),
        "--oidc-username-prefix", "oidc:", "--oidc-groups-claim", "groups", "--oidc-groups-prefix", "oidc:",
        "--requestheader-client-ca-file", str(proxies), "--requestheader-allowed-names", "front",
        "--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
        "--requestheader-extra-headers-prefix", "X-Remote-Extra-", "--service-account-max-token-expiration", "2h",
        users={"alice": ("devs",)},
    )  # fmt: skip
    made.start()
    yield made
    made.stop()


@pytest.fixture
def kubectl(server: ServerProcess, tmp_path: Path) -> Kubectl:
    return Kubectl(server.kubeconfig, "default", tmp_path)


def ask(server: ServerProcess, method: str, path: str, body: Any = None, *, client: Path | None = None, **headers: str) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(server.data_dir / "pki" / "ca.crt"))
    if client is not None:
        context.load_cert_chain(client)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=REQUEST_SECONDS_MAX, context=context)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json", **sent})
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said.startswith(b"{") else said
    finally:
        connection.close()


def who(server: ServerProcess, token: str) -> dict[str, Any]:
    status, body = ask(server, "POST", WHO, {}, Authorization=f"Bearer {token}")
    assert status == 201, body
    found: dict[str, Any] = body["status"]["userInfo"]
    return found


def with_user(server: ServerProcess, directory: Path, user: dict[str, Any]) -> Kubectl:
    """A kubeconfig like the administrator's, with another user."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": user}]
    path = directory / "other.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return Kubectl(path, "default", directory)


def test_an_openid_token_comes_by_an_exec_plugin(server: ServerProcess, issuer: Issuer, kubectl: Kubectl, tmp_path: Path) -> None:
    token = KEY.sign(issuer.claims(time.time(), groups=["dev"]))
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "command": sys.executable,
        "args": ["-c", f"print(open({str(tmp_path / 'credential.json')!r}).read())"],
    }
    ann = with_user(server, tmp_path, {"exec": plugin})
    user = ann.json("auth", "whoami")["status"]["userInfo"]
    assert user["username"] == "oidc:ann" and user["groups"] == ["oidc:dev", "system:authenticated"]
    assert ann.run("auth", "can-i", "list", "pods", check=False).stdout == "no\n"
    kubectl("create", "rolebinding", "openid-devs", "--clusterrole=view", "--group=oidc:dev")
    assert ann("auth", "can-i", "list", "pods") == "yes\n"
    assert "pods.metrics.k8s.io" not in ann("auth", "can-i", "--list") and "configmaps" in ann("auth", "can-i", "--list")


def test_a_token_of_a_service_account_and_its_bounds(server: ServerProcess, kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=10m").strip()
    assert who(server, token)["username"] == "system:serviceaccount:default:robot"
    long = kubectl.run("create", "token", "robot", "--duration=100h")
    assert "requested expiration of 360000 seconds shortened to 7200 seconds" in long.stderr
    refused = kubectl.run("create", "token", "robot", "--duration=1m", check=False)
    assert "may not specify a duration less than 10 minutes" in refused.stderr
    elsewhere = kubectl("create", "token", "robot", "--audience=https://elsewhere").strip()
    assert ask(server, "POST", WHO, {}, Authorization=f"Bearer {elsewhere}")[0] == 401
    kubectl("create", "secret", "generic", "anchor")
    bound = kubectl("create", "token", "robot", "--bound-object-kind=Secret", "--bound-object-name=anchor").strip()
    assert who(server, bound)["username"] == "system:serviceaccount:default:robot"
    kubectl("delete", "secret", "anchor")
    assert ask(server, "POST", WHO, {}, Authorization=f"Bearer {bound}")[0] == 401
    robot = with_user(server, tmp_path, {"token": token})
    assert "robot" in robot("auth", "whoami")
    kubectl("delete", "serviceaccount", "robot")
    assert "Unauthorized" in robot.run("get", "pods", check=False).stderr


def test_a_secret_that_asks_for_a_token_gets_one_that_dies_with_it(server: ServerProcess, kubectl: Kubectl, eventually: Eventually) -> None:
    kubectl("create", "serviceaccount", "old-robot")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "old-token", "annotations": {"kubernetes.io/service-account.name": "old-robot"}},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    data = eventually(lambda: kubectl.json("get", "secret", "old-token").get("data"))
    token = base64.b64decode(data["token"]).decode()
    assert who(server, token)["username"] == "system:serviceaccount:default:old-robot"
    assert base64.b64decode(data["ca.crt"]).startswith(b"-----BEGIN CERTIFICATE")
    kubectl("delete", "secret", "old-token")
    assert ask(server, "POST", WHO, {}, Authorization=f"Bearer {token}")[0] == 401


def test_impersonation_by_kubectl(kubectl: Kubectl) -> None:
    acting = ("--as=bob", "--as-group=ops", "--as-uid=u7")
    user = kubectl.json("auth", "whoami", *acting)["status"]["userInfo"]
    assert user == {"username": "bob", "uid": "u7", "groups": ["ops", "system:authenticated"]}
    assert kubectl.run("auth", "can-i", "get", "secrets", *acting, check=False).stdout == "no\n"
    account = kubectl.json("auth", "whoami", "--as=system:serviceaccount:default:default")["status"]["userInfo"]
    assert "system:serviceaccounts:default" in account["groups"]


def test_roles_are_reconciled_and_hold_at_once(server: ServerProcess, kubectl: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    }
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=json.dumps(role))
    kubectl("create", "rolebinding", "alice-reads", "--role=reader", "--user=alice")
    assert kubectl("auth", "can-i", "list", "configmaps", "--as=alice") == "yes\n"
    role["rules"][0]["verbs"] = ["watch"]  # type: ignore[index]
    kubectl("auth", "reconcile", "-f", "-", stdin=json.dumps(role))
    verbs = [verb for rule in kubectl.json("get", "role", "reader")["rules"] for verb in rule["verbs"]]
    assert sorted(verbs) == ["get", "list", "watch"], "reconciling adds"
    kubectl("auth", "reconcile", "--remove-extra-permissions", "-f", "-", stdin=json.dumps(role))
    assert kubectl.run("auth", "can-i", "list", "configmaps", "--as=alice", check=False).stdout == "no\n"
    headers: dict[str, Any] = {"Authorization": f"Bearer {server.tokens['alice']}"}
    assert ask(server, "GET", "/api/v1/namespaces/default/configmaps", **headers)[0] == 403


def test_a_proxy_names_users_and_nobody_else_does(server: ServerProcess, tmp_path: Path) -> None:
    def pem(name: str, authority: Authority) -> Path:
        path = tmp_path / f"{name}-{id(authority)}.pem"
        path.write_bytes(b"".join(authority.signed(name)))
        return path

    headers: dict[str, Any] = {"X_Remote_User": "ann", "X_Remote_Group": "system:masters"}
    status, body = ask(server, "GET", "/api/v1/secrets", client=pem("front", PROXIES), **headers)
    assert status == 200 and body["kind"] == "SecretList"
    assert ask(server, "GET", "/api/v1/secrets", client=pem("other", PROXIES), **headers)[0] == 401
    assert ask(server, "GET", "/api/v1/secrets", client=pem("front", Authority("proxies")), **headers)[0] == 401
    status, body = ask(server, "GET", "/api/v1/secrets", **headers)
    assert status == 403 and 'User "system:anonymous"' in body["message"]
    status, body = ask(server, "GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
                       Authorization=f"Bearer {server.token}")  # fmt: skip
    assert body["data"]["requestheader-client-ca-file"] == PROXIES.pem.decode()
    assert json.loads(body["data"]["requestheader-allowed-names"]) == ["front"]
    assert json.loads(body["data"]["requestheader-username-headers"]) == ["X-Remote-User"]
    assert json.loads(body["data"]["requestheader-extra-headers-prefix"]) == ["X-Remote-Extra-"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/../../secrets",
        "/api/v1/namespaces/default/configmaps/..%2f..%2f..%2fsecrets",
        "/api/v1/namespaces/default%2fsecrets",
        "/healthz/../api/v1/secrets",
        "/healthz/%2e%2e/api/v1/secrets",
        "/healthz%2f..%2fapi/v1/secrets",
        "//api/v1/secrets",
        "/api//v1/secrets",
        "/api/v1//secrets",
        "/API/v1/secrets",
        "/api/V1/secrets",
        "/api/v1/SECRETS",
        "/api/v1/secrets/",
        "/api/v1/secrets;x",
        "/api/v1/secrets%00",
        "/api/v1/secrets?x=/healthz",
        "/./api/v1/secrets",
        "/api/v1/./secrets",
        "/version/../api/v1/secrets",
        "/apis/../api/v1/secrets",
    ],
)
def test_no_spelling_of_a_path_leads_round_authorization(server: ServerProcess, path: str) -> None:
    """What a user without rights gets is a refusal, a redirect or nothing: never an object."""
    status, body = ask(server, "GET", path, Authorization=f"Bearer {server.tokens['alice']}")
    assert status in (301, 307, 400, 403, 404, 405), (status, body)
    assert b"SecretList" not in json.dumps(body).encode() if isinstance(body, dict) else True


_HIDDEN = "GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
_HEAD = "Host: x\r\nConnection: close\r\n"
_ASKED = f"GET /api/v1/secrets HTTP/1.1\r\n{_HEAD}"


@pytest.mark.parametrize(
    "sent",
    [
        f"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{_HIDDEN}",
        f"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n{_HIDDEN}",
        f"{_ASKED}X: a\r\n Authorization: Bearer x\r\n\r\n",
        f"{_ASKED}X: a\rImpersonate-User: admin\r\n\r\n",
        f"{_ASKED}X: a\0b\r\n\r\n",
        f"{_ASKED}Impersonate-User : admin\r\n\r\n",
        f"{_ASKED}X_Remote_User: admin\r\nX_Remote_Group: system:masters\r\n\r\n",
        f"{_ASKED}x-remote-user: admin\r\nX-REMOTE-GROUP: system:masters\r\n\r\n",
        f"{_ASKED}Impersonate-User: admin\r\nImpersonate-Group: system:masters\r\n\r\n",
        f"{_ASKED}Authorization: Bearer TOKEN\xa0\r\n\r\n",
        f"{_ASKED}Authorization: Bearer wrong\r\nAuthorization: Bearer TOKEN\r\n\r\n",
        f"{_ASKED}Authorization: Bearer TOKEN, Bearer wrong\r\n\r\n",
        f"GET https://admin:x@x/api/v1/secrets HTTP/1.1\r\n{_HEAD}\r\n",
        f"GET /api/v1/\xff\xfe/secrets HTTP/1.1\r\n{_HEAD}\r\n",
        "GET /api/v1/secrets HTTP/1.1\nHost: x\nConnection: close\n\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_no_form_of_a_request_gets_in(server: ServerProcess, sent: str) -> None:
    """Lengths that contradict each other, folded and doubled headers, names that a proxy would take for others: one answer, a refusal.
    ``TOKEN`` is the administrator's."""
    context = ssl.create_default_context(cafile=str(server.data_dir / "pki" / "ca.crt"))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=REQUEST_SECONDS_MAX) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(sent.replace("TOKEN", server.token).encode("latin-1"))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    statuses = [line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert len(statuses) == 1 and statuses[0] in (b"400", b"401", b"403"), answer
    assert b"SecretList" not in answer


@pytest.mark.parametrize("token", ["x" * 20_000, "x" * 900_000, "a.b.c" * 5_000, "\x7f", "..", "eyJhbGciOiJub25lIn0.e30."])
def test_tokens_of_any_size_and_form_are_refused(server: ServerProcess, token: str) -> None:
    status, body = ask(server, "GET", "/api/v1/pods", Authorization=f"Bearer {token}")
    assert status in (400, 401, 431), status
    assert token not in json.dumps(body if isinstance(body, dict) else "")


def test_no_token_is_in_the_audit_log_or_the_server_log(server: ServerProcess, issuer: Issuer, eventually: Eventually) -> None:
    token = KEY.sign(issuer.claims(time.time(), sub="auditee"))
    assert who(server, token)["username"] == "oidc:auditee"
    ask(server, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}}, Authorization=f"Bearer {server.token}")
    audit = server.log.parent / "audit.log"
    # events are written behind the answers
    eventually(lambda: "tokenreviews" in audit.read_text() and "oidc:auditee" in audit.read_text())
    log = server.log.read_text() + audit.read_text()
    for secret in (token, token.split(".")[2], server.token, server.tokens["alice"]):
        assert secret not in log
