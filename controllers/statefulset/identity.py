"""What belongs to an ordinal: name, labels, host name, claims, volumes. Pure."""

from __future__ import annotations

import re

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from controllers.lib import controller_history
from controllers.lib.pod_control import pod_from_template

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"

_ORDINAL = re.compile(r"^(.*)-([0-9]+)$")


def pod_name(stateful_set: Object, ordinal: int) -> str:
    return f"{objects.name(stateful_set)}-{ordinal}"


def ordinal_of(stateful_set: Object, pod: Object) -> int | None:
    """The ordinal of one of the set's pods; None of a pod that is not named after the set."""
    found = _ORDINAL.match(objects.name(pod))
    if found is None or found[1] != objects.name(stateful_set):
        return None
    return int(found[2])


def revision_of(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


def claim_templates(stateful_set: Object) -> list[Object]:
    found: list[Object] = objects.get(stateful_set, "spec", "volumeClaimTemplates", default=[])
    return found


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{objects.name(template)}-{pod_name(stateful_set, ordinal)}"


def claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """The claims of an ordinal, as they are to be made (without owners)."""
    out: list[Object] = []
    selected = objects.get(stateful_set, "spec", "selector", "matchLabels", default={})
    for template in claim_templates(stateful_set):
        metadata: Object = {
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": objects.namespace(stateful_set),
            "labels": {**objects.labels(template), **selected},
        }
        if objects.annotations(template):
            metadata["annotations"] = dict(objects.annotations(template))
        out.append(
            {
                "apiVersion": "v1",
                "kind": PERSISTENT_VOLUME_CLAIMS.kind,
                "metadata": metadata,
                "spec": objects.deep_copy(template.get("spec") or {}),
            }
        )
    return out


def pod(stateful_set: Object, ordinal: int, revision: Object) -> Object:
    """The pod of an ordinal, of the template that the revision holds."""
    made = pod_from_template(controller_history.template_of(revision), stateful_set, STATEFUL_SETS)
    made["metadata"]["name"] = pod_name(stateful_set, ordinal)
    made["spec"]["hostname"] = pod_name(stateful_set, ordinal)
    if objects.get(stateful_set, "spec", "serviceName"):
        made["spec"]["subdomain"] = stateful_set["spec"]["serviceName"]
    mended = with_identity(stateful_set, made)
    mended["metadata"]["labels"][REVISION_LABEL] = objects.name(revision)
    return mended


def with_identity(stateful_set: Object, existing: Object) -> Object:
    """The pod with the labels and the volumes that belong to its name."""
    ordinal = ordinal_of(stateful_set, existing)
    assert ordinal is not None, objects.name(existing)
    labels = {**objects.labels(existing), POD_NAME_LABEL: objects.name(existing), POD_INDEX_LABEL: str(ordinal)}
    spec = existing.get("spec") or {}
    own = {objects.name(template): claim_name(stateful_set, template, ordinal) for template in claim_templates(stateful_set)}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in own.items()]
    volumes += [v for v in spec.get("volumes") or [] if v.get("name") not in own]
    out = {**existing, "metadata": {**existing["metadata"], "labels": labels}, "spec": dict(spec)}
    if volumes:
        out["spec"]["volumes"] = volumes
    return out


def has_identity(stateful_set: Object, existing: Object) -> bool:
    """Whether name label and claims are as they should be; a pod index label is not asked of pods from before there was one."""
    if objects.labels(existing).get(POD_NAME_LABEL) != objects.name(existing):
        return False
    return has_storage(stateful_set, existing)


def has_storage(stateful_set: Object, existing: Object) -> bool:
    ordinal = ordinal_of(stateful_set, existing)
    if ordinal is None:
        return False
    mounted = {
        v.get("name"): objects.get(v, "persistentVolumeClaim", "claimName") for v in objects.get(existing, "spec", "volumes", default=[])
    }
    return all(
        mounted.get(objects.name(template)) == claim_name(stateful_set, template, ordinal) for template in claim_templates(stateful_set)
    )
