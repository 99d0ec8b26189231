"""Which strings may be names (apimachinery ``util/validation``, ``api/validation``), and how names are made up.

Every validator answers the list of what is wrong with a value, in the words of Kubernetes; an empty list means that it is right.
Lengths are in bytes of UTF-8. Where Kubernetes says "characters" in one place and "bytes" in another, so does this file.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from apiserver.machinery import release

DNS1123_LABEL_MAX_LENGTH = 63
DNS1123_SUBDOMAIN_MAX_LENGTH = 253
DNS1035_LABEL_MAX_LENGTH = 63
LABEL_VALUE_MAX_LENGTH = 63
QUALIFIED_NAME_MAX_LENGTH = 63
PORT_NAME_MAX_LENGTH = 15

#: no vowels, and no digits that look like letters, so that no words come out
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_SUFFIX_LENGTH = 5
#: a generated name fits into a DNS label: a longer base is cut
GENERATE_NAME_BASE_MAX_LENGTH = 63 - GENERATED_SUFFIX_LENGTH

NameRule: TypeAlias = Callable[[str, bool], list[str]]

_DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_SUBDOMAIN = _DNS1123_LABEL + r"(\." + _DNS1123_LABEL + ")*"
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = _UNDERSCORED_LABEL + r"(\." + _UNDERSCORED_LABEL + ")*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = "(" + _QUALIFIED_NAME + ")?"
_WILDCARD_SUBDOMAIN = r"\*\." + _DNS1123_SUBDOMAIN
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_ENV_VAR = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_MAP_KEY = "[-._a-zA-Z0-9]+"

_dns1123_label = re.compile(_DNS1123_LABEL).fullmatch
_dns1123_subdomain = re.compile(_DNS1123_SUBDOMAIN).fullmatch
_underscored_subdomain = re.compile(_UNDERSCORED_SUBDOMAIN).fullmatch
_dns1035_label = re.compile(_DNS1035_LABEL).fullmatch
_qualified_name = re.compile(_QUALIFIED_NAME).fullmatch
_label_value = re.compile(_LABEL_VALUE).fullmatch
_wildcard_subdomain = re.compile(_WILDCARD_SUBDOMAIN).fullmatch
_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_percent = re.compile(_PERCENT).fullmatch
_http_header = re.compile(_HTTP_HEADER).fullmatch
_env_var = re.compile(_ENV_VAR).fullmatch
_config_map_key = re.compile(_CONFIG_MAP_KEY).fullmatch
_port_name_characters = re.compile("[-a-z0-9]+").fullmatch
_one_letter = re.compile("[a-z]").search
_uuid = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE).fullmatch


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def regex_message(message: str, regex: str, *examples: str) -> str:
    """What Kubernetes says of a value that does not match: the rule, examples (with its doubled commas) and the expression."""
    if not examples:
        return f"{message} (regex used for validation is '{regex}')"
    shown = " or ".join(f"'{e}', " for e in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{regex}')"


def _too_many_characters(length: int) -> str:
    return f"must be no more than {length} characters"


def _too_many_bytes(length: int) -> str:
    return f"must be no more than {length} bytes"


def dns1123_label(value: str) -> list[str]:
    """Of a subdomain, later releases say no more than that it has dots (apimachinery ``IsDNS1123Label`` from v0.27)."""
    if len(value) <= DNS1123_LABEL_MAX_LENGTH and _dns1123_label(value):
        return []
    errors = []
    if byte_length(value) > DNS1123_LABEL_MAX_LENGTH:
        errors.append(_too_many_characters(DNS1123_LABEL_MAX_LENGTH))
    if not _dns1123_label(value):
        if _dns1123_subdomain(value) and release.since(27):
            errors.append("must not contain dots")
        else:
            message = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            errors.append(regex_message(message, _DNS1123_LABEL, "my-name", "123-abc"))
    return errors


def _subdomain(value: str, too_long: Callable[[int], str]) -> list[str]:
    if len(value) <= DNS1123_SUBDOMAIN_MAX_LENGTH and _dns1123_subdomain(value):
        return []
    errors = []
    if byte_length(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(too_long(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _dns1123_subdomain(value):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_message(message, _DNS1123_SUBDOMAIN, "example.com"))
    return errors


def dns1123_subdomain(value: str) -> list[str]:
    return _subdomain(value, _too_many_characters)


def dns1123_subdomain_with_underscores(value: str) -> list[str]:
    """The domains in which a pod's resolver searches. Until 1.33 the expression shown is that of a subdomain without underscores
    (apimachinery ``IsDNS1123SubdomainWithUnderscore`` of v0.33 and v0.34)."""
    errors = []
    if byte_length(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(_too_many_characters(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _underscored_subdomain(value):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        shown = _UNDERSCORED_SUBDOMAIN if release.since(34) else _DNS1123_SUBDOMAIN
        errors.append(regex_message(message, shown, "example.com"))
    return errors


def dns1035_label(value: str) -> list[str]:
    errors = []
    if byte_length(value) > DNS1035_LABEL_MAX_LENGTH:
        errors.append(_too_many_characters(DNS1035_LABEL_MAX_LENGTH))
    if not _dns1035_label(value):
        message = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_message(message, _DNS1035_LABEL, "my-name", "abc-123"))
    return errors


def wildcard_dns1123_subdomain(value: str) -> list[str]:
    """``*.example.com`` (RFC 1034 §4.3.3)."""
    errors = []
    if byte_length(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(_too_many_characters(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _wildcard_subdomain(value):
        message = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
            "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        errors.append(regex_message(message, _WILDCARD_SUBDOMAIN, "*.example.com"))
    return errors


_QUALIFIED_NAME_MESSAGE = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_QUALIFIED_NAME_EXAMPLES = ("MyName", "my.name", "123-abc")


def qualified_name(value: str) -> list[str]:
    """``name`` or ``dns.prefix/name``: keys of labels and annotations, finalizers, condition types, resource names.

    Since 1.35 they are called label keys (apimachinery v0.35 ``content.IsLabelKey``)."""
    prefix, slash, name = value.rpartition("/")
    if not slash:
        if len(value) <= QUALIFIED_NAME_MAX_LENGTH and _qualified_name(value):
            return []
    elif "/" in prefix:
        message = regex_message(_QUALIFIED_NAME_MESSAGE, _QUALIFIED_NAME, *_QUALIFIED_NAME_EXAMPLES)
        what = "a valid label key" if release.since(35) else "a qualified name"
        return [f"{what} {message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    errors = []
    if slash:
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors += ["prefix part " + message for message in _subdomain(prefix, _too_many_bytes)]
    if not name:
        errors.append("name part must be non-empty")
    elif byte_length(name) > QUALIFIED_NAME_MAX_LENGTH:
        errors.append("name part " + _too_many_bytes(QUALIFIED_NAME_MAX_LENGTH))
    if not _qualified_name(name):
        errors.append("name part " + regex_message(_QUALIFIED_NAME_MESSAGE, _QUALIFIED_NAME, *_QUALIFIED_NAME_EXAMPLES))
    return errors


def label_value(value: str) -> list[str]:
    if len(value) <= LABEL_VALUE_MAX_LENGTH and _label_value(value):
        return []
    errors = []
    if byte_length(value) > LABEL_VALUE_MAX_LENGTH:
        errors.append(_too_many_bytes(LABEL_VALUE_MAX_LENGTH))
    if not _label_value(value):
        message = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_message(message, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def port_name(value: str) -> list[str]:
    """An IANA service name (RFC 6335), lower case only."""
    errors = []
    if byte_length(value) > PORT_NAME_MAX_LENGTH:
        errors.append(_too_many_characters(PORT_NAME_MAX_LENGTH))
    if not _port_name_characters(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _one_letter(value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def in_range(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [f"must be between {low} and {high}, inclusive"]


def port_number(value: int) -> list[str]:
    return in_range(value, 1, 65535)


def c_identifier(value: str) -> list[str]:
    if _c_identifier(value):
        return []
    message = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'"
    return [regex_message(message, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def percent(value: str) -> list[str]:
    if _percent(value):
        return []
    return [regex_message("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")]


def http_header_name(value: str) -> list[str]:
    if _http_header(value):
        return []
    return [regex_message("a valid HTTP header must consist of alphanumeric characters or '-'", _HTTP_HEADER, "X-Header-Name")]


def _parent_directory(value: str) -> list[str]:
    if value == ".":
        return ["must not be '.'"]
    if value == "..":
        return ["must not be '..'"]
    if value.startswith(".."):
        return ["must not start with '..'"]
    return []


def env_var_name(value: str) -> list[str]:
    """The stricter rule, for names that come from ConfigMap and Secret keys."""
    errors = []
    if not _env_var(value):
        message = (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
            "and must not start with a digit"
        )
        errors.append(regex_message(message, _ENV_VAR, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return errors + _parent_directory(value)


def relaxed_env_var_name(value: str) -> list[str]:
    """The rule of current versions for ``env[*].name``."""
    errors = []
    if not value:
        errors.append("environment variable name must be non-empty")
    if any(not " " <= c <= "~" or c == "=" for c in value):
        errors.append("a valid environment variable name must consist only of printable ASCII characters other than '='")
    return errors


def config_map_key(value: str) -> list[str]:
    errors = []
    if byte_length(value) > DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.append(_too_many_characters(DNS1123_SUBDOMAIN_MAX_LENGTH))
    if not _config_map_key(value):
        message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_message(message, _CONFIG_MAP_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _parent_directory(value)


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """Names that only have to fit into a URL path: RBAC objects, and others of which nothing else is demanded."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{c}'" for c in "/%" if c in name]


