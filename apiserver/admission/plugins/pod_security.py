"""PodSecurity: the labels ``pod-security.kubernetes.io/{enforce,audit,warn}`` of a namespace bound what its pods may do.

``enforce`` refuses pods; ``warn`` tells the client, also of templates in workloads, whose pods would be refused only later.
"""

from __future__ import annotations

from typing import Any

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

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def validate(self, attributes: AdmissionAttributes) -> None:
        key = (attributes.info.group, attributes.info.resource)
        if key == _NAMESPACES:
            self._check_namespace(attributes)
            return
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        labels = objects.labels(namespace) if namespace is not None else {}
        if not any(label.startswith(policy.PREFIX) for label in labels):
            return
        if key == POD:
            self._check_pod(attributes, labels)
            return
        template = objects.get(new_object(attributes), *_TEMPLATES[key], default={})
        _warn(attributes, labels, template)

    def _check_pod(self, attributes: AdmissionAttributes, labels: dict[str, str]) -> None:
        pod = new_object(attributes)
        if attributes.operation is Operation.UPDATE and not _is_significant(pod, attributes.old_object or {}):
            return
        wanted = policy.wanted_by(labels, "enforce")
        found = policy.violations(wanted, objects.metadata(pod), pod.get("spec") or {})
        if found:
            raise forbidden(attributes, f'violates PodSecurity "{wanted.text()}": {policy.told(found)}')
        _warn(attributes, labels, pod)

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
        wanted = policy.wanted_by(labels, "enforce")
        if wanted != policy.wanted_by(objects.labels(old), "enforce"):
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


def _warn(attributes: AdmissionAttributes, labels: dict[str, str], pod: dict[str, Any]) -> None:
    wanted = policy.wanted_by(labels, "warn")
    found = policy.violations(wanted, pod.get("metadata") or {}, pod.get("spec") or {})
    if found:
        attributes.warnings.append(f'would violate PodSecurity "{wanted.text()}": {policy.told(found)}')


def _is_significant(new: objects.Object, old: objects.Object) -> bool:
    """Whether an update changes what the standards look at; labels, finalizers and tolerations they do not."""
    prefixes = ("container.apparmor.security.beta.kubernetes.io/", "seccomp.security.alpha.kubernetes.io/")

    def judged(pod: objects.Object) -> tuple[Any, Any]:
        kept = {k: v for k, v in objects.annotations(pod).items() if k.startswith(prefixes)}
        spec = {k: v for k, v in (pod.get("spec") or {}).items() if k not in ("tolerations", "activeDeadlineSeconds", "schedulingGates")}
        return kept, spec

    return judged(new) != judged(old)
