"""Pods and pod templates: the spec as a whole, its creation, its few possible updates, its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names, release, spec_diff
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation import containers, formats, pod_platform, quantities, scheduling, security, volumes
from apiserver.registry.validation.common import Errors, checked, each, equal, labels, one_of
from apiserver.registry.validation.quality_of_service import qos_class

Part = Mapping[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
DNS_NAMESERVERS_MAX = 3
DNS_SEARCH_PATHS_MAX = 32
DNS_SEARCH_CHARACTERS_MAX = 2048
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_APP_ARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_NOTHING: Part = {}
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec(out: Errors, path: str, spec: Part, pod_name: str = "") -> None:
    """What pods and templates have in common. ``pod_name`` is empty for templates."""
    get = spec.get
    claim_names = _resource_claims(out, f"{path}.resourceClaims", claims) if (claims := get("resourceClaims")) else frozenset()
    scope = containers.PodScope(
        volumes=volumes.pod_volumes(out, f"{path}.volumes", found, pod_name) if (found := get("volumes")) else {},
        claim_names=claim_names,
        grace_period_seconds=get("terminationGracePeriodSeconds"),
        host_network=bool(get("hostNetwork")),
        host_users=get("hostUsers") is not False,
        restart_policy=get("restartPolicy") or "",
        system=(get("os") or _NOTHING).get("name") or "",
    )
    mains, inits = get("containers") or (), get("initContainers") or ()
    containers.containers(out, f"{path}.containers", mains, scope)
    if inits:
        containers.init_containers(out, f"{path}.initContainers", inits, mains, scope)
    if ephemerals := get("ephemeralContainers"):
        containers.ephemeral_containers(out, f"{path}.ephemeralContainers", ephemerals, [*mains, *inits], scope)
    if resources := get("resources"):
        quantities.resource_requirements(out, f"{path}.resources", {k: v for k, v in resources.items() if k != "claims"})
        pod_platform.pod_resources(out, path, spec)
    if get("restartPolicy") not in _RESTART_POLICIES:
        one_of(out, f"{path}.restartPolicy", get("restartPolicy"), _RESTART_POLICIES)
    if get("dnsPolicy") not in _DNS_POLICIES:
        one_of(out, f"{path}.dnsPolicy", get("dnsPolicy"), _DNS_POLICIES)
    labels(out, f"{path}.nodeSelector", get("nodeSelector"))
    if get("securityContext") or get("hostNetwork") or get("hostPID"):
        security.pod_context(out, path, spec)
    if (found := get("affinity")) is not None:
        scheduling.affinity(out, f"{path}.affinity", found)
    if get("dnsConfig") is not None or get("dnsPolicy") == "None":
        _dns_config(out, f"{path}.dnsConfig", get("dnsConfig"), get("dnsPolicy"))
    for i, gate in each(out, get("readinessGates") or ()):
        checked(out, f"{path}.readinessGates[{i}].conditionType", gate.get("conditionType") or "", names.qualified_name)
    if gates := get("schedulingGates"):
        scheduling.scheduling_gates(out, f"{path}.schedulingGates", gates)
    if constraints := get("topologySpreadConstraints"):
        scheduling.topology_spread(out, f"{path}.topologySpreadConstraints", constraints)
    pod_platform.host_processes(out, path, spec)
    pod_platform.user_namespace(out, path, spec)
    _identities(out, path, spec)


def _identities(out: Errors, path: str, spec: Part) -> None:
    """The names and small numbers at the end of the spec."""
    get = spec.get
    if account := get("serviceAccountName"):
        checked(out, f"{path}.serviceAccountName", account, names.dns1123_subdomain)
    if node := get("nodeName"):
        checked(out, f"{path}.nodeName", node, names.dns1123_subdomain)
    if (deadline := get("activeDeadlineSeconds")) is not None and not 1 <= deadline <= formats.INT32_MAX:
        out.append(invalid(f"{path}.activeDeadlineSeconds", deadline, formats.inclusive_range(1, formats.INT32_MAX)))
    if hostname := get("hostname"):
        checked(out, f"{path}.hostname", hostname, names.dns1123_label)
    if subdomain := get("subdomain"):
        checked(out, f"{path}.subdomain", subdomain, names.dns1123_label)
    if found := get("tolerations"):
        scheduling.tolerations(out, f"{path}.tolerations", found)
    for i, alias in each(out, get("hostAliases") or ()):
        ip = alias.get("ip") or ""
        for message in formats.ip_address(ip):
            out.append(invalid(f"{path}.hostAliases[{i}].ip", ip, message))
        for j, hostname in each(out, alias.get("hostnames") or ()):
            checked(out, f"{path}.hostAliases[{i}].hostnames[{j}]", hostname, names.dns1123_subdomain)
    if priority_class := get("priorityClassName"):
        checked(out, f"{path}.priorityClassName", priority_class, names.dns1123_subdomain)
    if (runtime_class := get("runtimeClassName")) is not None:
        checked(out, f"{path}.runtimeClassName", runtime_class, names.dns1123_subdomain)
    if (policy := get("preemptionPolicy")) is not None and policy not in _PREEMPTION_POLICIES:
        one_of(out, f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES)
    if overhead := get("overhead"):
        quantities.resource_requirements(out, f"{path}.overhead", {"limits": overhead})
    if (system := get("os")) is not None:
        one_of(out, f"{path}.os.name", system.get("name"), ("linux", "windows"))
        pod_platform.operating_system(out, path, spec)
    pod_platform.hostname_override(out, path, spec)


def _resource_claims(out: Errors, path: str, claims: Sequence[Part]) -> frozenset[str]:
    seen: set[str] = set()
    for i, claim in each(out, claims):
        name = claim.get("name") or ""
        if not name:
            out.append(required(f"{path}[{i}].name"))
        elif name in seen:
            out.append(duplicate(f"{path}[{i}].name", name))
        else:
            checked(out, f"{path}[{i}].name", name, names.dns1123_label)
            seen.add(name)
        sources = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(f) is not None]
        if len(sources) > 1:
            words = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            out.append(invalid(f"{path}[{i}]", dict(claim), words))
        elif not sources:
            words = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            out.append(invalid(f"{path}[{i}]", dict(claim), words))
        for field in sources:
            checked(out, f"{path}[{i}].{field}", claim[field], names.dns1123_subdomain)
    return frozenset(seen)


def _dns_config(out: Errors, path: str, config: Part | None, policy: str | None) -> None:
    if policy == "None":
        if config is None:
            out.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            out.append(required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"))
            return
    config = config or _NOTHING
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > DNS_NAMESERVERS_MAX:
        words = f"must not have more than {DNS_NAMESERVERS_MAX} nameservers"
        out.append(invalid(f"{path}.nameservers", servers, words))
    for i, server in each(out, servers):
        for message in formats.ip_address(server):
            out.append(invalid(f"{path}.nameservers[{i}]", server, message))
    if len(searches) > DNS_SEARCH_PATHS_MAX:
        words = f"must not have more than {DNS_SEARCH_PATHS_MAX} search paths"
        out.append(invalid(f"{path}.searches", searches, words))
    if len(" ".join(searches)) > DNS_SEARCH_CHARACTERS_MAX:
        words = f"must not have more than {DNS_SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        out.append(invalid(f"{path}.searches", searches, words))
    for i, search in each(out, searches):
        _search_domain(out, f"{path}.searches[{i}]", search)
    for i, option in each(out, config.get("options") or ()):
        if not option.get("name"):
            out.append(required(f"{path}.options[{i}]", "must not be empty"))


def _search_domain(out: Errors, path: str, search: str) -> None:
    """A dot alone, and underscores, since 1.33, where RelaxedDNSSearchValidation is on by default (KEP-4427)."""
    if not release.since(33):
        checked(out, path, search.removesuffix("."), names.dns1123_subdomain)
    elif search != ".":
        checked(out, path, search.removesuffix("."), names.dns1123_subdomain_with_underscores)


def pod(out: Errors, obj: Part) -> None:
    """A pod's own annotations and spec; its ObjectMeta is the registry's business."""
    metadata, spec = obj.get("metadata") or _NOTHING, obj.get("spec") or _NOTHING
    if annotations := metadata.get("annotations"):
        _annotations(out, annotations, spec)
    pod_spec(out, "spec", spec, metadata.get("name") or "")
    if not spec.get("serviceAccountName"):
        for i, volume in each(out, spec.get("volumes") or ()):
            for j, source in each(out, (volume.get("projected") or _NOTHING).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    at = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                    out.append(forbidden(at, "must not be specified when serviceAccountName is not set"))
    containers.image_whitespace(out, "spec.containers", spec.get("containers") or ())
    if inits := spec.get("initContainers"):
        containers.image_whitespace(out, "spec.initContainers", inits)


def _annotations(out: Errors, annotations: Mapping[str, str], spec: Part) -> None:
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not spec.get("nodeName"):
        words = "must set spec.nodeName if mirror pod annotation is set"
        out.append(invalid(f"metadata.annotations[{MIRROR_ANNOTATION}]", mirror, words))
    for key in annotations:
        if key.startswith(_APP_ARMOR_PREFIX):
            name = key.removeprefix(_APP_ARMOR_PREFIX)
            kinds = ("containers", "initContainers", "ephemeralContainers")
            if not any(c.get("name") == name for kind in kinds for c in spec.get(kind) or ()):
                out.append(invalid(f"metadata.annotations[{key}]", name, "container not found"))


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    pod(out, obj)
    spec = obj.get("spec") or _NOTHING
    if spec.get("ephemeralContainers"):
        out.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        out.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return out


def update(new: Part, old: Part) -> list[FieldError]:
    """A pod's update: but for a few fields, its spec never changes."""
    out: Errors = []
    pod(out, new)
    _annotation_updates(out, new.get("metadata") or _NOTHING, old.get("metadata") or _NOTHING)
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    if have == had:
        return out
    for kind in ("containers", "initContainers"):
        if _container_images(out, f"spec.{kind}", have.get(kind) or (), had.get(kind) or ()):
            return out
    if _active_deadline(out, have.get("activeDeadlineSeconds"), had.get("activeDeadlineSeconds")):
        return out
    scheduling.only_added_tolerations(out, "spec.tolerations", have.get("tolerations") or [], had.get("tolerations") or [])
    _removed_gates(out, have.get("schedulingGates") or (), had.get("schedulingGates") or ())
    munged = _without_updatable(out, have, had)
    if not equal(munged, had):
        words = f"pod updates may not change fields other than {_UPDATABLE}\n{spec_diff.describe(had, munged)}"
        out.append(forbidden("spec", words))
    return out


