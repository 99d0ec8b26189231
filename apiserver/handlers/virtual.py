"""Kinds that nothing stores: reviews, bindings, component statuses. Each request is answered by a function of its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.authentication import reviews as authentication_reviews
from apiserver.authentication.interfaces import TokenAuthenticator
from apiserver.authentication.user import UserInfo
from apiserver.authorization import reviews as authorization_reviews
from apiserver.authorization.authorizer import Authorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.handlers import forms, pod_subresources, response
from apiserver.handlers import scope as scopes
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import objects, status
from apiserver.machinery import table as tables
from apiserver.machinery.objects import Object
from apiserver.request import body as request_body
from apiserver.request.body import Receive
from apiserver.request.negotiation import Form, negotiate
from apiserver.request.options import write_options
from apiserver.request.request_context import RequestContext
from apiserver.request.unanswered import settled
from apiserver.resources import columns
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import minor_of
from apiserver.schemas.schema_set import SchemaSet

Answer = Callable[[Object, RequestContext], Object]


class VirtualResources:
    """``pods`` gives the scope of pods, which bindings are about; ``modes`` the authorization modes, in their order."""

    def __init__(
        self,
        schemas: SchemaSet,
        tokens: TokenAuthenticator,
        authorizer: Authorizer,
        rbac: RbacData,
        modes: Callable[[], Sequence[str]],
        pods: Callable[[], ResourceScope],
        max_body_bytes: int,
    ) -> None:
        self._schemas = schemas
        self._pods = pods
        self._max_body_bytes = max_body_bytes
        self._answers: dict[str, Answer] = {
            "TokenReview": lambda body, context: authentication_reviews.token_review(body, tokens),
            "SelfSubjectReview": lambda body, context: authentication_reviews.self_subject_review(body, _user(context)),
            "SubjectAccessReview": lambda body, context: authorization_reviews.subject_access_review(body, authorizer),
            "LocalSubjectAccessReview": lambda body, context: authorization_reviews.local_subject_access_review(
                body, context.info.namespace, authorizer
            ),
            "SelfSubjectAccessReview": lambda body, context: authorization_reviews.self_subject_access_review(
                body, _user(context), authorizer
            ),
            "SelfSubjectRulesReview": lambda body, context: authorization_reviews.self_subject_rules_review(
                body, _user(context), rbac, modes()
            ),
        }

    async def __call__(self, info: ResourceInfo, context: RequestContext, receive: Receive, send: Send) -> None:
        if info.resource == "componentstatuses":
            await self._component_statuses(info, context, send)
        elif info.resource == "bindings":
            await pod_subresources.bind(self._pods(), context, receive, send, self._max_body_bytes)
        else:
            await self._review(info, context, receive, send)

    async def _review(self, info: ResourceInfo, context: RequestContext, receive: Receive, send: Send) -> None:
        negotiated = negotiate(context.headers, context.query, list_of_objects=False)
        if len(context.info.parts) > 1:
            raise status.generic_method_not_allowed()
        body = await request_body.read(receive, context.headers, limit_bytes=self._max_body_bytes)
        options = write_options(context.query, "CreateOptions")
        review = await scopes.decode_apart(self._schemas, info, info.kind, body, options, context)
        if context.audit is not None:
            context.audit.note_request_object(review)
        answer = await settled(lambda: self._answers[info.kind](review, context))
        await response.send_object(send, context, 201, negotiated, answer)

    async def _component_statuses(self, info: ResourceInfo, context: RequestContext, send: Send) -> None:
        """The store answers, or this server would not; the other components have health endpoints of their own."""
        name = context.info.name
        if name not in ("", "etcd-0"):
            raise status.not_found("", "componentstatuses", name)
        negotiated = negotiate(context.headers, context.query, list_of_objects=not name)
        condition = {"type": "Healthy", "status": "True", "message": "ok"}
        etcd: Object = {"metadata": objects.unstored_metadata(name="etcd-0"), "conditions": [condition]}
        answer: Object
        if negotiated.form is Form.TABLE:
            printer = columns.printer_for(info, minor_of(self._schemas.kubernetes_version))
            row = tables.row(printer.cells(etcd, 0.0), etcd, forms.include_object(context), negotiated.version)
            answer = tables.table(printer.definitions(self._schemas.description_of), [row], {}, negotiated.version)
        elif name:
            answer = {"kind": info.kind, "apiVersion": info.api_version, **etcd}
        else:
            answer = {"kind": info.list_kind, "apiVersion": info.api_version, "metadata": {}, "items": [etcd]}
        await response.send_object(send, context, 200, negotiated, answer)


def _user(context: RequestContext) -> UserInfo:
    assert context.user is not None, "the chain authenticates"
    return context.user