def _mask_trailing_dash(name: str) -> str:
    """A base may end in a dash, since something follows it."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def _dns_subdomain_rule(name: str, prefix: bool) -> list[str]:
    return dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def _dns_label_rule(name: str, prefix: bool) -> list[str]:
    return dns1123_label(_mask_trailing_dash(name) if prefix else name)


def _dns1035_label_rule(name: str, prefix: bool) -> list[str]:
    return dns1035_label(_mask_trailing_dash(name) if prefix else name)


def _service_rule(name: str, prefix: bool) -> list[str]:
    """Any DNS label since 1.36, where RelaxedServiceNameValidation is on by default (KEP-5311); a name of RFC 1035 before."""
    return _dns_label_rule(name, prefix) if release.since(36) else _dns1035_label_rule(name, prefix)


#: what ``metadata.name`` must pass, by the name that a kind's strategy gives; the second argument is True for ``generateName``
NAME_RULES: Mapping[str, NameRule] = MappingProxyType(
    {
        "dns_subdomain": _dns_subdomain_rule,
        "dns_label": _dns_label_rule,
        "dns_1035_label": _dns1035_label_rule,
        "service": _service_rule,
        "path_segment": path_segment,
    }
)


def generate_name(base: str, source: random.Random) -> str:
    """``base`` plus five random letters; 14 million names to a base, so a collision is answered with AlreadyExists."""
    return base[:GENERATE_NAME_BASE_MAX_LENGTH] + "".join(source.choices(NAME_ALPHABET, k=GENERATED_SUFFIX_LENGTH))


def safe_encode(text: str) -> str:
    """``text`` spelt with the name alphabet, as in the pod-template-hash label."""
    return "".join(NAME_ALPHABET[ord(c) % len(NAME_ALPHABET)] for c in text)


def new_uid(source: random.Random) -> str:
    """A random UUID (RFC 9562 §5.4). Written by hand: a ``uuid.UUID`` takes four times as long, and every object gets one."""
    number = source.getrandbits(128) & _UUID_RANDOM_BITS | _UUID_VERSION_4
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_UUID_RANDOM_BITS = ~(0xF000 << 64 | 0xC000 << 48)
#: the version, and the variant of the RFC
_UUID_VERSION_4 = 0x4000 << 64 | 0x8000 << 48


def is_uuid(value: str) -> bool:
    """Whether the value has the form of a UUID. (The API server takes any text for a uid; only the forms it makes are UUIDs.)"""
    return _uuid(value) is not None
