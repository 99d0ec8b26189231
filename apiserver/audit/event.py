"""``AuditEvent``: what is noted of one request, from when it is known who asks to the end of its answer."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from apiserver.audit.policy import LEVEL_NAMES, Decision, Level, Stage
from apiserver.authentication.user import UserInfo
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.request import body as request_body
from apiserver.request import negotiation
from apiserver.request.request_context import RequestContext

#: of a user agent, in characters
USER_AGENT_LENGTH_MAX = 1024
_CUT = "...TRUNCATED"
#: Bytes of a body that are noted; a longer one is left out, and the event says so (kube-apiserver's limit where it is told to truncate).
BODY_BYTES_MAX = 10 * 1024 * 1024
TRUNCATED = "audit.k8s.io/truncated"
#: in place of a token
REDACTED = "REDACTED"


class AuditEvent:
    """``request_body`` and ``response_body`` gather what passes where the level asks for it."""

    __slots__ = (
        *("annotations", "code", "context", "decision", "failed", "on_start", "panic", "received_at", "refused_with"),
        *("request_body", "response_body", "response_type"),
        *("source", "uri", "_noted", "_object", "_truncated", "_user"),
    )

    def __init__(self, context: RequestContext, decision: Decision, uri: str, source: str, received_at: float) -> None:
        """``received_at``: seconds since the epoch."""
        self.context = context
        self.decision = decision
        self.uri = uri
        self.source = source
        self.received_at = received_at
        self.request_body: bytearray | None = bytearray() if decision.level >= Level.REQUEST else None
        self.response_body: bytearray | None = bytearray() if decision.level >= Level.REQUEST_RESPONSE else None
        self.response_type = b""
        #: the Status that the chain itself answered with
        self.failed: Object | None = None
        #: of a request that did not say who asks: the answer, where it is to be noted
        self.refused_with: Object | None = None
        #: where it is not the answer's
        self.code = 0
        #: called when the answer begins
        self.on_start: Callable[[], object] | None = None
        self.panic = False
        self.annotations: dict[str, str] = {}
        self._user = context.user
        self._noted: bytes | None = None
        self._object: dict[str, str] = {}
        self._truncated = False

    # -- told by those who know ----------------------------------------------------------------------------------------------

    def note_request_object(self, obj: Object, default: Callable[[Object], object] | None = None) -> None:
        """The object of a create or update as it was read, which is noted with its defaults, instead of the body as it was sent."""
        metadata = obj.get("metadata") or {}
        for field in ("namespace", "name", "uid", "resourceVersion"):
            value = metadata.get(field)
            if isinstance(value, str) and value:
                self._object[field] = value
        if self.request_body is not None:
            if default is not None:
                obj = objects.deep_copy(obj)
                default(obj)
            self._noted = orjson.dumps(self._without_managed_fields(obj))

    def note_request_bytes(self, part: bytes) -> None:
        self._gather(self.request_body, part)

    def note_response_bytes(self, part: bytes) -> None:
        self._gather(self.response_body, part)

    def _gather(self, into: bytearray | None, part: bytes) -> None:
        if into is None or not part:
            return
        if len(into) + len(part) > BODY_BYTES_MAX:
            self._truncated = True
            if into is self.request_body:
                self.request_body = None
            else:
                self.response_body = None
            return
        into += part

    # -- as it is written ----------------------------------------------------------------------------------------------------

    def to_json(self, stage: Stage, now: float) -> Object:
        """At a stage; ``now``: seconds since the epoch."""
        context, info = self.context, self.context.info
        event: Object = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": LEVEL_NAMES[self.decision.level],
            "auditID": context.audit_id,
            "stage": stage.value,
            "requestURI": self.uri,
            "verb": info.verb,
            "user": _user(context.original_user or self._user or context.user),
        }
        if context.original_user is not None and context.user is not None and stage is not Stage.REQUEST_RECEIVED:
            event["impersonatedUser"] = _user(context.user)
            if context.impersonation_constraint:
                event["authenticationMetadata"] = {"impersonationConstraint": context.impersonation_constraint}
        sources = source_ips(context.headers, self.source)
        if sources:
            event["sourceIPs"] = sources
        agent = context.headers.get(b"user-agent", b"").decode("latin-1")
        if agent:
            event["userAgent"] = agent if len(agent) <= USER_AGENT_LENGTH_MAX else agent[:USER_AGENT_LENGTH_MAX] + _CUT
        if info.is_resource_request:
            event["objectRef"] = self._reference(stage)
        if stage is not Stage.REQUEST_RECEIVED:
            self._add_answer(event, stage)
        event["requestReceivedTimestamp"] = micro_time(self.received_at)
        event["stageTimestamp"] = micro_time(now)
        annotations = {**context.annotations, **self.annotations}
        if self._truncated:
            annotations[TRUNCATED] = "true"
        if annotations and stage is not Stage.REQUEST_RECEIVED:
            event["annotations"] = annotations
        return event

    def _reference(self, stage: Stage) -> dict[str, str]:
        info = self.context.info
        noted: Mapping[str, str] = self._object if stage is not Stage.REQUEST_RECEIVED else {}
        reference = {
            "resource": info.resource,
            "namespace": info.namespace or noted.get("namespace", ""),
            "name": info.name or noted.get("name", ""),
            "uid": noted.get("uid", ""),
            "apiGroup": info.group,
            "apiVersion": info.version,
            "resourceVersion": noted.get("resourceVersion", ""),
            "subresource": info.subresource,
        }
        return {key: value for key, value in reference.items() if value}

    def _add_answer(self, event: Object, stage: Stage) -> None:
        code = self.code or self.context.response_status
        status: Object = {"metadata": {}}
        if not code:
            status |= {"status": "Success", "message": "Connection closed early", "code": 200}
        else:
            found = self.failed or {}
            if self.panic:
                found = {"status": "Failure", "reason": "InternalError", "message": f"APIServer panic'd: {found.get('message', '')}"}
            status |= {key: found[key] for key in ("status", "message", "reason", "details") if found.get(key)}
            status["code"] = code
        event["responseStatus"] = status
        sent = self._sent()
        if sent is not None:
            event["requestObject"] = sent
        if self.refused_with is not None:
            event["responseObject"] = self.refused_with
        elif self.response_body is not None and stage is Stage.RESPONSE_COMPLETE and self.context.info.is_resource_request:
            answered = self._object_of(bytes(self.response_body), self.response_type)
            if answered is not None:
                event["responseObject"] = self._without_managed_fields(self._without_token(answered))

    def _sent(self) -> Any:
        if self.request_body is None:
            return None
        if self._noted is not None:
            return self._without_token(orjson.loads(self._noted))
        found = self._object_of(bytes(self.request_body), self.context.headers.get(b"content-type", b""))
        return None if found is None else self._without_managed_fields(self._without_token(found))

    @staticmethod
    def _object_of(body: bytes, media_type: bytes) -> Any:
        """None for what is no object."""
        if not body:
            return None
        kind = media_type.partition(b";")[0].strip().lower().decode("latin-1")
        try:
            if kind == negotiation.PROTOBUF:
                from apiserver.schemas import protobuf

                return protobuf.decode(body)
            if kind in (negotiation.YAML, negotiation.APPLY_YAML):
                body = request_body.yaml_to_json(body)
            elif kind and "json" not in kind:
                return None
            return orjson.loads(body)
        except Exception:  # whatever a client sends: the handler says what is wrong with it
            return None

    def _without_managed_fields(self, obj: Any) -> Any:
        if not self.decision.omit_managed_fields or not isinstance(obj, dict):
            return obj
        out = dict(_drop_managed_fields(obj))
        if isinstance(out.get("items"), list):
            out["items"] = [_drop_managed_fields(entry) for entry in out["items"]]
        if isinstance(out.get("rows"), list):
            out["rows"] = [
                {**row, "object": _drop_managed_fields(row["object"])} if isinstance(row, dict) and "object" in row else row
                for row in out["rows"]
            ]
        return out

    def _without_token(self, obj: Any) -> Any:
        """Nobody who reads the log is to be able to act as somebody else."""
        info = self.context.info
        if not isinstance(obj, dict):
            return obj
        if (info.resource, info.subresource) not in (("tokenreviews", ""), ("serviceaccounts", "token")):
            return obj
        out = dict(obj)
        for part in ("spec", "status"):
            if isinstance(out.get(part), dict) and out[part].get("token"):
                out[part] = {**out[part], "token": REDACTED}
        return out


def _drop_managed_fields(obj: Any) -> Any:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict) or "managedFields" not in obj["metadata"]:
        return obj
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _user(user: UserInfo | None) -> Object:
    if user is None:
        return {}
    out: Object = {"username": user.name}
    if user.uid:
        out["uid"] = user.uid
    if user.groups:
        out["groups"] = list(user.groups)
    if user.extra:
        out["extra"] = {key: list(values) for key, values in user.extra.items()}
    return out


def source_ips(headers: Mapping[bytes, bytes], peer: str) -> list[str]:
    """Whom the request came through, the first first (apimachinery ``SourceIPs``): what proxies say, then who connected."""
    if b"x-forwarded-for" not in headers and b"x-real-ip" not in headers:
        return [peer] if peer else []
    found: list[str] = []
    for address in headers.get(b"x-forwarded-for", b"").decode("latin-1").split(","):
        if is_address(address.strip()):
            found.append(address.strip())
    real = headers.get(b"x-real-ip", b"").decode("latin-1").strip()
    if is_address(real) and real not in found:
        found.append(real)
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return found


def is_address(text: str) -> bool:
    if not text:
        return False
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def micro_time(seconds: float) -> str:
    """As upstream's MicroTime, in UTC."""
    whole, micros = divmod(int(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{micros:06d}Z"


def truncated(event: Object) -> Object:
    """Without the objects, which are what makes an event large (apiserver ``plugin/pkg/audit/truncate``)."""
    out = {key: value for key, value in event.items() if key not in ("requestObject", "responseObject")}
    out["annotations"] = {**out.get("annotations", {}), TRUNCATED: "true"}
    return out


def legacy_line(event: Object) -> str:
    """``--audit-log-format legacy``: one line of text."""
    user, acting = event["user"], event.get("impersonatedUser")

    def quoted(text: str) -> str:
        return orjson.dumps(text).decode()

    def listed(values: list[str]) -> str:
        return ",".join(quoted(value) for value in values)

    groups = listed(user["groups"]) if user.get("username") and user.get("groups") else "<none>"
    acting_groups = listed(acting["groups"]) if acting is not None and acting.get("groups") else "<lookup>"
    code = (event.get("responseStatus") or {}).get("code")
    fields = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": (event.get("sourceIPs") or ["<unknown>"])[0],
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": groups,
        "as": acting["username"] if acting is not None else "<self>",
        "asgroups": acting_groups,
        "user-agent": event.get("userAgent", ""),
        "namespace": (event.get("objectRef") or {}).get("namespace") or "<none>",
        "uri": event["requestURI"],
        "response": "<deferred>" if code is None else str(code),
    }
    told = " ".join(f"{name}={quoted(value)}" for name, value in fields.items())
    return f"{event['requestReceivedTimestamp']} AUDIT: {told}"
