"""Who may do what, over real TLS against a real server: the field cases P1, P4, Q2 to Q4, N4, R1, R2 and AA1."""

from __future__ import annotations

import datetime
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.e2e.server_process import REQUEST_SECONDS_MAX, ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NS = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Client:
    """Requests as anybody: by token, by certificate, or as nobody."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def __call__(
        self,
        do: str,
        body: Any = None,
        *,
        user: str = "admin",
        certificate: Path | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        method, path = do.split(" ", 1)
        context = ssl.create_default_context(cafile=str(self._server.data_dir / "pki" / "ca.crt"))
        sent = {"Content-Type": "application/json", **(headers or {})}
        if certificate is not None:
            context.load_cert_chain(certificate)
        elif user:
            sent["Authorization"] = f"Bearer {self._server.token if user == 'admin' else self._server.tokens[user]}"
        connection = http.client.HTTPSConnection("127.0.0.1", self._server.port, timeout=REQUEST_SECONDS_MAX, context=context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return Answer(status=answer.status, body=json.loads(answer.read()))
        finally:
            connection.close()

    def grant(self, name: str, *rules: dict[str, Any], user: str = "alice") -> None:
        assert self(f"POST {RBAC}/roles", {"metadata": {"name": name}, "rules": list(rules)}).status == 201
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        assert self(f"POST {RBAC}/rolebindings", binding).status == 201


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    users: dict[str, tuple[str, ...]] = dict.fromkeys(("alice", "bob", "carol"), ())
    made = ServerProcess(tmp_path_factory.mktemp("access"), "--no-controllers", users=users)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def ask(server: ServerProcess) -> Client:
    return Client(server)


def client_certificate(directory: Path, ca_key: Any, ca_name: x509.Name, *, days: tuple[int, int] = (-1, 1)) -> Path:
    """A PEM file with key and certificate of CN=ann, O=dev."""
    now = datetime.datetime.now(datetime.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "dev"), x509.NameAttribute(NameOID.COMMON_NAME, "ann")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = directory / "client.pem"
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def test_p1_client_certificates_end_in_a_user_or_a_status_never_in_a_broken_handshake(
    ask: Client, server: ServerProcess, tmp_path: Path
) -> None:
    pki = server.data_dir / "pki"
    ca_key = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
    ca_name = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes()).subject
    whoami = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
    good = ask(whoami, {}, certificate=client_certificate(tmp_path, ca_key, ca_name))
    assert good.status == 201
    user = good.body["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("ann", ["dev", "system:authenticated"])
    for bad in (
        client_certificate(tmp_path, ca_key, ca_name, days=(-9, -1)),
        client_certificate(tmp_path, ec.generate_private_key(ec.SECP256R1()), ca_name),
    ):
        refused = ask(whoami, {}, certificate=bad)
        assert (refused.status, refused.body["kind"], refused.message) == (401, "Status", "Unauthorized")


def test_p4_impersonating_needs_a_user_and_the_verb(ask: Client) -> None:
    only_group = ask(f"GET {NS}/configmaps", headers={"Impersonate-Group": "dev"})
    assert only_group.status == 400 and only_group.message.endswith("without impersonating a user")
    refused = ask(f"GET {NS}/configmaps", user="alice", headers={"Impersonate-User": "bob"})
    assert refused.status == 403
    assert 'cannot impersonate resource "users"' in refused.message


def test_q2_an_access_review_wants_the_plural(ask: Client) -> None:
    ask.grant("q2", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, user="bob")

    def review(resource: str) -> Answer:
        attributes = {"namespace": "default", "verb": "get", "resource": resource}
        return ask(f"POST {REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}, user="bob")

    wrong, right = review("pod"), review("pods")
    assert (wrong.status, wrong.body["status"]["allowed"]) == (201, False)
    assert right.body["status"]["allowed"] and right.body["status"]["reason"].startswith("RBAC: allowed by RoleBinding")
    assert ask(f"GET {REVIEWS}/selfsubjectaccessreviews").status == 405
    assert ask(f"GET {REVIEWS}/subjectaccessreviews/x").status == 404


def test_q3_a_rule_for_one_name(ask: Client) -> None:
    for name in ("cm-a", "cm-b"):
        assert ask(f"POST {NS}/configmaps", {"metadata": {"name": name}}).status == 201
    one = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cm-a"], "verbs": ["get", "list", "patch"]}
    ask.grant("q3", one, user="carol")

    def may(do: str, body: Any = None) -> int:
        return ask(do, body, user="carol").status

    assert may(f"GET {NS}/configmaps/cm-a") == 200
    assert may(f"GET {NS}/configmaps/cm-b") == 403
    assert may(f"GET {NS}/configmaps") == 403
    assert may(f"GET {NS}/configmaps?fieldSelector=metadata.name%3Dcm-a") == 200
    assert may(f"POST {NS}/configmaps", {"metadata": {"name": "cm-c"}}) == 403


def test_q4_a_subresource_is_a_resource_of_its_own(ask: Client) -> None:
    ask.grant("q4", {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})
    for do in (f"GET {NS}/pods/p/log", f"PUT {NS}/pods/p/status"):
        refused = ask(do, {} if do.startswith("PUT") else None, user="alice")
        assert refused.status == 403 and f'resource "pods/{do.rsplit("/", 1)[1]}"' in refused.message
    attributes = {"namespace": "default", "verb": "get", "resource": "pods", "subresource": "log", "name": "p"}
    review = ask(f"POST {REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}, user="alice")
    assert not review.body["status"]["allowed"]


def test_n4_protected_namespaces_and_no_collection_delete(ask: Client) -> None:
    for name in ("default", "kube-system", "kube-public"):
        refused = ask(f"DELETE /api/v1/namespaces/{name}")
        assert refused.status == 403 and refused.message.endswith("this namespace may not be deleted")
    assert ask("DELETE /api/v1/namespaces").status == 405


def test_r1_and_r2_quotas(ask: Client) -> None:
    assert ask("POST /api/v1/namespaces", {"metadata": {"name": "tight"}}).status == 201
    tight = "/api/v1/namespaces/tight"
    assert ask(f"POST {tight}/serviceaccounts", {"metadata": {"name": "default"}}).status == 201
    hard = {"configmaps": "2", "limits.cpu": "1"}
    quota = ask(f"POST {tight}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}).body
    quota["status"] = {"hard": hard, "used": {"configmaps": "0", "limits.cpu": "0"}}
    assert ask(f"PUT {tight}/resourcequotas/q/status", quota).status == 200
    codes = [ask(f"POST {tight}/configmaps", {"metadata": {"name": f"c{n}"}}) for n in range(3)]
    assert [a.status for a in codes] == [201, 201, 403]
    assert "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2" in codes[2].message
    assert ask(f"GET {tight}/resourcequotas/q").body["status"]["used"]["configmaps"] == "2"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    refused = ask(f"POST {tight}/pods", pod)
    assert refused.status == 403 and "failed quota: q: must specify limits.cpu" in refused.message


def test_aa1_timeouts(ask: Client) -> None:
    bad = ask(f"GET {NS}/configmaps?timeout=abc")
    assert bad.status == 400 and bad.message.startswith("invalid timeout specified in the request URL")
    assert ask(f"GET {NS}/configmaps?timeout=10m").status == 200


def test_nobody_and_wrong_tokens(ask: Client) -> None:
    nobody = ask(f"GET {NS}/configmaps", user="")
    assert nobody.status == 403 and 'User "system:anonymous" cannot list resource "configmaps"' in nobody.message
    wrong = ask(f"GET {NS}/configmaps", user="", headers={"Authorization": "Bearer no-such-token"})
    assert (wrong.status, wrong.message) == (401, "Unauthorized")
