"""Policies and bindings for tests."""

from __future__ import annotations

from typing import Any

from tests.apiserver.api import Answer, Api

ROOT = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/ns-a/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


def constraints(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"resourceRules": list(rules) or [RULE], **more}


def validating(name: str, *validations: Any, **spec: Any) -> dict[str, Any]:
    said = [{"expression": one} if isinstance(one, str) else one for one in validations]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": {"matchConstraints": constraints(), "validations": said, **spec}}


def mutating(name: str, *mutations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy"}
    whole = {"matchConstraints": constraints(), "mutations": list(mutations), "reinvocationPolicy": "Never", **spec}
    return {**kind, "metadata": {"name": name}, "spec": whole}


def applied(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def binding(policy: dict[str, Any], name: str = "", **spec: Any) -> dict[str, Any]:
    whole = {"policyName": policy["metadata"]["name"], **spec}
    if policy["kind"] == "ValidatingAdmissionPolicy":
        whole.setdefault("validationActions", ["Deny"])
    kind = {"apiVersion": policy["apiVersion"], "kind": f"{policy['kind']}Binding"}
    return {**kind, "metadata": {"name": name or f"{policy['metadata']['name']}-binding"}, "spec": whole}


async def installed(api: Api, policy: dict[str, Any], *bindings: dict[str, Any], **spec: Any) -> None:
    """The policy with the bindings, or with one of its own that says ``spec``."""
    plural = "validatingadmissionpolicies" if policy["kind"] == "ValidatingAdmissionPolicy" else "mutatingadmissionpolicies"
    await api.created(f"{ROOT}/{plural}", policy)
    for one in bindings or (binding(policy, **spec),):
        await api.created(f"{ROOT}/{plural.removesuffix('ies')}ybindings", one)


def config_map(name: str = "one", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def warnings(answer: Answer) -> list[str]:
    return [text.partition('"')[2].rpartition('"')[0] for text in answer.headers.get("warning", [])]
