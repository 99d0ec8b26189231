"""Which form of an answer a client accepts (apiserver ``endpoints/handlers/negotiation``), and what a body's Content-Type says."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.machinery import status
from apiserver.machinery.status import StatusError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
#: What the texts of refusals enumerate.
ANSWER_TYPES = (JSON, YAML, PROTOBUF)
BODY_TYPES = (JSON, YAML, PROTOBUF)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_YAML)

#: Accept headers remembered; clients use a handful of them.
REMEMBERED_MAX = 512
#: Media ranges read of one Accept header; the rest is ignored.
CLAUSES_MAX = 64

_META_GROUP = "meta.k8s.io"


class Form(enum.Enum):
    """What becomes of the objects of an answer."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """``version`` is that of meta.k8s.io where ``form`` is of that group."""

    media_type: str = JSON
    form: Form = Form.OBJECT
    version: str = "v1"
    pretty: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether stored bytes are the answer as they are."""
        return self.form is Form.OBJECT and self.media_type == JSON and not self.pretty


PLAIN = Negotiated()
_PRETTY = Negotiated(pretty=True)
_FORMS = {form.value: form for form in Form if form is not Form.OBJECT}

_remembered: dict[bytes, tuple[Negotiated, ...]] = {}


def negotiate(
    headers: Mapping[bytes, bytes], query: Mapping[str, list[str]], *, list_of_objects: bool, watch: bool = False, go_type: str = ""
) -> Negotiated:
    """The form for this request; raises 406. ``PartialObjectMetadata`` is for single objects and watches, its ``…List`` for lists: the
    wrong one of them is refused, also where another clause would do. ``go_type`` is what the refusal calls the answer.
    """
    accept = headers.get(b"accept", b"")
    if accept in (b"", b"*/*", b"application/json"):
        if not query:
            return _PRETTY if _browses(headers) and not watch else PLAIN
        chosen = PLAIN
    else:
        clauses = _remembered.get(accept)
        if clauses is None:
            if len(_remembered) >= REMEMBERED_MAX:
                _remembered.clear()
            clauses = _remembered[accept] = tuple(_clauses(accept.decode("latin-1")))
        for clause in clauses:
            if clause.form is (Form.METADATA if list_of_objects else Form.METADATA_LIST):
                raise status.wrong_metadata_form(clause.form.value, is_list=list_of_objects, go_type=go_type)
            if watch and clause.media_type == YAML:
                continue
            chosen = clause
            break
        else:
            raise status.not_acceptable(ANSWER_TYPES)
    if watch or not (_wants_pretty(query) if "pretty" in query else _browses(headers)):
        return chosen
    return Negotiated(media_type=chosen.media_type, form=chosen.form, version=chosen.version, pretty=True)


def _wants_pretty(query: Mapping[str, list[str]]) -> bool:
    value = query["pretty"][0].lower()
    return value in ("", "1", "t", "true")


def _browses(headers: Mapping[bytes, bytes]) -> bool:
    """People who look at the API with these programs get indented answers."""
    return headers.get(b"user-agent", b"").startswith((b"curl/", b"Wget/", b"Mozilla/5.0"))


def _clauses(accept: str) -> list[Negotiated]:
    """The clauses that this server can serve, the best first (RFC 9110 §12.5.1: quality, then how exact the range is)."""
    found: list[tuple[float, int, int, Negotiated]] = []
    for position, clause in enumerate(accept.split(",")[:CLAUSES_MAX]):
        range_, *pairs = (part.strip() for part in clause.split(";"))
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in (pair.partition("=") for pair in pairs)}
        media_type, exactness = _media_type(range_.lower())
        if not media_type:
            continue
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        if quality <= 0:
            continue
        wanted = parameters.get("as", "")
        if wanted:
            form = _FORMS.get(wanted)
            version = parameters.get("v", "")
            if form is None or parameters.get("g") != _META_GROUP or version not in ("v1", "v1beta1"):
                continue
            served = Negotiated(media_type=media_type, form=form, version=version)
        else:
            served = Negotiated(media_type=media_type)
        found.append((-quality, -exactness, position, served))
    return [served for *_, served in sorted(found, key=lambda entry: entry[:3])]


def _media_type(range_: str) -> tuple[str, int]:
    if range_ in (JSON, YAML):
        return range_, 2
    if range_ == "application/*":
        return JSON, 1
    return (JSON, 0) if range_ == "*/*" else ("", 0)


def content_type(headers: Mapping[bytes, bytes]) -> str:
    """The media type of the body, lower case, without parameters; "" where none is said. One whose parameters are none is no type at
    all (``mime.ParseMediaType``) and comes back as it is."""
    value = headers.get(b"content-type", b"")
    media_type, semicolon, parameters = value.partition(b";")
    if semicolon and not _PARAMETERS(parameters):
        media_type = value
    return media_type.strip().lower().decode("latin-1")


_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
#: RFC 9110 §5.6.6; what stands behind the semicolon of a media type
_PARAMETERS = re.compile(rb'\s*(?:%s\s*=\s*(?:%s|"(?:[^"\\]|\\.)*")\s*(?:;\s*|$))*' % (_TOKEN, _TOKEN)).fullmatch


def body_type(headers: Mapping[bytes, bytes]) -> str:
    """The type of an object's body: JSON (also when unsaid), YAML or Kubernetes' protobuf; raises 415."""
    media_type = content_type(headers)
    if media_type in ("", JSON):
        return JSON
    if media_type in (YAML, PROTOBUF):
        return media_type
    raise unsupported_body_type()


def unsupported_body_type() -> StatusError:
    return status.unsupported_media_type(BODY_TYPES)


def patch_type(headers: Mapping[bytes, bytes], *, strategic: bool) -> str:
    """The type of a patch; raises 415. Custom resources have no strategic merge patch."""
    media_type = content_type(headers)
    accepted = PATCH_TYPES if strategic else tuple(kind for kind in PATCH_TYPES if kind != STRATEGIC_MERGE_PATCH)
    if media_type not in accepted:
        raise status.unsupported_media_type(accepted)
    return media_type
