"""Admission webhooks and the rules by which admission policies match (admissionregistration ``validation``), and where a webhook
is reached (also of CRD conversion)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from apiserver.machinery import go_json, names
from apiserver.machinery.field_errors import FieldError, duplicate, invalid, not_supported, required, too_many
from apiserver.registry.validation import formats
from apiserver.registry.validation.common import Errors, each, label_selector

Part = Mapping[str, Any]

_REVIEW_VERSIONS = ("v1", "v1beta1")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile("[A-Za-z][-+.A-Za-z0-9]*").fullmatch
_URL_FORM = "; desired format: https://host[/path]"
TIMEOUT_SECONDS_MAX = 30
MATCH_CONDITIONS_MAX = 64
#: adds to errors, of a path and an expression, why that does not compile
Compiles = Callable[[Errors, str, str], None]
_NOTHING: Part = {}


def configuration(new: Part, old: Part | None, compiles: Compiles | None = None) -> list[FieldError]:
    """A Validating- or MutatingWebhookConfiguration. What an old object already had wrong stays allowed (``old``). ``compiles`` tells why
    the expression of a condition does not compile."""
    out: Errors = []
    had = (old or _NOTHING).get("webhooks") or ()
    strict_effects = old is None or all(hook.get("sideEffects") in _NO_SIDE_EFFECTS for hook in had)
    known_versions = old is None or all(
        set(hook.get("admissionReviewVersions") or ()) & set(_REVIEW_VERSIONS) for hook in had if hook.get("admissionReviewVersions")
    )
    unique = old is None or len({hook.get("name") for hook in had}) == len(had)
    seen: set[str] = set()
    conditions = {hook.get("name"): hook.get("matchConditions") for hook in had}
    for i, hook in each(out, new.get("webhooks") or ()):
        path, name = f"webhooks[{i}]", hook.get("name") or ""
        _webhook(out, path, hook, _NO_SIDE_EFFECTS if strict_effects else _SIDE_EFFECTS)
        unchanged = name in conditions and conditions[name] == hook.get("matchConditions")
        match_conditions(out, f"{path}.matchConditions", hook.get("matchConditions") or (), None if unchanged else compiles)
        review_versions(out, f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or (), known_versions)
        if unique and name:
            if name in seen:
                out.append(duplicate(f"{path}.name", name))
            seen.add(name)
    return out


def _webhook(out: Errors, path: str, hook: Part, side_effects: tuple[str, ...]) -> None:
    name = hook.get("name") or ""
    if not name:
        out.append(required(f"{path}.name"))
    for message in formats.fully_qualified_name(name) if name else ():
        out.append(invalid(f"{path}.name", name, message))
    for i, rule in each(out, hook.get("rules") or ()):
        rule_with_operations(out, f"{path}.rules[{i}]", rule)
    _supported(out, f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    _supported(out, f"{path}.matchPolicy", hook.get("matchPolicy"), ("Equivalent", "Exact"))
    if hook.get("sideEffects") is None:
        out.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(side_effects)}"))
    _supported(out, f"{path}.sideEffects", hook.get("sideEffects"), side_effects)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= TIMEOUT_SECONDS_MAX:
        words = f"the timeout value must be between 1 and {TIMEOUT_SECONDS_MAX} seconds"
        out.append(invalid(f"{path}.timeoutSeconds", seconds, words))
    for field in ("namespaceSelector", "objectSelector"):
        label_selector(out, f"{path}.{field}", hook.get(field))
    _supported(out, f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    client_config(out, f"{path}.clientConfig", hook.get("clientConfig") or _NOTHING)


def _supported(out: Errors, path: str, value: str | None, supported: tuple[str, ...]) -> None:
    if value is not None and value not in supported:
        out.append(not_supported(path, value, list(supported)))


def client_config(out: Errors, path: str, config: Part) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        out.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _url(out, f"{path}.url", url)
    elif service is not None:
        service_reference(out, f"{path}.service", service)


def _url(out: Errors, path: str, url: str) -> None:
    wrong = _url_error(url)
    if wrong:
        out.append(required(path, f"url must be a valid URL: parse {go_json.quote(url)}: {wrong}{_URL_FORM}"))
        return
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        out.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not host:
        out.append(invalid(path, host, f"host must be specified{_URL_FORM}"))
    if user:
        out.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        out.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        out.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))


def _url_error(url: str) -> str:
    """Why Go cannot parse a URL; "" where it can."""
    if any(c < " " or c == "\x7f" for c in url):
        return "net/url: invalid control character in URL"
    if escape := _BAD_ESCAPE.search(url):
        return f'invalid URL escape "{url[escape.start() : escape.start() + 3]}"'
    scheme, colon, _ = url.partition(":")
    if colon and not scheme:
        return "missing protocol scheme"
    if colon and not _SCHEME(scheme) and "/" not in scheme:
        return "first path segment in URL cannot contain colon"
    try:
        _ = urlsplit(url).port
    except ValueError:
        host = urlsplit(url).netloc.rpartition("@")[2]
        return f"invalid port {go_json.quote(':' + host.rpartition(':')[2])} after host"
    return ""


def service_reference(out: Errors, path: str, service: Part) -> None:
    """kube-apiserver hands over namespace and name the wrong way round, so that each is reported as the other."""
    if not service.get("namespace"):
        out.append(required(f"{path}.name"))
    if not service.get("name"):
        out.append(required(f"{path}.namespace"))
    port = service.get("port") or 0
    if found := names.port_number(port):
        out.append(invalid(f"{path}.port", port, "port is not valid: " + ", ".join(found)))
    where = service.get("path")
    if where is None or where in ("", "/"):
        return
    if where == "//":
        out.append(invalid(f"{path}.path", where, "segment[0] may not be empty"))
        return
    if not where.startswith("/"):
        out.append(invalid(f"{path}.path", where, "must start with a '/'"))
    for i, step in each(out, where[1:].removesuffix("/").split("/")):
        if not step:
            out.append(invalid(f"{path}.path", where, f"segment[{i}] may not be empty"))
            continue
        for message in names.dns1123_subdomain(step):
            out.append(invalid(f"{path}.path", where, f"segment[{i}]: {message}"))


def review_versions(out: Errors, path: str, versions: Sequence[str], must_be_known: bool) -> None:
    if not versions:
        out.append(required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}"))
        return
    for i, version in each(out, versions):
        if version in versions[:i]:
            out.append(invalid(f"{path}[{i}]", version, "duplicate version"))
            continue
        for message in names.dns1035_label(version):
            out.append(invalid(f"{path}[{i}]", version, message))
    if must_be_known and not set(versions) & set(_REVIEW_VERSIONS):
        out.append(invalid(path, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))


def match_conditions(out: Errors, path: str, conditions: Sequence[Part], compiles: Compiles | None) -> None:
    """Names, presence, and whether the expressions compile."""
    if len(conditions) > MATCH_CONDITIONS_MAX:
        out.append(too_many(path, len(conditions), MATCH_CONDITIONS_MAX))
    seen: set[str] = set()
    for i, condition in each(out, conditions):
        name = condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            out.append(required(f"{path}[{i}].expression"))
        elif compiles is not None:
            compiles(out, f"{path}[{i}].expression", condition["expression"])
        if not name:
            out.append(required(f"{path}[{i}].name"))
        else:
            for message in names.qualified_name(name):
                out.append(invalid(f"{path}[{i}].name", name, message))
            if name in seen:
                out.append(duplicate(f"{path}[{i}].name", name))
            seen.add(name)


def rule_with_operations(out: Errors, path: str, rule: Part) -> None:
    operations = list(rule.get("operations") or ())
    if not operations:
        out.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        out.append(invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations"))
    for i, operation in each(out, operations):
        if operation not in _OPERATIONS:
            out.append(not_supported(f"{path}.operations[{i}]", operation, list(_OPERATIONS)))
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = list(rule.get(field) or ())
        if not values:
            out.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            out.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}"))
    for i, version in each(out, rule.get("apiVersions") or ()):
        if not version:
            out.append(required(f"{path}.apiVersions[{i}]"))
    _resources(out, f"{path}.resources", list(rule.get("resources") or ()))
    _supported(out, f"{path}.scope", rule.get("scope"), _SCOPES)


def _resources(out: Errors, path: str, resources: list[str]) -> None:
    """``pods``, ``pods/status``, ``pods/*``, ``*/scale``, ``*``, ``*/*``: none may be covered by another."""
    if not resources:
        out.append(required(path))
    whole: set[str] = set()
    everywhere: set[str] = set()
    for i, entry in each(out, resources):
        if not entry:
            out.append(required(f"{path}[{i}]"))
            continue
        resource, slash, sub = entry.partition("/")
        if not slash:
            continue
        if resource in whole:
            out.append(invalid(f"{path}[{i}]", entry, f"if '{resource}/*' is present, must not specify {entry}"))
        if sub in everywhere:
            out.append(invalid(f"{path}[{i}]", entry, f"if '*/{sub}' is present, must not specify {entry}"))
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        out.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(entry and "/" not in entry and entry != "*" for entry in resources):
        words = "if '*' is present, must not specify other resources without subresources"
        out.append(invalid(path, resources, words))
