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
#: In the order of preference where a client takes anything, and as the texts of refusals enumerate them. (CBOR is off by default.)
ANSWER_TYPES = (JSON, YAML, PROTOBUF)
STREAM_TYPES = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
BODY_TYPES = (JSON, YAML, PROTOBUF)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_YAML)
CUSTOM_PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_YAML)

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
    """``version`` is that of meta.k8s.io where ``form`` is of that group. ``pretty``: indented, which only JSON can be."""

    media_type: str = JSON
    form: Form = Form.OBJECT
    version: str = "v1"
    pretty: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether stored bytes are the answer as they are."""
        return self.form is Form.OBJECT and self.media_type == JSON and not self.pretty

    @property
    def is_plain_protobuf(self) -> bool:
        """Whether the bytes that are kept as protobuf are the answer's."""
        return self.form is Form.OBJECT and self.media_type == PROTOBUF


PLAIN = Negotiated()
_PRETTY = Negotiated(pretty=True)
_FORMS = {form.value: form for form in Form if form is not Form.OBJECT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A media range of an Accept header with what its parameters ask for: ``convert`` is (kind, group, version)."""

    range: str
    convert: tuple[str, str, str] | None
    stream: str
    server_version: str
    pretty: bool

    def covers(self, media_type: str) -> bool:
        return self.range in (media_type, "application/*", "*/*")

    def can_stream(self, media_type: str) -> bool:
        """Whether the stream that the clause asks for, if any, exists in the type."""
        return not self.stream or (self.stream == "watch" and media_type != YAML)


_remembered: dict[bytes, tuple[Clause, ...]] = {}


def negotiate(
    headers: Mapping[bytes, bytes],
    query: Mapping[str, list[str]],
    *,
    watch: bool = False,
    list_of_objects: bool = False,
    builtin: bool = True,
    protobuf: bool = True,
) -> Negotiated:
    """The form for this request; raises 406. ``list_of_objects``: a list. ``builtin``: the resource is one of the server's own,
    ``protobuf``: it has a protobuf form.

    Clauses that the server cannot serve are passed over: a Table in protobuf, kinds that are none, other streams. A form that does not
    fit the object (a list as ``PartialObjectMetadata``) is refused only when there is an object, as upstream does.
    """
    accept = headers.get(b"accept", b"")
    if accept in (b"", b"*/*", b"application/json"):
        if not query:
            return _PRETTY if _browses(headers) and not watch else PLAIN
        return _PRETTY if not watch and _wants_pretty(headers, query) else PLAIN
    clauses = clauses_of(accept)
    if builtin and not passes_router(accept):
        raise _not_routed(list_of_objects or watch)
    for clause in clauses:
        for media_type in ANSWER_TYPES:
            if clause.covers(media_type) and (chosen := _served(clause, media_type, protobuf=protobuf)) is not None:
                if watch:
                    if media_type == YAML:
                        raise status.not_acceptable(STREAM_TYPES)
                    return chosen
                if media_type == JSON and (clause.pretty or _wants_pretty(headers, query)):
                    return Negotiated(form=chosen.form, version=chosen.version, pretty=True)
                return chosen
    raise status.not_acceptable(ANSWER_TYPES)


def of_status(headers: Mapping[bytes, bytes], query: Mapping[str, list[str]]) -> Negotiated:
    """The form of a refusal. No clause that asks for another kind counts, and where none is left it is indented JSON: what went wrong is
    told in any case."""
    accept = headers.get(b"accept", b"")
    clauses = clauses_of(accept) if accept else ()
    for clause in clauses:
        if clause.convert is not None or clause.server_version:
            continue
        for media_type in ANSWER_TYPES:
            if clause.covers(media_type) and clause.can_stream(media_type):
                pretty = media_type == JSON and (clause.pretty or _wants_pretty(headers, query))
                return Negotiated(media_type=media_type, pretty=pretty)
    return _PRETTY if clauses or accept or _wants_pretty(headers, query) else PLAIN


def passes_router(accept: bytes) -> bool:
    """Before negotiation upstream's router looks for a type that the route produces: it knows ``*/*`` and whole types alone."""
    ranges = (clause.partition(b";")[0].strip(b" ") for clause in accept.split(b",", CLAUSES_MAX)[:CLAUSES_MAX])
    return not accept or any(range_ in _ROUTED for range_ in ranges)


_ROUTED = frozenset((b"*/*", *(media_type.encode() for media_type in ANSWER_TYPES)))


def _not_routed(of_list: bool) -> StatusError:
    return status.not_routed(406, (*ANSWER_TYPES, *STREAM_TYPES) if of_list else ANSWER_TYPES)


def _served(clause: Clause, media_type: str, *, protobuf: bool) -> Negotiated | None:
    """What the clause asks for in ``media_type``; None where that is not served."""
    if not clause.can_stream(media_type) or clause.server_version not in ("", "v1"):
        return None
    if clause.convert is None:
        return None if media_type == PROTOBUF and not protobuf else PLAIN if media_type == JSON else Negotiated(media_type=media_type)
    kind, group, version = clause.convert
    form = _FORMS.get(kind)
    if form is None or group != _META_GROUP or version not in ("v1", "v1beta1"):
        return None
    if form is Form.TABLE and media_type == PROTOBUF:
        return None
    return Negotiated(media_type=media_type, form=form, version=version)


def _wants_pretty(headers: Mapping[bytes, bytes], query: Mapping[str, list[str]]) -> bool:
    asked = query["pretty"][0] if "pretty" in query else ""
    return asked in ("1", "t", "T", "TRUE", "true", "True") if asked else _browses(headers)


def _browses(headers: Mapping[bytes, bytes]) -> bool:
    """People who look at the API with these programs get indented answers."""
    return headers.get(b"user-agent", b"").startswith((b"curl", b"Wget", b"Mozilla/5.0"))


def clauses_of(accept: bytes) -> tuple[Clause, ...]:
    """The clauses of an Accept header, the best first."""
    clauses = _remembered.get(accept)
    if clauses is None:
        if len(_remembered) >= REMEMBERED_MAX:
            _remembered.clear()
        clauses = _remembered[accept] = _parse(accept.decode("latin-1"))
    return clauses


def _parse(accept: str) -> tuple[Clause, ...]:
    """As the library that Kubernetes uses for it does (goautoneg): names are told apart by case, a parameter without a value, or with
    two, counts for nothing, and a quality that is no number is 0, which is low but not a refusal."""
    found: list[tuple[float, Clause]] = []
    for part in accept.split(",", CLAUSES_MAX)[:CLAUSES_MAX]:
        range_, *pairs = part.split(";")
        range_ = range_.strip()
        if range_ == "*":
            range_ = "*/*"
        type_, slash, subtype = (piece.strip() for piece in range_.partition("/"))
        if not slash or "/" in subtype:
            continue
        parameters, quality = {}, 1.0
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or not value or "=" in value:
                continue
            if key.strip() == "q":
                quality = _quality(value)
            else:
                parameters[key.strip()] = value.strip()
        convert = None
        if parameters.keys() & {"as", "g", "v"}:
            convert = (parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", ""))
        clause = Clause(
            range=f"{type_}/{subtype}",
            convert=convert,
            stream=parameters.get("stream", ""),
            server_version=parameters.get("sv", ""),
            pretty=parameters.get("pretty") == "1",
        )
        found.append((quality, clause))
    return tuple(clause for _, clause in _sorted(found))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _sorted(clauses: list[tuple[float, Clause]]) -> list[tuple[float, Clause]]:
    """By insertion, since the order is none: a quality that is higher comes before, but so does any whole type before a wildcard. With
    upstream's way of sorting ``*/*;q=0.9,application/yaml;q=0.5`` is a wish for YAML."""
    found: list[tuple[float, Clause]] = []
    for entry in clauses:
        position = len(found)
        while position and _comes_before(entry, found[position - 1]):
            position -= 1
        found.insert(position, entry)
    return found


def _comes_before(one: tuple[float, Clause], other: tuple[float, Clause]) -> bool:
    (quality, clause), (other_quality, other_clause) = one, other
    if quality > other_quality:
        return True
    if not clause.range.startswith("*/") and other_clause.range.startswith("*/"):
        return True
    return not clause.range.endswith("/*") and other_clause.range.endswith("/*")


def content_type(headers: Mapping[bytes, bytes]) -> str:
    """The media type of the body, lower case, without parameters; "" where none is said or it does not parse (Go's
    ``mime.ParseMediaType``)."""
    value = headers.get(b"content-type", b"").decode("latin-1")
    media_type, *parameters = value.split(";")
    if any(parameter.strip() and not _PARAMETER(parameter.strip()) for parameter in parameters):
        return ""
    return media_type.strip().lower()


_PARAMETER = re.compile(r"""[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=\s*(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"[^"]*")""").fullmatch


def body_type(headers: Mapping[bytes, bytes]) -> str:
    """The type of an object's body: JSON (also when unsaid), YAML or Kubernetes' protobuf; raises 415."""
    if not headers.get(b"content-type"):
        return JSON
    media_type = content_type(headers)
    if media_type in BODY_TYPES:
        return media_type
    raise unsupported_body_type()


def unsupported_body_type() -> StatusError:
    return status.unsupported_media_type(BODY_TYPES)


def patch_type(headers: Mapping[bytes, bytes], *, builtin: bool) -> str:
    """The type of a patch; raises 415, of which the router of built-in resources speaks. Custom resources have no strategic merge
    patch. The name is told apart by case."""
    media_type = headers.get(b"content-type", b"").partition(b";")[0].decode("latin-1")
    if builtin:
        media_type = media_type.strip(" ")
        if media_type not in PATCH_TYPES:
            raise status.not_routed(415, PATCH_TYPES)
    elif media_type not in CUSTOM_PATCH_TYPES:
        raise status.unsupported_media_type(CUSTOM_PATCH_TYPES)
    return media_type
