"""``ResourceScope``: one resource in one version with all that its handlers need, and decoding of its bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from apiserver.handlers.unchanged_applies import UnchangedApplies
from apiserver.machinery import go_json, status
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.objectstore import codec
from apiserver.registry.environment import Write
from apiserver.registry.store import Store
from apiserver.request import body as request_body
from apiserver.request.negotiation import JSON, PROTOBUF, YAML, Negotiated, body_type, negotiate
from apiserver.request.options import WriteOptions
from apiserver.request.request_context import RequestContext
from apiserver.resources import columns
from apiserver.resources.columns import Printer
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import minor_of
from apiserver.schemas import decoding, yaml_bodies
from apiserver.schemas.json_bodies import DecodeError

if TYPE_CHECKING:
    from apiserver.apiextensions.definitions import CustomVersion
    from apiserver.schemas.schema_set import SchemaSet

#: Not looked up yet.
_UNKNOWN = "?"

#: Versions that are served no more, but known to the servers that have the kind.
_KNOWN_OF_OLD = frozenset(
    (
        ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "v1beta1", "APIService"),
    )
)
_HEAD_REPEATED = frozenset(('duplicate field "kind"', 'duplicate field "apiVersion"'))
#: What a refusal shows of a body that it could not make sense of.
SUMMARY_LENGTH = 30
#: What Kubernetes calls the registry of its built-in types where it says that one is missing.
SCHEME = "pkg/api/legacyscheme/scheme.go:30"
#: From why an object that a patch made is refused to what the refusal shows and says.
Shown = Callable[[str], tuple[str, str]]
#: Characters of a User-Agent that name a field manager.
MANAGER_LENGTH_MAX = 128


class ResourceScope:
    """Types and validators are those of the published schemas, made at first use."""

    def __init__(self, store: Store, schemas: SchemaSet) -> None:
        self.store = store
        self.info = store.info
        self.schemas = schemas
        self._type: Type | None = None
        self._printer: Printer | None = None
        self._message: str | None = _UNKNOWN
        self._columns: list[Object] | None = None
        self.unchanged_applies = UnchangedApplies()
        self.item_prefix = codec.type_prefix(self.info.api_version, self.info.kind)

    @property
    def printer(self) -> Printer:
        """The columns of the resource's Table."""
        if self._printer is None:
            self._printer = columns.printer_for(self.info, minor_of(self.schemas.kubernetes_version))
        return self._printer

    @property
    def go_type(self) -> str:
        """What Kubernetes' messages call an object of the resource."""
        return f"*{go_package(self.info.group)}.{self.info.kind}" if self.info.builtin else "*unstructured.Unstructured"

    @property
    def column_definitions(self) -> list[Object]:
        """The columns as a Table has them. Not to be changed."""
        if self._columns is None:
            self._columns = self.printer.definitions(self.schemas.description_of)
        return self._columns

    @property
    def message(self) -> str | None:
        """The name of the kind's protobuf message; None for custom resources, and kinds without a published one."""
        if self._message is _UNKNOWN:
            from apiserver.schemas import protobuf  # its table is needed only where clients speak protobuf

            info = self.info
            self._message = protobuf.message_of(info.api_version, info.kind) if info.builtin else None
        return self._message

    def negotiate(self, context: RequestContext, *, list_of_objects: bool = False, watch: bool = False) -> Negotiated:
        """The form of the answer; raises 406."""
        headers = context.headers
        return negotiate(
            headers,
            context.query,
            list_of_objects=list_of_objects,
            watch=watch,
            builtin=self.info.builtin,
            protobuf=b"protobuf" in headers.get(b"accept", b"") and self.message is not None,
        )

    @property
    def type(self) -> Type:
        if self._type is None:
            self._type = self.schemas.type_of(self.info.group, self.info.version, self.info.kind)
        return self._type

    def decode(self, body: bytes, media_type: str, options: WriteOptions, context: RequestContext) -> Object:
        """An object of the resource's kind from a body: type-checked, pruned, with kind and apiVersion set, not yet defaulted."""
        return decode_as(self.schemas, self.info, self.info.kind, body, media_type, options, context)

    def redecode(
        self,
        obj: Object,
        options: WriteOptions,
        context: RequestContext,
        shown: Shown | None = None,
        patch_errors: tuple[str, ...] = (),
    ) -> Object:
        """The same for what a patch made; a wrong type in it is the patch's fault (422), which ``shown`` puts in words.
        ``patch_errors``: the unknown and duplicate fields of the patch itself."""
        info = self.info
        try:
            decoded = self.schemas.kind(info.group, info.version, info.kind).decode(obj)
        except DecodeError as error:
            raise patch_error(str(error), shown) from error
        errors = patch_errors + decoded.strict_errors
        if errors and options.field_validation == "Strict":
            raise patch_error(decoding.strict_decoding_error(errors), shown)
        tell_strict_errors(errors, options, context, info.kind, info.version, info.kind)
        return decoded.obj

    def settled(self, applied: Object) -> Object:
        """A copy of the custom object that an apply has made, in the form in which it is kept. Unlike a body it is not decoded: what fits
        the type is left to validation, and what is pruned nobody is told."""
        info = self.info
        version = cast("CustomVersion", self.schemas.kind(info.group, info.version, info.kind))
        return version.schema.settle_applied(applied)

    def why_not_of_kind(self, kind: str, api_version: str) -> str:
        """Why an object that says to be of another kind or version is none of this resource."""
        info = self.info
        group, _, version = api_version.rpartition("/")
        if self.schemas.has_kind(group, version, kind or info.kind):
            return _unknown_conversion(version, kind, info.group, info.kind)
        return no_kind(kind or info.kind, api_version)

    def write_of(self, context: RequestContext, options: WriteOptions, kind: str) -> Write:
        """``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
        assert context.user is not None, "the chain authenticates"
        return Write(
            user=context.user,
            manager=options.field_manager or manager_of(context),
            dry_run=options.dry_run,
            options=_options_object(options, kind),
            warn=context.warn,
            annotate=context.annotate,
        )


def _options_object(options: WriteOptions, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        found["dryRun"] = ["All"]
    if options.field_manager:
        found["fieldManager"] = options.field_manager
    if options.field_validation:
        found["fieldValidation"] = options.field_validation
    return found


def manager_of(context: RequestContext) -> str:
    """Writers that do not name themselves are known by their User-Agent up to the first slash."""
    agent = context.headers.get(b"user-agent", b"").partition(b"/")[0].decode("latin-1")
    if not agent.isprintable():
        agent = "".join(c for c in agent if c.isprintable())
    return agent[:MANAGER_LENGTH_MAX]


def decode_as(
    schemas: SchemaSet, info: ResourceInfo, kind: str, body: bytes, media_type: str, options: WriteOptions, context: RequestContext
) -> Object:
    """A body of the kind ``kind`` in the group and version of ``info`` (subresources have kinds of their own). Raises 400."""
    repeated = yaml_bodies.duplicate_keys(body) if media_type == YAML and options.field_validation != "Ignore" else ()
    sent = body
    if media_type != JSON:
        body = json_of(body, media_type, kind, info.api_version)
    if not info.builtin:
        return _custom(schemas, info, body, sent, _in_one(repeated, options), options, context)
    if body.strip() == b"null":
        body = b"{}"
    said_kind, said_version = "", ""
    try:
        decoded = schemas.kind(info.group, info.version, kind).decode(body)
    except DecodeError as error:
        said_kind, said_version = kind_and_version(body, kind)
        version = said_version.rpartition("/")[2] or info.version
        if (said_kind, said_version) not in ((kind, ""), (kind, info.api_version)):
            raise cannot_be_handled(said_kind, version, kind, no_kind(said_kind, said_version or info.api_version)) from error
        raise cannot_be_handled(kind, version, kind, str(error)) from error
    obj = decoded.obj
    said_kind, said_version = obj.get("kind") or kind, obj.get("apiVersion") or info.api_version
    if said_kind != kind or said_version != info.api_version:
        if said_version.count("/") > 1:
            raise unrecognized(kind, f"unexpected GroupVersion string: {said_version}", body)
        version = said_version.rpartition("/")[2]
        if (
            said_kind == kind
            and said_version.rpartition("/")[0] == info.group
            and (schemas.has_kind(info.group, version, kind) or (info.group, version, kind) in _KNOWN_OF_OLD)
        ):
            message = f"the API version in the data ({said_version}) does not match the expected API version ({info.api_version})"
            raise status.bad_request(message)
        group = said_version.rpartition("/")[0]
        if schemas.has_kind(group, version, said_kind):
            why = _unknown_conversion(version, said_kind, info.group, kind)
        else:
            why = no_kind(said_kind, said_version)
        raise cannot_be_handled(said_kind, version, kind, why)
    tell_strict_errors(_in_one(repeated, options) + decoded.strict_errors, options, context, said_kind, info.version, kind)
    return {**obj, "apiVersion": info.api_version, "kind": kind, "metadata": dict(obj.get("metadata") or {})}


def _in_one(repeated: tuple[str, ...], options: WriteOptions) -> tuple[str, ...]:
    """What Go finds repeated in a YAML is one error where it is refused, and else a warning each."""
    return (yaml_bodies.in_words(repeated),) if repeated and options.field_validation == "Strict" else repeated


def _custom(
    schemas: SchemaSet,
    info: ResourceInfo,
    body: bytes,
    sent: bytes,
    repeated: tuple[str, ...],
    options: WriteOptions,
    context: RequestContext,
) -> Object:
    """A custom object, which has to say what it is. Raises 400 and 422."""
    try:
        decoded = schemas.kind(info.group, info.version, info.kind).decode(body)
    except DecodeError:
        decoded = None
    if decoded is not None and not _HEAD_REPEATED.isdisjoint(decoded.strict_errors):
        from apiserver.handlers import custom_bodies  # only for what is odd

        custom_bodies.check_head(info.kind, body, sent)
    if decoded is None or decoded.obj.get("kind") != info.kind or decoded.obj.get("apiVersion") != info.api_version:
        from apiserver.handlers import custom_bodies  # only for what is refused

        obj = custom_bodies.judge(schemas, info, body, sent, repeated, options, context)
        return {**obj, "metadata": dict(obj.get("metadata") or {})}
    tell_strict_errors(repeated + decoded.strict_errors, options, context, info.kind, info.version, info.kind)
    return {**decoded.obj, "metadata": dict(decoded.obj.get("metadata") or {})}


def go_package(group: str) -> str:
    """The Go package of a group's internal types, by which some messages call them."""
    return group.partition(".")[0] if group not in ("", "events.k8s.io") else "core"


