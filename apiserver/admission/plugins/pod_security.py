"""PodSecurity: the labels ``pod-security.kubernetes.io/{enforce,audit,warn}`` of a namespace bound what its pods may do.

``enforce`` refuses pods; ``warn`` tells the client and ``audit`` the audit event, also of templates in workloads, whose pods would be
refused only later.
"""

from __future__ import annotations

from apiserver.admission.configuration import NO_POD_SECURITY, PodSecurityConfiguration
from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, new_object
from apiserver.admission.pod_security import policy
from apiserver.admission.pod_security.policy import Level, Policy, Wanted
from apiserver.machinery import objects, status
from apiserver.resources.facts import LAST_MINOR
from apiserver.resources.resource_info import ResourceInfo

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
#: subresources of pods that change nothing of what the standards look at
_IGNORED = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
#: pods of a namespace that are looked at when it is tightened, as upstream; who tightens it is told where there are more
PODS_CHECKED_MAX = 3000


class PodSecurity(Plugin):
    name = "PodSecurity"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD, _NAMESPACES, *_TEMPLATES))
    subresources = None

    def __init__(self, getter: ObjectGetter, configuration: PodSecurityConfiguration = NO_POD_SECURITY, minor: int = LAST_MINOR) -> None:
        """``minor``: the served Kubernetes version, whose rules are the latest."""
        self._getter = getter
        self._configuration = configuration
        self._minor = minor
        self._defaults = Policy(**configuration.defaults)
        exempt = configuration.usernames or configuration.namespaces
        self._is_plain = self._defaults.asks_nothing() and not exempt

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        if not super().handles(operation, info, subresource):
            return False
        return subresource not in _IGNORED if (info.group, info.resource) == POD else not subresource

    async def validate(self, attributes: AdmissionAttributes) -> None:
        key = (attributes.info.group, attributes.info.resource)
        if key == _NAMESPACES:
            self._check_namespace(attributes)
            return
        exempt = self._configuration
        namespace = self._getter.get("", "namespaces", "", attributes.namespace)
        labels = objects.labels(namespace) if namespace is not None else {}
        if self._is_plain and not any(label.startswith(policy.PREFIX) for label in labels):
            # nearly all namespaces: nothing is asked, and nobody is exempt from it
            if key == POD:
                attributes.annotate(f"{policy.PREFIX}enforce-policy", "privileged:latest")
            return
        if attributes.namespace in exempt.namespaces or attributes.user.name in exempt.usernames:
            attributes.annotate(f"{policy.PREFIX}exempt", "namespace" if attributes.namespace in exempt.namespaces else "user")
            return
        found, errors = policy.policy_of(labels, self._defaults)
        if not errors and found.asks_nothing():
            if key == POD:
                attributes.annotate(f"{policy.PREFIX}enforce-policy", "privileged:latest")
            return
        new = new_object(attributes)
        if key != POD and not errors and found.warn.level is found.audit.level is Level.PRIVILEGED:
            return
        if key == POD and attributes.operation is Operation.UPDATE and not _is_significant(new, attributes.old_object or {}):
            return
        pod = new if key == POD else objects.get(new, *_TEMPLATES[key])
        if pod is None:
            return
        if (pod.get("spec") or {}).get("runtimeClassName") in exempt.runtime_classes:
            attributes.annotate(f"{policy.PREFIX}exempt", "runtimeClass")
            return
        if errors:
            told = [error.text() for error in errors]
            aggregate = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
            attributes.annotate(f"{policy.PREFIX}error", f"Failed to parse policy: {aggregate}")
        self._judge(attributes, found, pod, enforce=key == POD)

    def _judge(self, attributes: AdmissionAttributes, wanted: Policy, pod: objects.Object, *, enforce: bool) -> None:
        """Raises StatusError 403. A template is only told of: its pods will be refused."""
        said: dict[Wanted, str] = {}

        def of(mode: Wanted) -> str:
            if mode not in said:
                said[mode] = policy.told(policy.violations(mode, pod.get("metadata") or {}, pod.get("spec") or {}, self._minor))
            return said[mode]

        if enforce:
            attributes.annotate(f"{policy.PREFIX}enforce-policy", wanted.enforce.text())
        if of(wanted.audit):
            text = f'would violate PodSecurity "{wanted.audit.text()}": {of(wanted.audit)}'
            attributes.annotate(f"{policy.PREFIX}audit-violations", text)
        if enforce and of(wanted.enforce):
            raise forbidden(attributes, f'violates PodSecurity "{wanted.enforce.text()}": {of(wanted.enforce)}')
        if of(wanted.warn):
            attributes.warnings.append(f'would violate PodSecurity "{wanted.warn.text()}": {of(wanted.warn)}')

    def _check_namespace(self, attributes: AdmissionAttributes) -> None:
        new, old = new_object(attributes), attributes.old_object
        name, labels = objects.name(new), objects.labels(new)
        wanted, errors = policy.policy_of(labels, self._defaults)
        if old is None:
            if errors:
                raise status.invalid("", "Namespace", name, errors)
            if name in self._configuration.namespaces:
                self._warn_of_exemption(attributes, wanted, labels)
            return
        had, old_errors = policy.policy_of(objects.labels(old), self._defaults)
        # labels that were wrong before may stay, so that other changes are possible
        if errors and errors != old_errors:
            raise status.invalid("", "Namespace", name, errors)
        asked, before = wanted.enforce, had.enforce
        if asked == before or asked.level is Level.PRIVILEGED:
            return
        if asked.version == before.version and not asked.is_stricter_than(before):
            return
        if name in self._configuration.namespaces:
            self._warn_of_exemption(attributes, wanted, labels)
            return
        self._warn_of_pods(attributes, asked)

    def _warn_of_exemption(self, attributes: AdmissionAttributes, wanted: Policy, labels: dict[str, str]) -> None:
        if wanted.asks_nothing() or wanted.is_like(self._defaults):
            return
        modes = zip(policy.MODES, (wanted.enforce, wanted.audit, wanted.warn), strict=True)
        said = ", ".join(
            f"{mode}={found.text()}"
            for mode, found in modes
            if found.level is not Level.PRIVILEGED and (f"{policy.PREFIX}{mode}" in labels or f"{policy.PREFIX}{mode}-version" in labels)
        )
        what = f'namespace "{objects.name(new_object(attributes))}" is exempt from Pod Security'
        attributes.warnings.append(f"{what}, and the policy ({said}) will be ignored")

    def _warn_of_pods(self, attributes: AdmissionAttributes, wanted: Wanted) -> None:
        """Pods that are there stay; who tightens a namespace is told which would not come back."""
        namespace = objects.name(new_object(attributes))
        pods = self._by_weight(sorted(self._getter.list("", "pods", namespace), key=objects.name))
        kinds: dict[str, list[str]] = {}
        for pod in pods[:PODS_CHECKED_MAX]:
            found = policy.violations(wanted, objects.metadata(pod), pod.get("spec") or {}, self._minor)
            if found:
                kinds.setdefault(", ".join(v.reason for v in found), []).append(objects.name(pod))
        if len(pods) > PODS_CHECKED_MAX:
            what = f"new PodSecurity enforce level only checked against the first {PODS_CHECKED_MAX} of {len(pods)} existing pods"
            attributes.warnings.append(what)
        if not kinds:
            return
        attributes.warnings.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{wanted.text()}"')
        told = []
        for reasons, names in kinds.items():
            others = f" (and {len(names) - 1} other pod{'s' if len(names) > 2 else ''})" if len(names) > 1 else ""
            told.append(f"{min(names)}{others}: {reasons}")
        attributes.warnings += sorted(told)

    def _by_weight(self, pods: list[objects.Object]) -> list[objects.Object]:
        """Without the exempt ones; those that say nothing new, since another pod of their controller stands before them, come last."""
        first: list[objects.Object] = []
        more: list[objects.Object] = []
        seen: set[str] = set()
        for pod in pods:
            if (pod.get("spec") or {}).get("runtimeClassName") in self._configuration.runtime_classes:
                continue
            uid = next((str(owner.get("uid")) for owner in objects.owner_references(pod) if owner.get("controller")), "")
            (more if uid and uid in seen else first).append(pod)
            seen.add(uid)
        return first + more


def _is_significant(new: objects.Object, old: objects.Object) -> bool:
    """Whether an update changes what the standards look at and an update may change: containers come and go, and their images."""
    now, before = new.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        images, known = ([c.get("image") for c in spec.get(field) or ()] for spec in (now, before))
        if images != known:
            return True
    known_names = {c.get("name"): c.get("image") for c in before.get("ephemeralContainers") or ()}
    missing = object()
    return any(known_names.get(c.get("name"), missing) != c.get("image") for c in now.get("ephemeralContainers") or ())
