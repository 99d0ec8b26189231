"""As whom webhooks are called: users of the file that ``WebhookAdmissionConfiguration`` names, by the webhook's host."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from apiserver.admission import configuration
from apiserver.admission.configuration import AdmissionConfiguration
from apiserver.machinery.config_file import ConfigFileError
from apiserver.outbound import kubeconfig
from apiserver.webhooks.client import CallError, ClientConfig, WebhookClient
from tests.apiserver.webhooks.test_client import PEM, answering, no_service
from tests.fakes.webhook_server import AUTHORITY, http, serving

USERS = """\
apiVersion: v1
kind: Config
users:
- {name: "guard.ns.svc", user: {token: of-the-service}}
- {name: "guard.ns.svc:8443", user: {token: of-its-other-port}}
- {name: "*.example.com", user: {username: domain, password: secret}}
- {name: "*", user: {token: of-anybody}}
"""


def users(directory: Path, text: str = USERS) -> kubeconfig.Users:
    file = directory / "users.kubeconfig"
    file.write_text(text)
    return kubeconfig.load_users(file)


@pytest.mark.parametrize(
    ("host", "port", "authorization"),
    [
        ("guard.ns.svc", 443, "Bearer of-the-service"),
        ("guard.ns.svc", 8443, "Bearer of-its-other-port"),
        ("guard.ns.svc", 9443, "Bearer of-anybody"),
        ("a.b.example.com", 443, "Basic ZG9tYWluOnNlY3JldA=="),
        ("a.b.example.com", 8443, "Bearer of-anybody"),
        ("example.com", 443, "Bearer of-anybody"),
    ],
)
def test_a_server_gets_the_credentials_that_name_it_best(tmp_path: Path, host: str, port: int, authorization: str) -> None:
    assert users(tmp_path).of(host, port).headers() == {"Authorization": authorization}


def test_without_a_name_that_fits_the_current_context_counts(tmp_path: Path) -> None:
    named = "users: [{name: me, user: {token: mine}}]\n"
    context = "current-context: c\ncontexts: [{name: c, context: {cluster: none, user: me}}]\n"
    assert users(tmp_path, named + context).of("a", 443).headers() == {"Authorization": "Bearer mine"}
    assert users(tmp_path, named).of("a", 443).headers() == {}


async def test_certificate_and_token_reach_the_webhook_that_they_are_for_and_no_other(tmp_path: Path) -> None:
    context = AUTHORITY.context()
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=PEM)
    key, certificate = AUTHORITY.pair("caller")
    (tmp_path / "caller.key").write_bytes(key)
    (tmp_path / "caller.crt").write_bytes(certificate)
    (tmp_path / "token").write_text("first\n")
    client = WebhookClient(no_service, "test")
    async with serving(answering(http(b"fine")), context=context) as server, serving(answering(http(b"fine")), context=context) as other:
        known = f"127.0.0.1:{server.port}"
        shown = "client-certificate: caller.crt, client-key: caller.key, tokenFile: token"
        found = users(tmp_path, f"users: [{{name: '{known}', user: {{{shown}}}}}]\n")

        async def call(url: str) -> None:
            config = ClientConfig(url=url, ca_bundle=PEM)
            await client.post(config, b"{}", 5.0, found.of(config.host, config.port))

        await call(server.url)
        (tmp_path / "token").write_text("second")
        await call(server.url)
        await call(other.url)
        assert server.came_as == [("Bearer first", "webhook"), ("Bearer second", "webhook")]
        assert other.came_as == [("", "")]
        (tmp_path / "token").unlink()
        with pytest.raises(CallError, match="the token file of its user cannot be read: No such file"):
            await call(server.url)
    await client.close()


def loaded(directory: Path, plugin: str, path: str) -> AdmissionConfiguration:
    file = directory / "admission.yaml"
    part = f"{{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: {path}}}"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
    file.write_text(f"{head}plugins:\n- name: {plugin}\n  configuration: {part}\n")
    return configuration.load(file)


def test_each_plugin_has_users_of_its_own(tmp_path: Path) -> None:
    users(tmp_path)
    found = loaded(tmp_path, "ValidatingAdmissionWebhook", str(tmp_path / "users.kubeconfig"))
    assert list(found.webhook_users) == ["ValidatingAdmissionWebhook"]
    assert found.webhook_users["ValidatingAdmissionWebhook"].of("x", 1).headers() == {"Authorization": "Bearer of-anybody"}


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("users.kubeconfig", "users: []", "must be an absolute file path"),
        ("/nowhere/users", "", "No such file or directory"),
        ("", "- a", "it is no kubeconfig"),
        ("", "users: [{name: a, user: {exec: {command: x}}}]", "its user has exec, which a server does not run"),
        ("", "users: [{name: a, user: {client-certificate-data: YQ==}}]", "a client certificate without a key"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, path: str, content: str, why: str) -> None:
    (tmp_path / "users.kubeconfig").write_text(content)
    with pytest.raises(ConfigFileError) as caught:
        loaded(tmp_path, "MutatingAdmissionWebhook", path or str(tmp_path / "users.kubeconfig"))
    assert why in str(caught.value)