async def decode_apart(
    schemas: SchemaSet, info: ResourceInfo, kind: str, body: bytes, options: WriteOptions, context: RequestContext
) -> Object:
    """``decode_as`` in a thread where the body is long YAML, so that other requests go on meanwhile."""
    media_type = body_type(context.headers)
    return await request_body.beside_the_loop(
        body, media_type == YAML, lambda: decode_as(schemas, info, kind, body, media_type, options, context)
    )


def _unknown_conversion(version: str, kind: str, group: str, wanted: str) -> str:
    """Upstream names Go types: versions are packages, and so are its internal forms of groups."""
    package = "core" if group == "events.k8s.io" else go_package(group)
    return f"converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"


def no_kind(kind: str, api_version: str, scheme: str = SCHEME) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme}"'


def body_json(body: bytes, media_type: str, kind: str, api_version: str = "v1") -> bytes:
    """The JSON of a body in YAML or protobuf, where one that does not say what it is is of the kind. Raises ValueError."""
    if media_type == YAML:
        return request_body.yaml_to_json(body)
    if media_type == PROTOBUF:
        from apiserver.schemas import protobuf  # only where a client sends it

        return protobuf.to_json(body, (api_version, kind))
    return body


def json_of(body: bytes, media_type: str, kind: str, api_version: str = "v1") -> bytes:
    """The same; raises 400."""
    try:
        return body_json(body, media_type, kind, api_version)
    except ValueError as error:
        if media_type == PROTOBUF:
            raise _undecoded(error, body, kind) from error
        prefix = "" if media_type == YAML else "couldn't get version/kind; "
        raise unrecognized(kind, f"{prefix}{str(error).removeprefix(request_body.YAML_PREFIX)}", body) from error


