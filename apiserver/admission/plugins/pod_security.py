"""PodSecurity: the labels ``pod-security.kubernetes.io/{enforce,audit,warn}`` of a namespace bound what its pods may do.

``enforce`` refuses pods; ``warn`` tells the client and ``audit`` the audit event, also of templates in workloads, whose pods would be
refused only later.
"""

from __future__ import annotations

from typing import Any

from apiserver.admission.configuration import NO_POD_SECURITY, PodSecurityConfiguration
from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object
from apiserver.admission.pod_security import policy
from apiserver.machinery import objects, status

#: where a workload keeps the template of its pods
_TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_NAMESPACES = ("", "namespaces")


class PodSecurity(Plugin):
    name = "PodSecurity"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD, _NAMESPACES, *_TEMPLATES))
    subresources = frozenset(("", "ephemeralcontainers"))

    def __init__(self, getter: ObjectGetter, configuration: PodSecurityConfiguration = NO_POD_SECURITY) -> None:
        self._getter = getter
        self._configuration = configuration
        self._has_defaults = any(wanted.level is not policy.Level.PRIVILEGED for wanted in configuration.defaults.values())
        self._has_exemptions = bool(configuration.usernames or configuration.runtime_classes or configuration.namespaces)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        key = (attributes.info.group, attributes.info.resource)
        if key == _NAMESPACES:
            self._check_namespace(attributes)
            return
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        labels = objects.labels(namespace) if namespace is not None else {}
        if not self._has_defaults and not any(label.startswith(policy.PREFIX) for label in labels):
            return
        pod = new_object(attributes) if key == POD else objects.get(new_object(attributes), *_TEMPLATES[key], default={})
        if self._has_exemptions and (why := self._exempt(attributes, pod)):
            attributes.annotate(f"{policy.PREFIX}exempt", why)
            return
        if key == POD:
            self._check_pod(attributes, labels)
        else:
            self._tell(attributes, labels, pod)

    def _exempt(self, attributes: AdmissionAttributes, pod: dict[str, Any]) -> str:
        said = self._configuration
        if attributes.namespace in said.namespaces:
            return "namespace"
        if attributes.user.name in said.usernames:
            return "user"
        return "runtimeClass" if (pod.get("spec") or {}).get("runtimeClassName") in said.runtime_classes else ""

    def _wanted(self, labels: dict[str, str], mode: str) -> policy.Wanted:
        return policy.wanted_by(labels, mode, self._configuration.defaults.get(mode))

    def _check_pod(self, attributes: AdmissionAttributes, labels: dict[str, str]) -> None:
        pod = new_object(attributes)
        if attributes.operation is Operation.UPDATE and not _is_significant(pod, attributes.old_object or {}):
            return
        wanted = self._wanted(labels, "enforce")
        attributes.annotate(f"{policy.PREFIX}enforce-policy", wanted.text())
        found = policy.violations(wanted, objects.metadata(pod), pod.get("spec") or {})
        if found:
            self._audit(attributes, labels, pod)
            raise forbidden(attributes, f'violates PodSecurity "{wanted.text()}": {policy.told(found)}')
        self._tell(attributes, labels, pod)

    def _tell(self, attributes: AdmissionAttributes, labels: dict[str, str], pod: dict[str, Any]) -> None:
        """The client of what ``warn`` asks for, the audit event of what ``audit`` does."""
        self._audit(attributes, labels, pod)
        if text := _would_violate(self._wanted(labels, "warn"), pod):
            attributes.warnings.append(text)

    def _audit(self, attributes: AdmissionAttributes, labels: dict[str, str], pod: dict[str, Any]) -> None:
        if text := _would_violate(self._wanted(labels, "audit"), pod):
            attributes.annotate(f"{policy.PREFIX}audit-violations", text)

    def _check_namespace(self, attributes: AdmissionAttributes) -> None:
        new = new_object(attributes)
        labels = objects.labels(new)
        old = attributes.old_object
        # labels that were wrong before may stay, so that other changes are possible
        if errors := policy.label_errors(labels):
            if old is None or any(objects.labels(old).get(k) != v for k, v in labels.items() if k.startswith(policy.PREFIX)):
                raise status.invalid("", "Namespace", objects.name(new), errors)
            return
        if old is None:
            return
        wanted = self._wanted(labels, "enforce")
        if wanted == self._wanted(objects.labels(old), "enforce"):
            return
        if objects.name(new) in self._configuration.namespaces:
            what = f'namespace "{objects.name(new)}" is exempt from Pod Security'
            attributes.warnings.append(f"{what}, and the policy (enforce={wanted.text()}) will be ignored")
            return
        self._warn_of_pods(attributes, wanted)

    def _warn_of_pods(self, attributes: AdmissionAttributes, wanted: policy.Wanted) -> None:
        """Pods that are there stay; who tightens a namespace is told which would not come back."""
        kinds: dict[str, list[str]] = {}
        for pod in sorted(self._getter.list("", "pods", objects.name(new_object(attributes))), key=objects.name):
            found = policy.violations(wanted, objects.metadata(pod), pod.get("spec") or {})
            if found:
                kinds.setdefault(", ".join(v.reason for v in found), []).append(objects.name(pod))
        if not kinds:
            return
        namespace = objects.name(new_object(attributes))
        attributes.warnings.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{wanted.text()}"')
        for reasons, names in sorted(kinds.items(), key=lambda item: item[1][0]):
            others = f" (and {len(names) - 1} other pod{'s' if len(names) > 2 else ''})" if len(names) > 1 else ""
            attributes.warnings.append(f"{names[0]}{others}: {reasons}")


def _would_violate(wanted: policy.Wanted, pod: dict[str, Any]) -> str:
    found = policy.violations(wanted, pod.get("metadata") or {}, pod.get("spec") or {})
    return f'would violate PodSecurity "{wanted.text()}": {policy.told(found)}' if found else ""


def _is_significant(new: objects.Object, old: objects.Object) -> bool:
    """Whether an update changes what the standards look at; labels, finalizers and tolerations they do not."""
    prefixes = ("container.apparmor.security.beta.kubernetes.io/", "seccomp.security.alpha.kubernetes.io/")

    def judged(pod: objects.Object) -> tuple[Any, Any]:
        kept = {k: v for k, v in objects.annotations(pod).items() if k.startswith(prefixes)}
        spec = {k: v for k, v in (pod.get("spec") or {}).items() if k not in ("tolerations", "activeDeadlineSeconds", "schedulingGates")}
        return kept, spec

    return judged(new) != judged(old)
