"""The access reviews of authorization.k8s.io/v1: virtual resources that answer what somebody may do. Pure functions from body to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.authentication.user import UserInfo, node_name
from apiserver.authorization import selectors
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision, EvaluationError
from apiserver.authorization.rbac_data import RbacData
from apiserver.machinery import field_errors, objects, status
from apiserver.machinery.field_errors import FieldError

GROUP = "authorization.k8s.io"
GROUP_VERSION = "authorization.k8s.io/v1"


def subject_access_review(body: objects.Object, authorizer: Authorizer) -> objects.Object:
    """Raises StatusError 422."""
    spec = body.get("spec") or {}
    _raise_if(_attribute_errors(spec) + _subject_errors(spec) + _metadata_errors(body))
    return _answer("SubjectAccessReview", body, spec, _subject(spec), authorizer)


def local_subject_access_review(body: objects.Object, namespace: str, authorizer: Authorizer) -> objects.Object:
    """Of one namespace, that of the path. Raises StatusError 400, 422."""
    spec = body.get("spec") or {}
    errors = _attribute_errors(spec) + _subject_errors(spec)
    attributes = spec.get("resourceAttributes")
    if attributes is not None and str(attributes.get("namespace") or "") != namespace:
        at = "spec.resourceAttributes.namespace"
        errors.append(field_errors.invalid(at, str(attributes.get("namespace") or ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        errors.append(
            field_errors.invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], "disallowed on this kind of request")
        )
    _raise_if(errors)
    if objects.namespace(body) not in ("", namespace):
        raise status.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    answer = _answer("LocalSubjectAccessReview", body, spec, _subject(spec), authorizer)
    answer["metadata"]["namespace"] = namespace
    return answer


def self_subject_access_review(body: objects.Object, user: UserInfo, authorizer: Authorizer) -> objects.Object:
    """Raises StatusError 422."""
    spec = body.get("spec") or {}
    _raise_if(_attribute_errors(spec) + _metadata_errors(body))
    return _answer("SelfSubjectAccessReview", body, spec, user, authorizer)


def self_subject_rules_review(
    body: objects.Object, user: UserInfo, data: RbacData, modes: Sequence[str] = ("Node", "RBAC")
) -> objects.Object:
    """What the requester may do in a namespace (``kubectl auth can-i --list``), as far as the authorizers of ``modes`` can tell it as
    rules. Raises StatusError 400 without a namespace."""
    namespace = str(objects.get(body, "spec", "namespace", default=""))
    if not namespace:
        raise status.bad_request("no namespace on request")
    resource_rules: list[dict[str, Any]] = []
    path_rules: list[dict[str, Any]] = []
    errors: list[str] = []
    answer: dict[str, Any] = {"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": False}
    for mode in modes:
        if mode == "RBAC":
            _add_rbac_rules(data, user, namespace, resource_rules, path_rules, errors)
        elif mode == "AlwaysAllow":
            resource_rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
            path_rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
        elif mode == "Webhook" or (mode == "Node" and node_name(user) is not None):
            # what a node may read follows from its pods, and what a webhook thinks is not known before it is asked
            errors.append(f"{mode.lower()} authorizer does not support user rule resolution")
            answer["incomplete"] = True
    if errors:
        answer["evaluationError"] = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": body.get("apiVersion") or GROUP_VERSION,
        "metadata": objects.unstored_metadata(),
        "spec": {},
        "status": answer,
    }


def _add_rbac_rules(
    data: RbacData,
    user: UserInfo,
    namespace: str,
    resource_rules: list[dict[str, Any]],
    path_rules: list[dict[str, Any]],
    errors: list[str],
) -> None:
    for grant in data.grants(user, namespace):
        if grant.error:
            errors.append(grant.error)
        for rule in grant.rules:
            as_json = rule.to_json()
            if rule.resources:
                resource_rules.append({k: v for k, v in as_json.items() if k != "nonResourceURLs"})
            if rule.non_resource_urls:
                path_rules.append({"verbs": as_json["verbs"], "nonResourceURLs": as_json["nonResourceURLs"]})


def _answer(kind: str, body: objects.Object, spec: dict[str, Any], user: UserInfo, authorizer: Authorizer) -> objects.Object:
    attributes, problems = _attributes(spec, user)
    decision, reason = authorizer.authorize(attributes)
    answer: dict[str, Any] = {"allowed": decision is Decision.ALLOW}
    if decision is Decision.DENY:
        answer["denied"] = True
    if isinstance(reason, EvaluationError):
        problems.append(reason)
    elif reason:
        answer["reason"] = reason
    if problems:
        answer["evaluationError"] = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    metadata = objects.unstored_metadata()
    if objects.namespace(body):
        metadata["namespace"] = objects.namespace(body)
    if objects.metadata(body).get("managedFields"):
        metadata["managedFields"] = objects.metadata(body)["managedFields"]
    return {
        "kind": kind,
        "apiVersion": body.get("apiVersion") or GROUP_VERSION,
        "metadata": metadata,
        "spec": spec,
        "status": answer,
    }


def _attributes(spec: dict[str, Any], user: UserInfo) -> tuple[Attributes, list[str]]:
    """What is asked about, and what of its selectors is not understood."""
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        path = spec["nonResourceAttributes"]
        verb, asked = str(path.get("verb") or ""), str(path.get("path") or "")
        return Attributes(user=user, verb=verb, is_resource_request=False, path=asked), []

    def field(name: str) -> str:
        return str(attributes.get(name) or "")

    field_selector, label_selector, problems = selectors.of_review(attributes)
    found = Attributes(
        user=user,
        verb=field("verb"),
        group=field("group"),
        version=field("version"),
        namespace=field("namespace"),
        resource=field("resource"),
        subresource=field("subresource"),
        name=field("name"),
        field_selector=field_selector,
        label_selector=label_selector,
    )
    return found, problems


def _subject(spec: dict[str, Any]) -> UserInfo:
    extra = {str(key): tuple(str(v) for v in values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(str(group) for group in spec.get("groups") or ())
    return UserInfo(name=str(spec.get("user") or ""), uid=str(spec.get("uid") or ""), groups=groups, extra=extra)


def _attribute_errors(spec: dict[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        # the names of Go's fields: the type that is shown is not the one of the wire
        shown = {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
        return [field_errors.invalid("spec.nonResourceAttributes", shown, "cannot be specified in combination with resourceAttributes")]
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_errors.invalid("spec.resourceAttributes", None, why)]
    return selectors.errors_of(resource, "spec.resourceAttributes") if resource is not None else []


def _subject_errors(spec: dict[str, Any]) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [field_errors.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_errors(body: objects.Object) -> list[FieldError]:
    metadata = {k: v for k, v in objects.metadata(body).items() if v is not None and k != "managedFields"}
    return [field_errors.invalid("metadata", metadata, "must be empty")] if metadata else []


def _raise_if(errors: list[FieldError]) -> None:
    if errors:
        raise status.invalid(GROUP, "", "", errors)