def _undecoded(error: ValueError, body: bytes, kind: str) -> status.StatusError:
    """What a protobuf body that does not decode is told: with the kind that it says, where it gets as far as that."""
    from apiserver.schemas import protobuf

    if not isinstance(error, (protobuf.MessageError, protobuf.UnknownKindError)):
        return unrecognized(kind, str(error), body)
    unknown = isinstance(error, protobuf.UnknownKindError)
    why = no_kind(error.kind, error.api_version, SCHEME) if unknown else str(error)
    return cannot_be_handled(error.kind, error.api_version.rpartition("/")[2], kind, why)


def kind_info(group: str, version: str, kind: str) -> ResourceInfo:
    """Of a kind that only subresources take: enough to decode it."""
    return ResourceInfo(group=group, version=version, resource=kind.lower(), kind=kind)


def kind_and_version(body: bytes, kind: str) -> tuple[str, str]:
    """What a body that does not decode says of itself; raises 400 where it says nothing that can be read."""
    import orjson

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise unrecognized(kind, f"couldn't get version/kind; json parse error: {go_words(body, error)}", body) from error
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise unrecognized(kind, f"couldn't get version/kind; json parse error: {wrong_head(value)}", body)
    said_kind, said_version = value.get("kind") or kind, value.get("apiVersion") or ""
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field) or "", str):
            found = f"json: cannot unmarshal {go_json.kind_of(value[field])} into Go struct field .{field} of type string"
            raise unrecognized(kind, f"couldn't get version/kind; json parse error: {found}", body)
    return said_kind, said_version


