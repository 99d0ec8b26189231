"""The file: EncryptionConfiguration of ``apiserver.config.k8s.io/v1``, parsed strictly and checked in kube-apiserver's words
(``apis/apiserver/validation/validation_encryption.go``)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from apiserver.machinery import config_file
from apiserver.machinery.field_errors import FieldError, invalid, required

GROUP_VERSION = "apiserver.config.k8s.io/v1"
KIND = "EncryptionConfiguration"
DEFAULT_TIMEOUT_SECONDS = 3.0

_AES_BYTES = (16, 24, 32)
_KEY_BYTES = {"aesgcm": _AES_BYTES, "aescbc": _AES_BYTES, "secretbox": (32,)}
_PROVIDERS = (*_KEY_BYTES, "kms", "identity")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "": ("apiVersion", "kind", "resources"),
    "resources": ("resources", "providers"),
    "providers": _PROVIDERS,
    "keyed": ("keys",),
    "keys": ("name", "secret"),
    "kms": ("apiVersion", "name", "cachesize", "endpoint", "timeout"),
    "identity": (),
}
#: fields of keys and KMS providers that are texts
_TEXTS = ("name", "secret", "apiVersion", "endpoint")
_NO_REST = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class ConfigurationError(ValueError):
    """The file cannot be used; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    name: str
    secret: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """``cipher``: aesgcm, aescbc or secretbox."""

    cipher: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kms:
    name: str
    #: path of the plugin's socket
    path: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Identity:
    pass


Provider: TypeAlias = Keyed | Kms | Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResource:
    """``*`` is a wildcard in either place."""

    group: str
    resource: str

    def text(self) -> str:
        if self.group == "" and self.resource == "*":
            return "*."
        return f"{self.resource}.{self.group}" if self.group else self.resource


