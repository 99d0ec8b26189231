"""Flags of authentication and authorization: what they make, and what is told of those that cannot work."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.cli import flags as all_flags
from apiserver.cli.access_flags import access_settings, add_access_flags
from apiserver.cli.errors import CommandError

PUBLIC, PRIVATE = Path("/made/sa.pub"), Path("/made/sa.key")
WEBHOOK = """
current-context: main
contexts: [{name: main, context: {cluster: hook, user: ""}}]
clusters: [{name: hook, cluster: {server: "https://127.0.0.1:1/review"}}]
"""


def parsed(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_access_flags(parser, all_flags.duration, all_flags.names)
    return parser.parse_args(given)


def refusal(*given: str) -> str:
    with pytest.raises(CommandError) as caught:
        access_settings(parsed(*given), PUBLIC, PRIVATE)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "proxies")])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    path = tmp_path / "ca.crt"
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


def test_without_flags_rbac_decides_and_the_made_keys_sign() -> None:
    made = access_settings(parsed(), PUBLIC, PRIVATE)
    assert made["authorization_mode"] == ("Node", "RBAC") and made["anonymous_auth"] is True
    assert made["service_account_key_file"] == (PUBLIC,) and made["service_account_signing_key_file"] == PRIVATE
    assert made["oidc"] is None and made["request_header"] is None and "authentication_token_webhook" not in made


def test_a_key_that_signs_checks_as_well(tmp_path: Path) -> None:
    key = tmp_path / "sa.key"
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key.write_bytes(pem)
    made = access_settings(parsed(f"--service-account-signing-key-file={key}"), PUBLIC, PRIVATE)
    assert made["service_account_key_file"] == (key,) and made["service_account_signing_key_file"] == key


def test_several_issuers_and_claims_are_taken_in_order() -> None:
    made = access_settings(
        parsed(
            "--service-account-issuer=https://new.example", "--service-account-issuer=https://old.example",
            "--oidc-issuer-url=https://idp.example", "--oidc-client-id=sampan", "--oidc-required-claim=hd=example.org,tier=gold",
            "--oidc-required-claim=x=", "--oidc-signing-algs=ES256,RS256",
        ),
        PUBLIC, PRIVATE,
    )  # fmt: skip
    assert made["service_account_issuer"] == ("https://new.example", "https://old.example")
    assert made["oidc"].required_claim == {"hd": "example.org", "tier": "gold", "x": ""}
    assert made["oidc"].signing_algs == ("ES256", "RS256") and made["oidc"].username_claim == "sub"


def test_a_proxy_needs_an_authority_and_a_user_header(authority: Path) -> None:
    assert "needs --requestheader-username-headers" in refusal(f"--requestheader-client-ca-file={authority}")
    assert "only with --requestheader-client-ca-file" in refusal("--requestheader-username-headers=X-Remote-User")
    made = access_settings(
        parsed(f"--requestheader-client-ca-file={authority}", "--requestheader-username-headers=X-Remote-User,X-User"), PUBLIC, PRIVATE
    )
    assert made["request_header"].username_headers == ("X-Remote-User", "X-User")


def test_a_webhook_and_its_mode_go_together(tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_text(WEBHOOK)
    assert "needs --authorization-webhook-config-file" in refusal("--authorization-mode=RBAC,Webhook")
    assert "needs Webhook in --authorization-mode" in refusal(f"--authorization-webhook-config-file={file}")
    made = access_settings(parsed("--authorization-mode=RBAC,Webhook", f"--authorization-webhook-config-file={file}"), PUBLIC, PRIVATE)
    webhook = made["authorization_webhook"]
    assert (webhook.version, webhook.authorized_ttl_seconds, webhook.unauthorized_ttl_seconds) == ("v1beta1", 300.0, 30.0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--authorization-mode=RBAC,Foo"], '--authorization-mode: "Foo" is not a valid authorization mode'),
        (["--authorization-mode=RBAC,RBAC"], "specified more than once"),
        (["--oidc-issuer-url=https://a"], "--oidc-issuer-url and --oidc-client-id go together"),
        (["--oidc-groups-claim=groups"], "--oidc-issuer-url and --oidc-client-id go together"),
        (["--oidc-issuer-url=http://a", "--oidc-client-id=b"], "--oidc-issuer-url: URL scheme must be https"),
        (["--oidc-issuer-url=https://a", "--oidc-client-id=b", "--oidc-signing-algs=none"], "unsupported signing algorithm 'none'"),
        (["--oidc-issuer-url=https://a", "--oidc-client-id=b", "--oidc-signing-algs=HS256"], "unsupported signing algorithm 'HS256'"),
        (["--oidc-issuer-url=https://a", "--oidc-client-id=b", "--oidc-required-claim=x"], "'x' is no CLAIM=VALUE"),
        (["--oidc-issuer-url=https://kubernetes.default.svc.cluster.local", "--oidc-client-id=b"], "must not overlap"),
        (["--service-account-max-token-expiration=5m"], "between 1h and 2^32 seconds"),
        (["--service-account-jwks-uri=http://a"], "it must be an https URL"),
        (["--authorization-config=/nonexistent"], "--authorization-config /nonexistent: No such file"),
    ],
)
def test_what_cannot_work_is_told_with_its_flag(given: list[str], told: str) -> None:
    assert told in refusal(*given)


def test_files_are_looked_into_before_the_start(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("secret,alice\n")
    assert (told := refusal(f"--token-auth-file={file}")).startswith(f"--token-auth-file {file}: line 1 has 2 columns")
    assert "secret" not in told
    for flag in ("authentication-token-webhook-config-file", "authentication-config", "service-account-key-file", "oidc-ca-file"):
        given = [f"--{flag}={file}"]
        if flag == "oidc-ca-file":
            given += ["--oidc-issuer-url=https://a", "--oidc-client-id=b"]
        told = refusal(*given)
        assert told.startswith(f"--{flag} {file}: ") and "secret" not in told


def test_configuration_files_stand_in_place_of_flags(tmp_path: Path) -> None:
    authentication, authorization = tmp_path / "authn", tmp_path / "authz"
    authentication.write_text("{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, anonymous: {enabled: false}}")
    authorization.write_text(
        "{apiVersion: apiserver.config.k8s.io/v1, kind: AuthorizationConfiguration, authorizers: [{type: RBAC, name: rbac}]}"
    )
    access_settings(parsed(f"--authentication-config={authentication}", f"--authorization-config={authorization}"), PUBLIC, PRIVATE)
    assert "exclude each other" in refusal(f"--authentication-config={authentication}", "--oidc-issuer-url=https://a")
    assert "so does --anonymous-auth" in refusal(f"--authentication-config={authentication}", "--anonymous-auth=true")
    assert "in place of --authorization-mode" in refusal(f"--authorization-config={authorization}", "--authorization-mode=RBAC")
