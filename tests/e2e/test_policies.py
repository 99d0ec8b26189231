"""The real kubectl meets admission policies and rules in CEL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Eventually = Callable[..., Any]

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  paramKind: {apiVersion: v1, kind: ConfigMap}
  validations:
  - expression: object.spec.replicas <= int(params.data.max)
    messageExpression: "'at most ' + params.data.max + ' replicas'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  paramRef: {name: limits, parameterNotFoundAction: Deny}
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {max: "3"}
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ranges.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: ranges, singular: range, kind: Range, listKind: RangeList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              min: {type: integer}
              max: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: max only grows}]}
            x-kubernetes-validations:
            - rule: self.min <= self.max
              messageExpression: "'min %d is over max %d'.format([self.min, self.max])"
"""


def test_a_policy_refuses_through_kubectl(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    try:
        kubectl("apply", "-f", "-", stdin=POLICY.replace("NAME", name))
        kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
        refused = kubectl.run("scale", "deployment/web", "--replicas=4", check=False)
        assert refused.returncode == 0, "the subresource is not what the policy is about"
        refused = kubectl.run("patch", "deployment/web", "-p", '{"spec":{"replicas":5}}', check=False)
        assert refused.returncode != 0
        text = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: at most 3 replicas"
        assert f'The deployments "web" is invalid: : {text}' in refused.stderr, "kubectl's words for a policy's refusal"
        told = ["get", "validatingadmissionpolicy", name, "-o", "jsonpath={.status}"]
        observed = kubectl("wait", "--for=jsonpath={.status.observedGeneration}=1", f"validatingadmissionpolicy/{name}")
        assert "condition met" in observed and kubectl(*told).strip() == '{"observedGeneration":1,"typeChecking":{}}'
        right = "object.spec.replicas <= int(params.data.max)"
        wrong = '[{"op":"replace","path":"/spec/validations/0/expression","value":"object.replicas <= 3"}]'
        kubectl("patch", "validatingadmissionpolicy", name, "--type=json", "-p", wrong)
        kubectl("wait", "--for=jsonpath={.status.observedGeneration}=2", f"validatingadmissionpolicy/{name}")
        warning = kubectl("get", "validatingadmissionpolicy", name, "-o", "jsonpath={.status.typeChecking.expressionWarnings[0].warning}")
        assert warning.startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'")
        kubectl("patch", "validatingadmissionpolicy", name, "--type=json", "-p", wrong.replace("object.replicas <= 3", right))
        kubectl("patch", "configmap/limits", "-p", '{"data":{"max":"9"}}')
        kubectl("patch", "deployment/web", "-p", '{"spec":{"replicas":5}}')
    finally:
        for kind in ("validatingadmissionpolicy", "validatingadmissionpolicybinding"):
            kubectl("delete", kind, name, "--ignore-not-found")


def test_rules_of_a_definition_that_was_applied_by_the_server(kubectl: Kubectl) -> None:
    group = f"{kubectl.namespace}.test"
    try:
        kubectl("apply", "--server-side", "-f", "-", stdin=DEFINITION.replace("GROUP", group))
        kubectl("wait", "--for=condition=Established", f"crd/ranges.{group}")
        one = f"apiVersion: {group}/v1\nkind: Range\nmetadata: {{name: one}}\nspec: {{min: MIN, max: MAX}}\n"

        def apply(low: int, high: int) -> tuple[int, str]:
            said = one.replace("MIN", str(low)).replace("MAX", str(high))
            done = kubectl.run("apply", "--server-side", "-f", "-", stdin=said, check=False)
            return done.returncode, done.stderr

        code, text = apply(5, 3)
        assert code != 0 and 'The Range "one" is invalid: spec: Invalid value: min 5 is over max 3' in text
        assert apply(1, 3)[0] == 0
        code, text = apply(1, 2)
        assert code != 0 and "spec.max: Invalid value: 2: max only grows" in text
        assert apply(1, 4)[0] == 0
        wrong = DEFINITION.replace("GROUP", group).replace("self.min <= self.max", "self.min <= self.maximum")
        done = kubectl.run("apply", "--server-side", "-f", "-", stdin=wrong, check=False)
        assert done.returncode != 0 and "undefined field 'maximum'" in done.stderr
    finally:
        kubectl("delete", "crd", f"ranges.{group}", "--ignore-not-found")
