"""Names: apimachinery ``util/validation``."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import names

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize("value", ["a", "0", "a-b", "x" * 63])
def test_a_dns_label_is_right(value: str) -> None:
    assert names.dns1123_label(value) == []


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("", [LABEL]),
        ("A", [LABEL]),
        ("a\n", [LABEL]),
        ("-a", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("x" * 64, ["must be no more than 63 characters"]),
        ("X" * 64, ["must be no more than 63 characters", LABEL]),
    ],
)
def test_a_dns_label_is_wrong(value: str, messages: list[str]) -> None:
    assert names.dns1123_label(value) == messages


def test_subdomains() -> None:
    assert names.dns1123_subdomain("a.b-c.9") == []
    assert names.dns1123_subdomain("a..b") == [SUBDOMAIN]
    assert names.dns1123_subdomain("a" * 254) == ["must be no more than 253 characters"]
    assert names.dns1123_subdomain("bad_name") == [SUBDOMAIN]


@pytest.mark.parametrize("value", ["simple", "now-with-dashes", "1.2.3.4/5678", "Uppercase_Is_OK_123", "example.com/Uppercase", "a" * 63])
def test_a_qualified_name_is_right(value: str) -> None:
    assert names.qualified_name(value) == []


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("", ["name part must be non-empty", NAME_PART]),
        ("/x", ["prefix part must be non-empty"]),
        ("-x", [NAME_PART]),
        ("example.com/", ["name part must be non-empty", NAME_PART]),
        ("Upper.com/x", ["prefix part " + SUBDOMAIN]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("a" * 254 + "/x", ["prefix part must be no more than 253 bytes"]),
    ],
)
def test_a_qualified_name_is_wrong(value: str, messages: list[str]) -> None:
    assert names.qualified_name(value) == messages


def test_a_name_of_three_parts_is_not_qualified() -> None:
    (message,) = names.qualified_name("a/b/c")
    assert message.startswith("a valid label key must consist of")
    assert message.endswith("with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")


def test_label_values() -> None:
    assert names.label_value("") == []
    assert names.label_value("a_b.C-9") == []
    assert names.label_value("a" * 64) == ["must be no more than 63 bytes"]
    (message,) = names.label_value("ü")
    assert message.startswith("a valid label must be an empty string or consist of")


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("http", []),
        ("", ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)", "must contain at least one letter (a-z)"]),
        ("80", ["must contain at least one letter (a-z)"]),
        ("a--b", ["must not contain consecutive hyphens"]),
        ("-a", ["must not begin or end with a hyphen"]),
        ("a" * 16, ["must be no more than 15 characters"]),
    ],
)
def test_port_names(value: str, messages: list[str]) -> None:
    assert names.port_name(value) == messages


def test_other_rules() -> None:
    assert names.port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert names.config_map_key("..") == ["must not be '..'"]
    assert names.config_map_key("..a") == ["must not start with '..'"]
    assert names.config_map_key("bad key") == [
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
        "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    ]
    assert names.relaxed_env_var_name("A=B") == [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]
    assert names.relaxed_env_var_name("") == ["environment variable name must be non-empty"]
    assert names.path_segment("a/b%c") == ["may not contain '/'", "may not contain '%'"]
    assert names.path_segment(".") == ["may not be '.'"]
    assert names.path_segment(".", True) == []
    assert names.wildcard_dns1123_subdomain("*.example.com") == []
    assert len(names.wildcard_dns1123_subdomain("example.com")) == 1
    assert names.dns1035_label("1a") and not names.dns1035_label("a1")
    assert names.env_var_name("1A") and not names.env_var_name("A.b-1")
    assert names.percent("5") and not names.percent("5%")


def test_a_base_of_generated_names_may_end_in_a_dash() -> None:
    assert names.NAME_RULES["dns_label"]("web-", True) == []
    assert names.NAME_RULES["dns_label"]("web-", False) == [LABEL]
    assert names.NAME_RULES["dns_subdomain"]("Bad_", True) == [SUBDOMAIN]


def test_a_generated_name_ends_in_five_letters_of_the_alphabet_and_fits_a_label() -> None:
    name = names.generate_name("web-", random.Random(7))
    assert name.startswith("web-") and len(name) == 9 and set(name[4:]) <= set(names.NAME_ALPHABET)
    assert name != names.generate_name("web-", random.Random(8))
    long = names.generate_name("x" * 100, random.Random(7))
    assert len(long) == 63 and long.startswith("x" * 58)


def test_uids_are_random_uuids() -> None:
    uid = names.new_uid(random.Random(1))
    assert names.is_uuid(uid) and uid[14] == "4" and uid != names.new_uid(random.Random(2))
    assert not names.is_uuid("11111111-2222")


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    for rule in names.NAME_RULES.values():
        for prefix in (False, True):
            assert all(isinstance(m, str) for m in rule(text, prefix))
    for check in (names.qualified_name, names.label_value, names.port_name, names.config_map_key, names.relaxed_env_var_name):
        check(text)
