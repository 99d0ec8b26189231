"""ConversionReview: the question for a conversion webhook, and what its answer must keep of the objects (``apiextensions.k8s.io`` v1 and
v1beta1). A webhook changes what an object says; its identity and all other metadata but labels and annotations are the server's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.machinery import go_json, labels, object_meta_validation, objects
from apiserver.machinery.objects import Object

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
REVIEW_VERSIONS = ("v1", "v1beta1")
_IDENTITY = (("kind", "kind"), ("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


_RESPONSE = "ConversionResponse.response"
_TYPES = {"response": dict, "uid": str, "result": dict, "convertedObjects": list}
_GO_TYPES = {
    "response": "v1.ConversionResponse",
    "uid": "types.UID",
    "result": "v1.Status",
    "convertedObjects": "[]runtime.RawExtension",
}


class ConversionError(Exception):
    """What is wrong with an answer. ``what`` is wrong: the object or its metadata, "" where upstream says no more than why;
    ``of_the_object``: upstream tells no index for it."""

    def __init__(self, why: str, what: str = "object", *, of_the_object: bool = True) -> None:
        super().__init__(why)
        self.what = what
        self.of_the_object = of_the_object


def request(accepted: Sequence[str], uid: str, batch: Sequence[Object], api_version: str) -> tuple[str, bytes]:
    """The review's version and its JSON. Raises ConversionError."""
    version = next((one for one in accepted if one in REVIEW_VERSIONS), None)
    if version is None:
        raise ConversionError("no supported conversion review versions")
    asked = {"uid": uid, "desiredAPIVersion": api_version, "objects": list(batch)}
    return version, orjson.dumps({"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": asked})


def read(body: bytes, version: str, uid: str) -> list[Any]:
    """The converted objects as the answer has them. Raises ConversionError."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        from apiserver.schemas import json_syntax

        raise ConversionError(f"couldn't get version/kind; json parse error: {json_syntax.explain(body) or error}") from error
    if not isinstance(review, dict):
        why = f"json: cannot unmarshal {go_json.kind_of(review)} into Go value of type {go_json.TYPE_META}"
        raise ConversionError(f"couldn't get version/kind; json parse error: {why}")
    api_version, kind = review.get("apiVersion") or "/", review.get("kind") or ""
    if kind and (kind != KIND or api_version not in [f"{GROUP}/{one}" for one in REVIEW_VERSIONS]):
        why = f"no kind {go_json.quote(kind)} is registered for version {go_json.quote(api_version)}"
        raise ConversionError(f'{why} in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:71"')
    said = f"{api_version}, Kind={kind}"
    expected = f"{GROUP}/{version}, Kind={KIND}"
    other = next(one for one in REVIEW_VERSIONS if one != version)
    if said == f"{GROUP}/{other}, Kind={KIND}":
        raise ConversionError(f"converting ({other}.{KIND}) to ({version}.{KIND}): unknown conversion")
    response = _typed(review, "response", KIND)
    uid_said, result, converted = (_typed(response or {}, name, _RESPONSE) for name in ("uid", "result", "convertedObjects"))
    if version == "v1" and said != expected:
        raise ConversionError(f"expected webhook response of {expected}, got {said}")
    if response is None:
        raise ConversionError("no response provided")
    if version == "v1" and uid_said != uid:
        raise ConversionError(f"expected response.uid={go_json.quote(uid)}, got {go_json.quote(uid_said or '')}")
    result = result or {}
    if result.get("status") != "Success":
        why = result.get("message") or f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        raise ConversionError(str(why))
    return converted or []


def _typed(parent: Object, name: str, struct: str) -> Any:
    """None where the field is absent or null."""
    value = parent.get(name)
    if value is not None and not isinstance(value, _TYPES[name]):
        kind = go_json.kind_of(value)
        raise ConversionError(f"json: cannot unmarshal {kind} into Go struct field {struct}.{name} of type {_GO_TYPES[name]}")
    return value


def check(original: Object, made: Any, api_version: str) -> Object:
    """The converted object with the metadata of the original, but the labels and annotations that the webhook gave it. Raises
    ConversionError."""
    if made is None:
        raise ConversionError("unexpected end of JSON input", "")
    if not isinstance(made, dict):
        raise ConversionError(f"json: cannot unmarshal {go_json.kind_of(made)} into Go value of type map[string]interface {{}}", "")
    if not made.get("kind"):
        raise ConversionError(f"Object 'Kind' is missing in '{orjson.dumps(made).decode()}'", "")
    if made.get("apiVersion") != api_version:
        raise ConversionError(
            f"invalid groupVersion (expected {api_version}, received {made.get('apiVersion') or ''})", of_the_object=False
        )
    metadata = made.get("metadata")
    if made["kind"] != original["kind"]:
        raise ConversionError(f"invalid kind (expected {original['kind']}, received {made['kind']})", of_the_object=False)
    before = objects.metadata(original)
    found = metadata if isinstance(metadata, dict) else {}
    for field, word in _IDENTITY[1:]:
        if (before.get(field) or "") != (found.get(field) or ""):
            raise ConversionError(f"must have the same {word}: {before.get(field) or ''} != {found.get(field) or ''}")
    if "metadata" not in made:
        raise ConversionError("missing metadata in converted object", "metadata")
    if not isinstance(metadata, dict):
        raise ConversionError(f"invalid metadata of type {go_json.type_name(metadata)} in converted object", "metadata")
    return {**made, "metadata": _restored(before, metadata)}


def _restored(before: Object, said: Object) -> Object:
    found = dict(before)
    for field in ("labels", "annotations"):
        value = said.get(field)
        found.pop(field, None)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ConversionError(f"invalid metadata.{field} of type {go_json.type_name(value)} in converted object", "metadata")
        for key, text in value.items():
            if not isinstance(text, str):
                why = f"metadata.{field}[{key}] must be a string, but is {go_json.type_name(text)} in converted object"
                raise ConversionError(why, "metadata")
        if value != (before.get(field) or {}):
            _check_texts(field, value)
        found[field] = value
    return found


def _check_texts(field: str, value: dict[str, str]) -> None:
    if field == "labels":
        errors = labels.validate_labels(value, "metadata.labels")
    else:
        errors = object_meta_validation.validate_annotations(value, "metadata.annotation")
    if errors:
        texts = list(dict.fromkeys(error.text() for error in errors))
        raise ConversionError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", "metadata")