def wrong_head(value: Any) -> str:
    """What the decoder says of a body that is no object, of which it first wants to know the kind."""
    word = {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")
    return (
        f"json: cannot unmarshal {word} into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )


def go_words(body: bytes, error: ValueError) -> str:
    from apiserver.schemas import json_syntax

    if not body.strip():
        return "unexpected end of JSON input"
    return json_syntax.explain(body) or str(error)


def tell_strict_errors(
    errors: tuple[str, ...], options: WriteOptions, context: RequestContext, said_kind: str, version: str, kind: str
) -> None:
    """Unknown and duplicate fields: refused, told in a header, or passed over, as ``fieldValidation`` asks (Warn by default)."""
    if not errors or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise cannot_be_handled(said_kind, version, kind, decoding.strict_decoding_error(errors))
    for text in errors:
        context.warn(text)


def cannot_be_handled(said_kind: str, version: str, kind: str, why: str) -> status.StatusError:
    return status.bad_request(f'{said_kind} in version "{version}" cannot be handled as a {kind}: {why}')


def unrecognized(kind: str, why: str, body: bytes) -> status.StatusError:
    """``body`` is shown by its beginning, as text only where that looks like an object."""
    summary = "<empty>"
    if body:
        start = body[:SUMMARY_LENGTH]
        summary = start.decode("utf-8", "replace") if body.startswith(b"{") else start.hex()
        if len(body) > SUMMARY_LENGTH:
            summary += " ..."
    return status.bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({summary})")


def patch_error(why: str, shown: Shown | None = None) -> status.StatusError:
    """A patch that applies but leaves an object that is none (upstream words it as a field error of ``patch``, shown whole)."""
    from apiserver.machinery import field_errors

    value, why = shown(why) if shown is not None else ("", why)
    return status.invalid("", "", "", [field_errors.invalid("patch", value, why)])
