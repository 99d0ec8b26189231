"""The file as kube-apiserver reads it, and its words for one that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apiserver.objectstore.encryption.configuration import Configuration, ConfigurationError, GroupResource, Identity, Keyed, Kms, parse

KEY = {"name": "k", "secret": "c2VjcmV0IGlzIHNlY3VyZQ=="}


def config(*entries: tuple[list[str], list[dict[str, Any]]], **more: Any) -> bytes:
    resources = [{"resources": names, "providers": providers} for names, providers in entries]
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": resources, **more}
    return yaml.safe_dump(document).encode()


def error(text: bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "f.yaml")
    return str(caught.value)


def test_a_whole_file() -> None:
    kms = {"apiVersion": "v2", "name": "vault", "endpoint": "unix:///run/kms.sock", "timeout": "500ms"}
    found = parse(config((["secrets", "*.apps"], [{"aesgcm": {"keys": [KEY]}}, {"identity": {}}]), (["*.*"], [{"kms": kms}])), "f.yaml")
    assert isinstance(found, Configuration)
    [aes, identity] = found.providers[GroupResource(group="", resource="secrets")]
    assert isinstance(aes, Keyed) and aes.keys[0].secret == b"secret is secure" and isinstance(identity, Identity)
    assert found.providers[GroupResource(group="*", resource="*")] == (Kms(name="vault", path="/run/kms.sock", timeout_seconds=0.5),)


def keyed(cipher: str = "aesgcm", /, **key: str) -> dict[str, Any]:
    return {cipher: {"keys": [KEY | key]}}


PREFIX = "error while parsing file: "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b" \n", PREFIX + 'encryption provider configuration file "f.yaml" is empty'),
        (
            config(kind="Other"),
            PREFIX + 'error decoding encryption provider configuration file "f.yaml": '
            'no kind "Other" is registered for version "apiserver.config.k8s.io/v1"',
        ),
        (
            config((["secrets"], [{"aesgcm": {"keys": [KEY], "salt": 1}}])),
            PREFIX + 'error decoding encryption provider configuration file "f.yaml": '
            'strict decoding error: unknown field "resources[0].providers[0].aesgcm.salt"',
        ),
        (config(), PREFIX + "resources: Required value: at least one resources is required"),
        (
            config((["secrets"], [keyed(secret="c2hvcnQ=")])),
            PREFIX + 'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": '
            "secret is not of the expected length, got 5, expected one of [16 24 32]",
        ),
        (
            config((["secrets"], [keyed("secretbox", secret="not base64")])),
            PREFIX + 'resources[0].providers[0].secretbox.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
        ),
        (
            config((["secrets"], [keyed(name="")])),
            PREFIX + "resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key",
        ),
        (
            config((["secrets", "*."], [{"identity": {}}])),
            PREFIX + 'resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources such as \'secrets\' and '
            "'*.' in the same resource list is not allowed as they will be masked",
        ),
        (
            config((["*.events.k8s.io"], [{"identity": {}}])),
            PREFIX + "resources[0].resources[0]: Invalid value: \"*.events.k8s.io\": '*.events.k8s.io' objects are stored using the "
            "'events' API group in etcd. Use 'events' instead in the config file",
        ),
        (
            config((["*.*"], [{"identity": {}}]), (["secrets"], [{"identity": {}}])),
            'error while building transformers: resource "secrets" is masked by earlier rule "*.*"',
        ),
        (
            config((["secrets"], [{"kms": {"apiVersion": "v2", "name": "a:b", "endpoint": "tcp://x"}}])),
            PREFIX + '[resources[0].providers[0].kms.name: Invalid value: "a:b": invalid KMS provider name a:b, must not contain '
            '\':\', resources[0].providers[0].kms.endpoint: Invalid value: "tcp://x": unsupported scheme "tcp" for KMS provider, only '
            "unix is supported]",
        ),
    ],
)
def test_refusals(text: bytes, words: str) -> None:
    assert error(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (config((True, [keyed()])), "resources[0].resources is not a list"),  # type: ignore[arg-type]
        (config(("secrets", [keyed()])), "resources[0].resources is not a list"),  # type: ignore[arg-type]
        (config(([3], [keyed()])), "resources[0].resources[0] is not a text"),  # type: ignore[list-item]
        (config((["secrets"], [keyed(secret=123456789)])), "resources[0].providers[0].aesgcm.keys[0].secret is not a text"),
        (b'{"a":' * 3000, ""),
        (b"kind: 2001-99-99", ""),
    ],
)
def test_wrong_types_and_what_yaml_cannot_hold_are_told(text: bytes, words: str) -> None:
    assert words in error(text) and "123456789" not in error(text)


def test_a_line_with_a_key_is_not_shown_where_the_syntax_is_wrong() -> None:
    text = config((["secrets"], [keyed()])).decode()
    line = next(line for line in text.splitlines() if "secret:" in line)
    told = error(text.replace(line, line + " : [").encode())
    assert line.rpartition(" ")[2] not in told and "encryption provider configuration file" in told


@pytest.mark.parametrize("text", [b"[", b"- a", b"{a: *x}", config((["secrets"], [3])), config(([3], [keyed()])), config(("x", "y"))])  # type: ignore[list-item, arg-type]
def test_whatever_the_file_holds_it_is_no_crash(text: bytes) -> None:
    try:
        parse(text, "f.yaml")
    except ConfigurationError as found:
        assert "\n" not in str(found)
