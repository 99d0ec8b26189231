"""Columns of RBAC, certificates, admission and the extensions of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.machinery import timestamps
from apiserver.machinery.objects import Object, get
from apiserver.resources import cell_texts as texts
from apiserver.resources.columns import AGE, NAME, Printer, age, column, name, printer
from apiserver.resources.resource_info import Column


def _binding(obj: Object, now: float) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        kind = subject.get("kind")
        if kind == "ServiceAccount":
            subjects[kind].append(f"{subject.get('namespace', '')}/{subject.get('name', '')}")
        elif kind in subjects:
            subjects[kind].append(str(subject.get("name", "")))
    shown = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age(obj, now), *shown]


def _signing_request(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        name(obj),
        age(obj, now),
        spec.get("signerName") or texts.NONE,
        spec.get("username", ""),
        texts.NONE if seconds is None else timestamps.human_duration(seconds),
        _signing_state(obj),
    ]


def _signing_state(obj: Object) -> str:
    types = {c.get("type") for c in get(obj, "status", "conditions", default=[])}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        state += ",Failed"
    if get(obj, "status", "certificate"):
        state += ",Issued"
    return state


def _trust_bundle(obj: Object, now: float) -> list[Any]:
    return [name(obj), get(obj, "spec", "signerName", default=texts.NONE)]


def _pod_certificate_request(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    types = {c.get("type") for c in get(obj, "status", "conditions", default=[])}
    state = next((type_ for type_ in ("Denied", "Failed", "Issued") if type_ in types), "Pending")
    return [name(obj), *(spec.get(field, "") for field in ("podName", "serviceAccountName", "nodeName", "signerName")), state]


def _webhooks(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy(field: str) -> Callable[[Object, float], list[Any]]:
    def cells(obj: Object, now: float) -> list[Any]:
        parameters = get(obj, "spec", "paramKind")
        kind = f"{parameters.get('apiVersion', '')}/{parameters.get('kind', '')}" if parameters else texts.UNSET
        return [name(obj), len(get(obj, "spec", field, default=[])), kind, age(obj, now)]

    return cells


def _policy_binding(obj: Object, now: float) -> list[Any]:
    reference = get(obj, "spec", "paramRef")
    shown = texts.UNSET
    if reference:
        # whether the parameter has a namespace can't be told from here
        if reference.get("name"):
            shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
        elif reference.get("selector") is not None:
            shown = _go_selector(reference["selector"])
    return [name(obj), get(obj, "spec", "policyName", default=""), shown, age(obj, now)]


def _go_selector(selector: Object) -> str:
    """A LabelSelector as Go's generated ``String`` method shows it; here alone that is what Kubernetes prints."""
    wanted = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{wanted}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"


def _api_service(obj: Object, now: float) -> list[Any]:
    service = get(obj, "spec", "service")
    available = texts.condition(obj, "Available")
    state = "Unknown" if available is None else str(available.get("status", ""))
    if available is not None and state != "True" and available.get("reason"):
        state = f"{state} ({available['reason']})"
    return [name(obj), f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local", state, age(obj, now)]


def _binding_columns(kind: str) -> tuple[Column, ...]:
    binding = kind[:1].lower() + kind[1:]
    return (
        NAME,
        column("Role", documented=f"rbac.v1.{kind}.roleRef"),
        AGE,
        *(column(subjects, priority=1, description=f"{subjects} in the {binding}") for subjects in ("Users", "Groups", "ServiceAccounts")),
    )


_PARAM_KIND = column("ParamKind", description="ParamKind specifies the kind of resources used to parameterize this policy")
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_CERTIFICATES = "certificates.k8s.io"

PRINTERS: dict[tuple[str, str], Callable[[int], Printer]] = {
    **{(_RBAC, kind): printer(*_binding_columns(kind), cells=_binding) for kind in ("RoleBinding", "ClusterRoleBinding")},
    (_CERTIFICATES, "CertificateSigningRequest"): printer(
        NAME,
        AGE,
        column("SignerName", documented="certificates.v1.CertificateSigningRequestSpec.signerName"),
        column("Requestor", documented="certificates.v1.CertificateSigningRequestSpec.request"),
        column("RequestedDuration", documented="certificates.v1.CertificateSigningRequestSpec.expirationSeconds"),
        column("Condition", documented="certificates.v1.CertificateSigningRequestStatus.conditions"),
        cells=_signing_request,
    ),
    (_CERTIFICATES, "ClusterTrustBundle"): printer(
        NAME, column("SignerName", documented="certificates.v1.ClusterTrustBundleSpec.signerName"), cells=_trust_bundle
    ),
    (_CERTIFICATES, "PodCertificateRequest"): printer(
        NAME,
        column("PodName", documented="certificates.v1.PodCertificateRequestSpec.podName"),
        column("ServiceAccountName", documented="certificates.v1.PodCertificateRequestSpec.serviceAccountName"),
        column("NodeName", documented="certificates.v1.PodCertificateRequestSpec.nodeName"),
        column("SignerName", documented="certificates.v1.PodCertificateRequestSpec.signerName"),
        column("State", description="Whether the request is pending, issued, denied or failed"),
        cells=_pod_certificate_request,
    ),
    **{
        (_ADMISSION, kind): printer(
            NAME,
            column("Webhooks", "integer", description="Webhooks indicates the number of webhooks registered in this configuration"),
            AGE,
            cells=_webhooks,
        )
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    },
    (_ADMISSION, "ValidatingAdmissionPolicy"): printer(
        NAME,
        column("Validations", "integer", description="Validations indicates the number of validation rules defined in this configuration"),
        _PARAM_KIND,
        AGE,
        cells=_policy("validations"),
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): printer(
        NAME,
        column("Mutations", "integer", description="Mutation indicates the number of mutations rules defined in this configuration"),
        _PARAM_KIND,
        AGE,
        cells=_policy("mutations"),
    ),
    **{
        (_ADMISSION, kind): printer(
            NAME,
            column("PolicyName", description="PolicyName indicates the policy definition which the policy binding binded to"),
            column("ParamRef", description="ParamRef indicates the param resource which sets the configration param"),
            AGE,
            cells=_policy_binding,
        )
        for kind in ("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding")
    },
    ("apiregistration.k8s.io", "APIService"): printer(
        NAME,
        column("Service", description="The reference to the service that hosts this API endpoint."),
        column("Available", description="Whether this service is available."),
        AGE,
        cells=_api_service,
    ),
}