def _annotation_updates(out: Errors, new: Part, old: Part) -> None:
    have, had = new.get("annotations") or _NOTHING, old.get("annotations") or _NOTHING
    if MIRROR_ANNOTATION in had and have.get(MIRROR_ANNOTATION) != had[MIRROR_ANNOTATION]:
        out.append(forbidden(f"metadata.annotations[{MIRROR_ANNOTATION}]", "may not remove or update mirror pod annotation"))
    elif MIRROR_ANNOTATION in have and MIRROR_ANNOTATION not in had:
        out.append(forbidden(f"metadata.annotations[{MIRROR_ANNOTATION}]", "may not add mirror pod annotation"))


def _container_images(out: Errors, path: str, new: Sequence[Part], old: Sequence[Part]) -> bool:
    """Whether the lists differ so much that no further check makes sense."""
    if len(new) != len(old):
        out.append(forbidden(path, "pod updates may not add or remove containers"))
        return True
    for i, container in each(out, new):
        image = container.get("image") or ""
        if not image:
            out.append(required(f"{path}[{i}].image"))
        if image.strip() != image:
            out.append(invalid(f"{path}[{i}].image", image, "must not have leading or trailing whitespace"))
    return False


def _active_deadline(out: Errors, new: int | None, old: int | None) -> bool:
    """Whether the deadline is wrong in a way that ends the checking."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            out.append(invalid(path, new, "must not update from a positive integer to nil value"))
        return False
    if not 0 <= new <= formats.INT32_MAX:
        out.append(invalid(path, new, formats.inclusive_range(0, formats.INT32_MAX)))
        return True
    if old is not None and old < new:
        out.append(invalid(path, new, "must be less than or equal to previous value"))
        return True
    return False


def _removed_gates(out: Errors, new: Sequence[Part], old: Sequence[Part]) -> None:
    had = {gate.get("name") for gate in old}
    for i, gate in each(out, new):
        if gate.get("name") not in had:
            words = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            out.append(forbidden(f"spec.schedulingGates[{i}]", words))


def _without_updatable(out: Errors, have: Part, had: Part) -> dict[str, Any]:
    """The new spec with the old values of the fields that an update may change; of a pod that is gated, since 1.27, where it may be put
    more narrowly (KEP-3838)."""
    munged = dict(have)
    for kind in ("containers", "initContainers"):
        if old := had.get(kind):
            munged[kind] = [{**c, "image": o.get("image")} for c, o in zip(have.get(kind) or (), old)]
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        munged[field] = had.get(field)
    grace, old_grace = have.get("terminationGracePeriodSeconds"), had.get("terminationGracePeriodSeconds")
    if grace == 1 and old_grace is not None and old_grace < 0:
        munged["terminationGracePeriodSeconds"] = old_grace
    if had.get("schedulingGates") and release.since(27):
        selector, old_selector = have.get("nodeSelector") or {}, had.get("nodeSelector") or {}
        if not old_selector.items() <= selector.items():
            words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            out.append(invalid("spec.nodeSelector", dict(selector), words))
        munged["nodeSelector"] = had.get("nodeSelector")
        _gated_affinity(out, munged, have, had)
    return munged


def _gated_affinity(out: Errors, munged: dict[str, Any], have: Part, had: Part) -> None:
    new, old = have.get("affinity") or {}, had.get("affinity") or {}
    path = "spec.affinity.nodeAffinity"
    scheduling.node_affinity_narrowed(
        out, f"{path}.requiredDuringSchedulingIgnoredDuringExecution", new.get("nodeAffinity"), old.get("nodeAffinity")
    )
    kept = {**new, "nodeAffinity": old.get("nodeAffinity")}
    munged["affinity"] = kept if any(kept.values()) else had.get("affinity")


def status_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    have, had = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    node = (new.get("spec") or _NOTHING).get("nodeName") or ""
    if node != ((old.get("spec") or _NOTHING).get("nodeName") or ""):
        out.append(forbidden("status.nodeName", "may not be changed directly"))
    if nominated := have.get("nominatedNodeName"):
        checked(out, "status.nominatedNodeName", nominated, names.dns1123_subdomain)
    for i, condition in each(out, have.get("conditions") or ()):
        kind = condition.get("type") or ""
        if condition.get("status") not in ("True", "False", "Unknown"):
            out.append(not_supported(f"status.conditions[{i}].status", condition.get("status") or "", ["False", "True", "Unknown"]))
        checked(out, f"status.conditions[{i}].type", kind, names.qualified_name)
    _state_transitions(out, new, have, had)
    _ips(out, "status.podIPs", have.get("podIPs") or ())
    _ips(out, "status.hostIPs", have.get("hostIPs") or ())
    return out


def _state_transitions(out: Errors, new: Part, have: Part, had: Part) -> None:
    """A container that ended and is not to be restarted stays ended."""
    if (new.get("spec") or _NOTHING).get("restartPolicy") == "Always":
        return
    for kind in ("containerStatuses", "initContainerStatuses"):
        ended = {s.get("name"): s for s in had.get(kind) or () if (s.get("state") or _NOTHING).get("terminated") is not None}
        for i, status in each(out, have.get(kind) or ()):
            before = ended.get(status.get("name"))
            if before is None or (status.get("state") or _NOTHING).get("terminated") is not None:
                continue
            code = before["state"]["terminated"].get("exitCode") or 0
            if code != 0 and (new.get("spec") or _NOTHING).get("restartPolicy") == "OnFailure":
                continue
            out.append(forbidden(f"status.{kind}[{i}].state", "may not be transitioned to non-terminated state"))


def _ips(out: Errors, path: str, found: Sequence[Part]) -> None:
    addresses = [entry.get("ip") or "" for entry in found]
    for i, address in each(out, addresses):
        for message in formats.ip_address(address):
            out.append(invalid(f"{path}[{i}]", address, message))
    if len(found) > 1:
        families = {":" in address for address in addresses}
        if len(found) > 2 or len(families) != 2:
            out.append(invalid(path, list(found), "may specify no more than one IP for each IP family"))
        seen: set[str] = set()
        for i, address in each(out, addresses):
            if address in seen:
                out.append(duplicate(f"{path}[{i}]", dict(found[i])))
            seen.add(address)


def ephemeral_containers_update(new: Part, old: Part) -> list[FieldError]:
    """``pods/ephemeralcontainers``: containers may be added, never changed or removed."""
    out: Errors = []
    pod(out, new)
    have = (new.get("spec") or _NOTHING).get("ephemeralContainers") or []
    had = (old.get("spec") or _NOTHING).get("ephemeralContainers") or []
    by_name = {container.get("name"): container for container in have}
    for container in had:
        name = container.get("name")
        if name not in by_name:
            out.append(forbidden("spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be removed\n'))
        elif not equal(by_name[name], container):
            words = f'existing ephemeral containers "{name}" may not be changed\n{spec_diff.describe(container, by_name[name])}'
            out.append(forbidden("spec.ephemeralContainers", words))
    if (new.get("metadata") or _NOTHING).get("annotations", {}).get(MIRROR_ANNOTATION) is not None:
        out.append(forbidden("", "static pods do not support ephemeral containers"))
    return out


def template(out: Errors, path: str, found: Part | None) -> None:
    """A ``PodTemplateSpec``: labels and annotations (whose errors Kubernetes puts right under the template) and spec."""
    found = found or _NOTHING
    metadata = found.get("metadata") or _NOTHING
    labels(out, f"{path}.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or ():
        checked(out, f"{path}.annotations", key, lambda k: formats.qualified_name(k.lower()))
    spec = found.get("spec") or _NOTHING
    if annotations := metadata.get("annotations"):
        _annotations(out, annotations, spec)
    pod_spec(out, f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        out.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))


def resize_update(new: Part, old: Part) -> list[FieldError]:
    """``pods/resize``: the class of service stays, and what was once limited or requested is not taken away."""
    out: Errors = []
    pod(out, new)
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    if (now := qos_class(have)) != (was := (old.get("status") or _NOTHING).get("qosClass") or qos_class(had)):
        out.append(invalid("spec", now, f"Pod QOS Class may not change as a result of resizing (was {was})"))
    for kind in ("containers", "initContainers"):
        for i, (container, before) in each(out, zip(have.get(kind) or (), had.get(kind) or ())):
            for side in ("limits", "requests"):
                kept = (container.get("resources") or _NOTHING).get(side) or _NOTHING
                for name in (before.get("resources") or _NOTHING).get(side) or ():
                    if name not in kept:
                        path = f"spec.{kind}[{i}].resources.{side}"
                        out.append(forbidden(path, f"resource {side} cannot be removed"))
    return out