EVERYTHING = GroupResource(group="*", resource="*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """``providers``: of each resource or wildcard, in the order of the file."""

    providers: Mapping[GroupResource, tuple[Provider, ...]]


def parse(text: bytes, file: str) -> Configuration:
    """Raises ConfigurationError."""
    if not text.strip():
        raise ConfigurationError(f'error while parsing file: encryption provider configuration file "{file}" is empty')
    prefix = f'error while parsing file: error decoding encryption provider configuration file "{file}"'
    try:
        document = config_file.load_yaml(text)
    except config_file.ConfigFileError as error:
        raise ConfigurationError(f"{prefix}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{prefix}: couldn't get version/kind; json parse error: not an object")
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != GROUP_VERSION or kind != KIND:
        raise ConfigurationError(f'{prefix}: no kind "{kind}" is registered for version "{version}"')
    unknown = list(_unknown(document))
    if unknown:
        told = ", ".join(f'unknown field "{field}"' for field in unknown)
        raise ConfigurationError(f"{prefix}: strict decoding error: {told}")
    errors = list(_problems(document))
    if errors:
        told = errors[0].text() if len(errors) == 1 else f"[{', '.join(error.text() for error in errors)}]"
        raise ConfigurationError(f"error while parsing file: {told}")
    return _configuration(document)


def _unknown(document: Mapping[str, Any]) -> Iterator[str]:
    def check(part: Any, path: str, sort: str) -> Iterator[str]:
        if part is None:
            return
        if not isinstance(part, dict):
            raise ConfigurationError(f"error while parsing file: {path or KIND} is not an object")
        for field, value in part.items():
            # values are not shown: they may be keys
            if field in _TEXTS and sort in ("keys", "kms") and value is not None and not isinstance(value, str):
                raise ConfigurationError(f"error while parsing file: {path}.{field} is not a text")
            if field not in _FIELDS[sort]:
                yield f"{path}.{field}" if path else str(field)

    def each(part: Any, field: str, path: str) -> Iterator[tuple[str, Any]]:
        found = part.get(field) or ()
        if not isinstance(found, (list, tuple)):
            raise ConfigurationError(f"error while parsing file: {path}{field} is not a list")
        yield from ((f"{path}{field}[{position}]", entry) for position, entry in enumerate(found))

    yield from check(document, "", "")
    for path, entry in each(document, "resources", ""):
        yield from check(entry, path, "resources")
        for at, name in each(entry or {}, "resources", f"{path}."):
            if not isinstance(name, str):
                raise ConfigurationError(f"error while parsing file: {at} is not a text")
        for at, provider in each(entry or {}, "providers", f"{path}."):
            yield from check(provider, at, "providers")
            for name, part in (provider or {}).items():
                if name not in _PROVIDERS:
                    continue
                yield from check(part, f"{at}.{name}", "keyed" if name in _KEY_BYTES else name)
                if name in _KEY_BYTES:
                    for where, key in each(part or {}, "keys", f"{at}.{name}."):
                        yield from check(key, where, "keys")


def _problems(document: Mapping[str, Any]) -> Iterator[FieldError]:
    resources = document.get("resources") or ()
    if not resources:
        yield required("resources", "at least one resources is required")
    names: set[str] = set()
    for position, entry in enumerate(resources):
        path = f"resources[{position}]"
        entry = entry or {}
        listed = [str(name) for name in entry.get("resources") or ()]
        if not listed:
            yield required(f"{path}.resources", f"at least one {path}.resources is required")
        yield from _overlaps(listed, f"{path}.resources")
        yield from _bad_names(listed, f"{path}.resources")
        providers = entry.get("providers") or ()
        if not providers:
            yield required(f"{path}.providers", f"at least one {path}.providers is required")
        for at, provider in enumerate(providers):
            yield from _provider_problems(provider or {}, f"{path}.providers[{at}]", names)


def _overlaps(listed: list[str], path: str) -> Iterator[FieldError]:
    parsed = [parse_group_resource(name) for name in listed]
    if len(set(parsed)) != len(parsed):
        yield invalid(path, listed, "the same resource cannot be specified multiple times")
    distinct = list(dict.fromkeys(parsed))
    for one in distinct:
        others = [other for other in distinct if other != one]
        if (one == EVERYTHING and others) or (one.resource == "*" and any(other.group == one.group for other in others)):
            words = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
            yield invalid(path, listed, words)
            return


def _bad_names(listed: list[str], path: str) -> Iterator[FieldError]:
    for position, name in enumerate(listed):
        parsed = parse_group_resource(name)
        if name != name.lower():
            words = "resource name should not contain capital letters"
        elif name == "*":
            words = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
        elif name in _NO_REST:
            words = "resources which do not have REST API/s cannot be encrypted"
        elif parsed.group == "events.k8s.io":
            words = "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
        elif parsed.group == "extensions":
            words = "'extensions' group has been removed and cannot be used for encryption"
        elif parsed.group == "*" and parsed.resource != "*":
            words = "encrypting the same resource across groups is not supported"
        else:
            continue
        yield invalid(f"{path}[{position}]", name, words)


def _provider_problems(provider: Mapping[str, Any], path: str, names: set[str]) -> Iterator[FieldError]:
    given = [name for name in _PROVIDERS if name in provider and (provider[name] is not None or name == "identity")]
    if not given:
        words = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
        yield invalid(path, dict(provider), words)
        return
    if len(given) > 1:
        words = "more than one provider specified in a single element, should split into different list elements"
        yield invalid(path, "REDACTED", words)
        return
    name = given[0]
    if name == "kms":
        yield from _kms_problems(provider[name], f"{path}.kms", names)
    elif name in _KEY_BYTES:
        keys = provider[name].get("keys") or ()
        if not keys:
            yield required(f"{path}.{name}.keys", "at least one keys is required")
        for position, key in enumerate(keys):
            yield from _key_problems(key or {}, f"{path}.{name}.keys[{position}]", _KEY_BYTES[name])


def _key_problems(key: Mapping[str, Any], path: str, lengths: tuple[int, ...]) -> Iterator[FieldError]:
    if not key.get("name"):
        yield required(f"{path}.name", "name is a mandatory field for a key")
    if not key.get("secret"):
        yield required(f"{path}.secret", "secret is a mandatory field for a key")
        return
    try:
        secret = base64.b64decode(str(key["secret"]), validate=True)
    except binascii.Error:
        yield invalid(f"{path}.secret", "REDACTED", "secrets must be base64 encoded")
        return
    if len(secret) not in lengths:
        expected = f"[{' '.join(map(str, lengths))}]"
        words = f"secret is not of the expected length, got {len(secret)}, expected one of {expected}"
        yield invalid(f"{path}.secret", "REDACTED", words)


def _kms_problems(kms: Mapping[str, Any], path: str, names: set[str]) -> Iterator[FieldError]:
    name = str(kms.get("name") or "")
    version = kms.get("apiVersion") or "v1"
    if not name:
        yield required(f"{path}.name", "name is a mandatory field for a provider")
    elif ":" in name:
        yield invalid(f"{path}.name", name, f"invalid KMS provider name {name}, must not contain ':'")
    elif name in names and version != "v1":
        yield invalid(f"{path}.name", name, f"duplicate KMS provider name {name}, names must be unique")
    names.add(name)
    seconds = _seconds(kms.get("timeout", "3s"))
    if seconds is None or seconds <= 0:
        yield invalid(f"{path}.timeout", kms.get("timeout"), "timeout should be a positive value")
    endpoint = str(kms.get("endpoint") or "")
    if not endpoint:
        yield invalid(f"{path}.endpoint", "", "endpoint is a mandatory field for a kms")
    elif not endpoint.startswith("unix://"):
        scheme = endpoint.partition("://")[0] if "://" in endpoint else ""
        yield invalid(f"{path}.endpoint", endpoint, f'unsupported scheme "{scheme}" for KMS provider, only unix is supported')
    if version != "v1" and kms.get("cachesize") is not None:
        yield invalid(f"{path}.cachesize", kms["cachesize"], "cachesize is not supported in v2")
    if version not in ("v1", "v2"):
        yield invalid(f"{path}.apiVersion", version, f"unsupported apiVersion {version} for KMS provider, only v1 and v2 are supported")


def _seconds(text: Any) -> float | None:
    found = _DURATION.findall(str(text))
    if not found or "".join(number + unit for number, unit in found) != str(text):
        return None
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in found)


def parse_group_resource(name: str) -> GroupResource:
    resource, _, group = name.partition(".")
    return GroupResource(group=group, resource=resource)


def _configuration(document: Mapping[str, Any]) -> Configuration:
    found: dict[GroupResource, tuple[Provider, ...]] = {}
    wildcards: set[GroupResource] = set()
    for entry in document["resources"]:
        providers = tuple(_provider(provider) for provider in entry["providers"])
        here: set[GroupResource] = set()
        for name in entry["resources"]:
            resource = parse_group_resource(str(name))
            for mask in (GroupResource(group=resource.group, resource="*"), EVERYTHING):
                if mask in wildcards and resource != mask:
                    raise ConfigurationError(
                        f'error while building transformers: resource "{resource.text()}" is masked by earlier rule "{mask.text()}"'
                    )
            found[resource] = (*found.get(resource, ()), *providers)
            if resource.resource == "*":
                here.add(resource)
        wildcards |= here
    return Configuration(providers=found)


def _provider(provider: Mapping[str, Any]) -> Provider:
    for name in _KEY_BYTES:
        if provider.get(name) is not None:
            keys = tuple(Key(name=str(key["name"]), secret=base64.b64decode(key["secret"])) for key in provider[name]["keys"])
            return Keyed(cipher=name, keys=keys)
    kms = provider.get("kms")
    if kms is None:
        return Identity()
    if (kms.get("apiVersion") or "v1") == "v1":
        words = "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
        raise ConfigurationError(f"error while building transformers: {words}")
    seconds = _seconds(kms.get("timeout", "3s"))
    assert seconds is not None
    # unix:///path and unix://@name, as grpc's Go library takes them
    return Kms(name=str(kms["name"]), path=str(kms["endpoint"]).removeprefix("unix://"), timeout_seconds=seconds)
