"""AdmissionReview: the question for a webhook, and what its answer says once it was checked (``admission.k8s.io`` v1 and v1beta1)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.machinery import go_json
from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
JSON_PATCH = "JSONPatch"
#: Annotations that one answer may put into the audit event, and how long each may be: they stay in memory for as long as the request.
AUDIT_ANNOTATIONS_MAX = 64
AUDIT_ANNOTATION_CHARACTERS_MAX = 64 * 1024

_RESPONSE = "AdmissionResponse.response"


class AnswerError(Exception):
    """An answer that cannot be used. ``invalid``: it is a review, but not an answer to what was asked."""

    def __init__(self, why: str, *, invalid: bool = False) -> None:
        super().__init__(f"received invalid webhook response: {why}" if invalid else f"failed to call webhook: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``patch`` is the JSON of a JSON patch, empty for none; ``result`` a Status, as far as the webhook gave one."""

    allowed: bool
    result: dict[str, Any] | None
    patch: bytes
    warnings: tuple[str, ...]
    audit_annotations: dict[str, str]


def request(
    version: str, uid: str, attributes: AdmissionAttributes, seen: AdmissionAttributes, new: bytes | None, old: bytes | None
) -> bytes:
    """The JSON of the question. ``seen`` is the request in the version that the webhook asked for, ``attributes`` in its own; ``new`` and
    ``old`` are the JSON of the objects of ``seen``, None for none."""
    info, to, subresource = attributes.info, seen.info, attributes.subresource
    asked: dict[str, Any] = {"uid": uid, "kind": _kind(to, subresource), "resource": _resource(to)}
    if subresource:
        asked["subResource"] = subresource
    asked["requestKind"] = _kind(info, subresource)
    asked["requestResource"] = _resource(info)
    if subresource:
        asked["requestSubResource"] = subresource
    if attributes.name:
        asked["name"] = attributes.name
    if namespace := rule_matching.namespace_of(attributes):
        asked["namespace"] = namespace
    asked["operation"] = attributes.operation.value
    asked["userInfo"] = _user(attributes)
    asked["object"] = None if new is None else orjson.Fragment(new)
    asked["oldObject"] = None if old is None else orjson.Fragment(old)
    asked["dryRun"] = attributes.dry_run
    asked["options"] = attributes.options or None
    return orjson.dumps({"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": asked})


def _kind(info: ResourceInfo, subresource: str) -> Object:
    group, version, kind = rule_matching.kind_of(info, subresource)
    return {"group": group, "version": version, "kind": kind}


def _resource(info: ResourceInfo) -> Object:
    return {"group": info.group, "version": info.version, "resource": info.resource}


def _user(attributes: AdmissionAttributes) -> Object:
    user = attributes.user
    found: Object = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = list(user.groups)
    if user.extra:
        found["extra"] = {key: list(values) for key, values in user.extra.items()}
    return found


def read(body: bytes, version: str, uid: str, *, mutating: bool) -> Answer:
    """What the JSON of an answer says. Raises AnswerError."""
    review = _decoded(body)
    response = _typed(review, "response", dict, "AdmissionReview", "v1.AdmissionResponse")
    if response is None:
        if review.get("kind"):  # what says no kind is taken for a review
            _check_kind(review, version)
        raise AnswerError("webhook response was absent", invalid=True)
    said_uid = _typed(response, "uid", str, _RESPONSE, "types.UID") or ""
    if version == "v1" and said_uid != uid:
        raise AnswerError(f"expected response.uid={go_json.quote(uid)}, got {go_json.quote(said_uid)}", invalid=True)
    _check_kind(review, version)
    return Answer(
        allowed=bool(_typed(response, "allowed", bool, _RESPONSE, "bool")),
        result=_typed(response, "status", dict, _RESPONSE, "v1.Status"),
        patch=_patch(response, version, mutating=mutating),
        warnings=_warnings(response),
        audit_annotations=_annotations(response),
    )


def _decoded(body: bytes) -> dict[str, Any]:
    prefix = "couldn't get version/kind; json parse error: "
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        from apiserver.schemas import json_syntax

        raise AnswerError(f"{prefix}{json_syntax.explain(body) or error}") from error
    if not isinstance(review, dict):
        raise AnswerError(f"{prefix}json: cannot unmarshal {go_json.kind_of(review)} into Go value of type {go_json.TYPE_META}")
    return review


def _check_kind(review: dict[str, Any], version: str) -> None:
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    expected = f"{GROUP}/{version}"
    if version == "v1" and (api_version != expected or kind != KIND):
        why = f"expected webhook response of {expected}, Kind={KIND}, got {api_version or '/'}, Kind={kind}"
        raise AnswerError(why, invalid=True)


def _patch(response: dict[str, Any], version: str, *, mutating: bool) -> bytes:
    """The JSON of the patch. With v1beta1 its type need not be said, and a validating webhook's patch is passed over."""
    text = _typed(response, "patch", str, _RESPONSE, "[]uint8") or ""
    try:
        patch = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AnswerError(f"illegal base64 data at input byte {_first_bad(text)}") from error
    patch_type = _typed(response, "patchType", str, _RESPONSE, "v1.PatchType")
    if version != "v1":
        return patch if mutating else b""
    if not mutating:
        if patch or patch_type is not None:
            raise AnswerError(f"validating webhook may not return response.{'patch' if patch else 'patchType'}", invalid=True)
        return b""
    if patch and patch_type is None:
        raise AnswerError("webhook returned response.patch but not response.patchType", invalid=True)
    if not patch and patch_type is not None:
        raise AnswerError("webhook returned response.patchType but not response.patch", invalid=True)
    if patch_type == "":
        raise AnswerError('webhook returned invalid response.patchType of ""', invalid=True)
    if patch_type != JSON_PATCH and patch.strip() == b"[]":
        return b""
    if patch and patch_type != JSON_PATCH:
        raise AnswerError(f"unsupported patch type {go_json.quote(str(patch_type))}", invalid=True)
    return patch


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _first_bad(text: str) -> int:
    return next((at for at, character in enumerate(text) if character not in _BASE64), len(text) // 4 * 4)


def _warnings(response: dict[str, Any]) -> tuple[str, ...]:
    found = _typed(response, "warnings", list, _RESPONSE, "[]string") or ()
    for text in found:
        if not isinstance(text, str):
            raise _wrong_type(text, _RESPONSE, "warnings", "string")
    return tuple(found)


def _annotations(response: dict[str, Any]) -> dict[str, str]:
    found = _typed(response, "auditAnnotations", dict, _RESPONSE, "map[string]string") or {}
    for value in found.values():
        if not isinstance(value, str):
            raise _wrong_type(value, _RESPONSE, "auditAnnotations", "string")
    return {key: value[:AUDIT_ANNOTATION_CHARACTERS_MAX] for key, value in list(found.items())[:AUDIT_ANNOTATIONS_MAX]}


def _typed(parent: dict[str, Any], name: str, kind: type, struct: str, go_type: str) -> Any:
    """None where the field is absent or null."""
    value = parent.get(name)
    if value is not None and not isinstance(value, kind):
        raise _wrong_type(value, struct, name, go_type)
    return value


def _wrong_type(value: Any, struct: str, name: str, go_type: str) -> AnswerError:
    return AnswerError(f"json: cannot unmarshal {go_json.kind_of(value)} into Go struct field {struct}.{name} of type {go_type}")
