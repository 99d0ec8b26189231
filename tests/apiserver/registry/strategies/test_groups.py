"""Kinds of the other API groups."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.authentication.user import UserInfo
from apiserver.machinery.objects import Object
from apiserver.registry.strategy import StrategyContext
from tests.apiserver.registry.strategies.golden_steps import NOW
from tests.apiserver.registry.strategies.kinds import changed, context, create_errors, created, of, rules, update_errors

REQUESTS = rules("CertificateSigningRequest", "certificates.k8s.io")
AUTOSCALERS = rules("HorizontalPodAutoscaler", "autoscaling", "v2")
BUDGETS = rules("PodDisruptionBudget", "policy")
PRIORITIES = rules("PriorityClass", "scheduling.k8s.io")
POLICIES = rules("NetworkPolicy", "networking.k8s.io")
INGRESS_CLASSES = rules("IngressClass", "networking.k8s.io")
WEBHOOKS = rules("MutatingWebhookConfiguration", "admissionregistration.k8s.io")
VALIDATING_POLICIES = rules("ValidatingAdmissionPolicy", "admissionregistration.k8s.io")
BINDINGS = rules("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io")
FLOWS = rules("FlowSchema", "flowcontrol.apiserver.k8s.io")
LEVELS = rules("PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io")
SERVICES = rules("APIService", "apiregistration.k8s.io")
DEFINITIONS = rules("CustomResourceDefinition", "apiextensions.k8s.io")
CLASSES = rules("StorageClass", "storage.k8s.io")
DRIVERS = rules("CSIDriver", "storage.k8s.io")
ATTACHMENTS = rules("VolumeAttachment", "storage.k8s.io")
ADDRESSES = rules("IPAddress", "networking.k8s.io")

REFERENCE = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}


def request_pem() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ann")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


def signing_request() -> Object:
    spec = {"signerName": "example.com/s", "usages": ["client auth"], "request": request_pem(), "username": "somebody-else"}
    obj = of(spec)
    user = UserInfo(name="ann", uid="7", groups=("devs",), extra={"k": ("v",)})
    asked = StrategyContext(namespace="", now=NOW, user="ann", user_info=user)
    REQUESTS.prepare_for_create(asked, obj)
    assert REQUESTS.validate(asked, obj) == []
    return obj


def test_who_asks_for_a_certificate_is_who_made_the_request() -> None:
    spec = signing_request()["spec"]
    assert (spec["username"], spec["uid"], spec["groups"], spec["extra"]) == ("ann", "7", ["devs"], {"k": ["v"]})


def test_approval_and_signing_have_their_own_endpoints() -> None:
    old = signing_request()
    approved = {"type": "Approved", "status": "True", "reason": "R"}
    main = changed(old, usages=["server auth"])
    main["status"] = {"conditions": [approved]}
    assert update_errors(REQUESTS, main, old) == []
    assert (main["spec"], main["status"]) == (old["spec"], old["status"])
    approval = REQUESTS.subresource("approval")
    assert approval is not None
    new = copy.deepcopy(old)
    new["status"] = {"conditions": [approved], "certificate": "eA=="}
    assert update_errors(approval, new, old) == []
    assert new["status"] == {"conditions": [{**approved, "lastTransitionTime": NOW, "lastUpdateTime": NOW}]}
    both = copy.deepcopy(new)
    both["status"]["conditions"].append({"type": "Denied", "status": "True"})
    assert update_errors(approval, both, new) == [
        'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    gone = copy.deepcopy(new)
    gone["status"] = {}
    assert update_errors(approval, gone, new) == ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"']
    sneaky = copy.deepcopy(old)
    sneaky["status"] = {"conditions": [approved]}
    errors = [e.text() for e in REQUESTS.validate_status_update(context(), sneaky, old)]
    assert errors == ['status.conditions: Forbidden: updates may not add a condition of type "Approved"']


def test_an_autoscaler_without_metrics_watches_the_cpu() -> None:
    made = created(AUTOSCALERS, of({"scaleTargetRef": REFERENCE, "maxReplicas": 3, "behavior": {"scaleDown": {"selectPolicy": "Min"}}}))
    spec = made["spec"]
    assert spec["minReplicas"] == 1
    target = {"type": "Utilization", "averageUtilization": 80}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert spec["behavior"]["scaleDown"]["selectPolicy"] == "Min"
    assert len(spec["behavior"]["scaleUp"]["policies"]) == 2
    again = created(AUTOSCALERS, of({"scaleTargetRef": REFERENCE, "maxReplicas": 3, "behavior": {}}))
    again["spec"]["behavior"]["scaleUp"]["policies"].clear()
    fresh = created(AUTOSCALERS, of({"scaleTargetRef": REFERENCE, "maxReplicas": 3, "behavior": {}}))
    assert len(fresh["spec"]["behavior"]["scaleUp"]["policies"]) == 2, "the defaults are nobody's to change"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"maxReplicas": 0}, "spec.maxReplicas: Invalid value: 0: must be greater than 0"),
        ({"minReplicas": 5}, "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"),
        ({"scaleTargetRef": {"name": "d"}}, "spec.scaleTargetRef.kind: Required value"),
        ({"metrics": [{"type": "Pods"}]}, "spec.metrics[0].pods: Required value: must populate information for the given metric source"),
        (
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]},
            "spec.metrics[0].resource.target.averageUtilization: Required value: "
            "must set either a target raw value or a target utilization",
        ),
        ({"behavior": {"scaleUp": {"policies": []}}}, "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"),
    ],
)
def test_refusals_of_autoscalers(spec: Object, wanted: str) -> None:
    assert wanted in create_errors(AUTOSCALERS, of({"scaleTargetRef": REFERENCE, "maxReplicas": 3, **spec}))


def test_disruption_budgets() -> None:
    made = created(BUDGETS, of({"minAvailable": "50%"}))
    assert made["status"] == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    errors = create_errors(BUDGETS, of({"minAvailable": "150%", "maxUnavailable": -1}))
    assert errors[0].endswith("minAvailable and maxUnavailable cannot be both set")
    assert 'spec.minAvailable: Invalid value: "150%": must not be greater than 100%' in errors


def test_priority_classes() -> None:
    made = created(PRIORITIES, of(value=1000))
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    assert update_errors(PRIORITIES, {**copy.deepcopy(made), "value": 2}, made) == ["value: Forbidden: may not be changed in an update."]
    assert create_errors(PRIORITIES, of(value=1_000_000_001)) == [
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
    ]
    system = of(value=1)
    system["metadata"]["name"] = "system-mine"
    assert create_errors(PRIORITIES, system)[0].startswith(
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved"
    )


def test_network_policies() -> None:
    made = created(POLICIES, of({"egress": [{"ports": [{"port": 53}]}]}))["spec"]
    assert made["policyTypes"] == ["Ingress", "Egress"]
    assert made["podSelector"] == {}
    assert made["egress"][0]["ports"][0]["protocol"] == "TCP"
    peers: list[Any] = [{}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}, "podSelector": {}}]
    errors = create_errors(POLICIES, of({"ingress": [{"from": peers, "ports": [{"port": 9, "endPort": 5}]}]}))
    assert errors == [
        "spec.ingress[0].ports[0].endPort: Invalid value: 9: must be greater than or equal to `port`",
        "spec.ingress[0].from[0]: Required value: must specify a peer",
        'spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
        "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
    ]


def test_ingress_classes() -> None:
    made = created(INGRESS_CLASSES, of({"controller": "example.com/c", "parameters": {"kind": "K", "name": "p"}}))
    assert made["spec"]["parameters"]["scope"] == "Cluster"
    assert update_errors(INGRESS_CLASSES, changed(made, controller="example.com/d"), made) == [
        'spec.controller: Invalid value: "example.com/d": field is immutable'
    ]
    assert create_errors(INGRESS_CLASSES, of({"controller": "nothing"}))[0].startswith("spec.controller: Invalid value: ")


def hook(**fields: Any) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    config = {"url": "https://host.example.com/x"}
    versions = ["v1"]
    return {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": versions,
        "clientConfig": config,
        "rules": [rule],
        **fields,
    }


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"name": "short"}, 'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots'),
        ({"sideEffects": "Some"}, 'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
        ({"timeoutSeconds": 60}, "webhooks[0].timeoutSeconds: Invalid value: 60: the timeout value must be between 1 and 30 seconds"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://u@h/#f"}}, 'webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted'),
        ({"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "a//b"}}}, "webhooks[0].clientConfig.service.path: Invalid"),
        (
            {"admissionReviewVersions": ["v7"]},
            'webhooks[0].admissionReviewVersions: Invalid value: ["v7"]: must include at least one of v1',
        ),
        ({"rules": [{"operations": ["*", "CREATE"], "resources": ["*", "pods"]}]}, "webhooks[0].rules[0].operations: Invalid value: "),
        ({"matchConditions": [{"name": "a"}]}, "webhooks[0].matchConditions[0].expression: Required value"),
    ],
)
def test_refusals_of_webhooks(fields: Object, wanted: str) -> None:
    errors = create_errors(WEBHOOKS, of(webhooks=[hook(**fields)]))
    assert any(error.startswith(wanted) for error in errors), errors


def test_old_webhooks_keep_what_is_not_allowed_any_more() -> None:
    old = of(webhooks=[hook(sideEffects="Some"), hook(sideEffects="Some")])
    WEBHOOKS.default(old)
    assert update_errors(WEBHOOKS, copy.deepcopy(old), old) == []
    assert len(create_errors(WEBHOOKS, copy.deepcopy(old))) == 3


def test_admission_policies_and_their_bindings() -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    made = created(VALIDATING_POLICIES, of(spec))["spec"]
    assert made["failurePolicy"] == "Fail"
    assert made["matchConstraints"]["matchPolicy"] == "Equivalent"
    assert made["matchConstraints"]["resourceRules"][0]["scope"] == "*"
    assert create_errors(VALIDATING_POLICIES, of({})) == [
        "spec.matchConstraints: Required value",
        "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
    ]
    binding = created(BINDINGS, of({"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "x"}}))
    assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Deny"
    errors = create_errors(BINDINGS, of({"policyName": "p", "validationActions": ["Deny", "Warn"], "paramRef": {}}))
    assert errors[0] == "spec.paramRef: Required value: one of name or selector must be specified"
    assert "must not contain both Deny and Warn" in errors[1]


def test_flow_schemas_and_priority_levels() -> None:
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "ns"}}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    spec = {"priorityLevelConfiguration": {"name": "p"}, "rules": [{"subjects": [subject], "resourceRules": [rule]}]}
    assert created(FLOWS, of(spec))["spec"]["matchingPrecedence"] == 1000
    bad: Object = {
        "matchingPrecedence": 1,
        "rules": [
            {"subjects": [{"kind": "User", "group": {"name": "g"}}], "nonResourceRules": [{"verbs": ["look"], "nonResourceURLs": ["x"]}]}
        ],
    }
    path = "spec.rules[0]"
    assert create_errors(FLOWS, of(bad)) == [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
        f"{path}.subjects[0].user: Required value: user is required when subject kind is 'User'",
        f"{path}.subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        f'{path}.nonResourceRules[0].verbs: Unsupported value: ["look"]: supported values: "create", "delete", "deletecollection", '
        '"get", "list", "patch", "proxy", "update", "watch"',
        f'{path}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: "x": must start with slash',
    ]
    queue = {"type": "Queue", "queuing": {"handSize": 9, "queues": 8}}
    level = of({"type": "Limited", "limited": {"limitResponse": queue}})
    assert create_errors(LEVELS, level) == [
        "spec.limited.limitResponse.queuing.handSize: Invalid value: 9: should not be greater than queues (8)"
    ]
    assert level["spec"]["limited"]["nominalConcurrencyShares"] == 30
    assert level["spec"]["limited"]["limitResponse"]["queuing"]["queueLengthLimit"] == 50


def test_api_services() -> None:
    spec = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    local = of(spec)
    local["metadata"]["name"] = "v1.example.com"
    made = created(SERVICES, local)
    assert made["status"]["conditions"][0]["reason"] == "Local"
    remote = copy.deepcopy(local)
    remote["spec"]["service"] = {"name": "s", "namespace": "ns"}
    assert created(SERVICES, remote)["spec"]["service"]["port"] == 443
    wrong = of({**spec, "versionPriority": 0, "insecureSkipTLSVerify": True})
    assert create_errors(SERVICES, wrong) == [
        'metadata.name: Invalid value: "a": must be `spec.version+"."+spec.group`: "v1.example.com"',
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
        "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
    ]


def test_definitions_remember_every_version_in_which_objects_were_stored() -> None:
    versions = [{"name": n, "storage": n == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}} for n in ("v1", "v2")]
    names = {"plural": "things", "kind": "Thing"}
    thing = of({"names": names, "versions": versions, "group": "example.com", "scope": "Cluster"}, metadata={"name": "things.example.com"})
    old = created(DEFINITIONS, thing)
    assert old["spec"]["names"] == {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert old["status"]["storedVersions"] == ["v1"]
    moved = changed(old, versions=[{"name": "v1", "storage": False}, {"name": "v2", "storage": True}])
    update_errors(DEFINITIONS, moved, old)
    assert moved["status"]["storedVersions"] == ["v1", "v2"]


def test_storage() -> None:
    assert create_errors(CLASSES, of(provisioner="", volumeBindingMode="Later")) == [
        "provisioner: Required value",
        'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
    ]
    driver = created(DRIVERS, of({}))["spec"]
    assert driver["attachRequired"] is True
    assert driver["fsGroupPolicy"] == "ReadWriteOnceWithFSType"
    assert driver["volumeLifecycleModes"] == ["Persistent"]
    attachment = created(ATTACHMENTS, of({"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}))
    assert attachment["status"] == {"attached": False}
    (error,) = update_errors(ATTACHMENTS, changed(attachment, nodeName="m"), attachment)
    assert error.startswith("spec: Invalid value: ")
    assert error.endswith("field is immutable")


def test_ip_addresses_are_named_by_their_canonical_form() -> None:
    obj = of({"parentRef": {"resource": "services", "name": "s", "namespace": "ns"}})
    obj["metadata"]["name"] = "2001:DB8::1"
    assert create_errors(ADDRESSES, obj) == [
        'metadata.name: Invalid value: "2001:DB8::1": must be an IP address in canonical form: 2001:db8::1'
    ]
    obj["metadata"]["name"] = "2001:db8::1"
    assert create_errors(ADDRESSES, obj) == []


def test_a_claims_resources_are_fixed_but_for_the_size_of_a_bound_one() -> None:
    strategy = rules("PersistentVolumeClaim")
    amounts = {"requests": {"storage": "1Gi"}, "limits": {"storage": "4Gi"}}
    stored = created(strategy, of({"accessModes": ["ReadWriteOnce"], "resources": amounts, "volumeName": "v"}))
    bound = {**stored, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    for resources, old, refused in (
        ({"requests": {"storage": "1024Mi"}, "limits": {"storage": "4Gi"}}, stored, False),
        ({"requests": {"storage": "1Gi"}}, stored, True),
        ({"requests": {"storage": "2Gi"}, "limits": {"storage": "4Gi"}}, stored, True),
        ({"requests": {"storage": "2Gi"}, "limits": {"storage": "4Gi"}}, bound, False),
        ({"requests": {"storage": "2Gi"}, "limits": {"storage": "5Gi"}}, bound, True),
    ):
        errors = update_errors(strategy, changed(old, resources=resources), old)
        assert bool(errors) is refused, (resources, errors)
        assert all(error.startswith("spec: Forbidden: spec is immutable after creation") for error in errors)


def test_an_attributes_class_is_never_emptied() -> None:
    strategy = rules("PersistentVolumeClaim")
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeAttributesClassName": "gold"}
    stored = {**created(strategy, of(base)), "status": {"phase": "Bound"}}
    assert update_errors(strategy, changed(stored, volumeAttributesClassName="silver"), stored) == []
    assert update_errors(strategy, changed(stored, volumeAttributesClassName=None), stored) == []
    assert update_errors(strategy, changed(stored, volumeAttributesClassName=""), stored) == [
        "spec.volumeAttributesClassName: Forbidden: update from non-nil value to an empty string is forbidden"
    ]
    used = {**stored, "status": {"phase": "Bound", "currentVolumeAttributesClassName": "gold"}}
    assert update_errors(strategy, changed(used, volumeAttributesClassName=None), used) == [
        "spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
    ]


def test_the_older_field_of_a_nodes_address_range_wins_and_is_fixed() -> None:
    strategy = rules("Node")
    stored = created(strategy, of({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.9.0.0/24"], "providerID": "p"}))
    assert stored["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    words = "node updates may only change labels, taints, or capacity"
    assert update_errors(strategy, changed(stored, providerID="q"), stored) == [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        f"[]: Forbidden: {words}",
    ]


def test_a_runtime_class_is_checked_on_updates_too() -> None:
    strategy = rules("RuntimeClass", "node.k8s.io")
    stored = created(strategy, of(handler="h", api_version="node.k8s.io/v1"))
    new = {**stored, "scheduling": {"nodeSelector": {"a": "!"}}, "metadata": dict(stored["metadata"])}
    assert update_errors(strategy, new, stored)[0].startswith('scheduling.nodeSelector: Invalid value: "!"')


def test_a_limit_range_without_a_name_is_given_one() -> None:
    nameless = of({"limits": []})
    del nameless["metadata"]["name"]
    assert created(rules("LimitRange"), nameless)["metadata"]["name"] == "u-1"
