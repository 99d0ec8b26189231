"""ServiceAccount: every pod runs as an account that exists, with its token mounted and its pull secrets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, containers_of, forbidden, is_mirror_pod, new_object, spec_of
from apiserver.authentication.token_request import INJECTED_EXPIRATION_SECONDS
from apiserver.machinery import names, objects

DEFAULT_ACCOUNT = "default"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"
_ENFORCE_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"

#: the controller makes the default account of a new namespace in a moment: look again this often before refusing
DEFAULT_ACCOUNT_ATTEMPTS = 10
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 0.2


class ServiceAccount(Plugin):
    name = "ServiceAccount"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((POD,))

    def __init__(
        self,
        getter: ObjectGetter,
        source: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._getter = getter
        self._random = source
        self._sleep = sleep

    async def admit(self, attributes: AdmissionAttributes) -> None:
        pod = new_object(attributes)
        if is_mirror_pod(pod):
            # as early as a pod is changed elsewhere: before what else is wrong with it is looked for
            _check_mirror_pod(attributes, pod.get("spec") or {})
            return
        spec = spec_of(pod)
        # "serviceAccount" is the field's first name; both are kept equal
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self._account(attributes, name)
        if _automounts(account, spec):
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": reference.get("name")} for reference in account["imagePullSecrets"]]

    async def validate(self, attributes: AdmissionAttributes) -> None:
        pod = new_object(attributes)
        spec = pod.get("spec") or {}
        if is_mirror_pod(pod):
            _check_mirror_pod(attributes, spec)
            return
        account = await self._account(attributes, str(spec.get("serviceAccountName") or ""))
        if objects.annotations(account).get(_ENFORCE_MOUNTABLE, "").lower() in ("true", "1", "t"):
            _check_secrets(attributes, account, pod)

    async def _account(self, attributes: AdmissionAttributes, name: str) -> objects.Object:
        attempts = DEFAULT_ACCOUNT_ATTEMPTS if name == DEFAULT_ACCOUNT else 1
        for attempt in range(attempts):
            if attempt:
                await self._sleep(self._random.uniform(RETRY_SECONDS_MIN, RETRY_SECONDS_MAX))
            account = self._getter.get("", "serviceaccounts", attributes.namespace, name)
            if account is not None:
                return account
        what = f"error looking up service account {attributes.namespace}/{name}"
        raise forbidden(attributes, f'{what}: serviceaccount "{name}" not found')

    def _mount_token(self, spec: dict[str, Any]) -> None:
        volumes = spec.get("volumes") or []
        existing = next((v["name"] for v in volumes if str(v.get("name", "")).startswith(VOLUME_PREFIX)), None)
        volume_name = existing or names.generate_name(VOLUME_PREFIX, self._random)
        needed = False
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            mounts = container.get("volumeMounts") or []
            # a mount of the owner's at this path wins
            if any(mount.get("mountPath") == TOKEN_PATH for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": volume_name, "readOnly": True, "mountPath": TOKEN_PATH}]
            needed = True
        if needed and existing is None:
            spec["volumes"] = [*volumes, token_volume(volume_name)]


def token_volume(name: str) -> dict[str, Any]:
    """The projected volume with the account's token, the cluster's CA and the namespace."""
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": INJECTED_EXPIRATION_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


def _automounts(account: objects.Object, spec: dict[str, Any]) -> bool:
    """The pod's word, else the account's, else yes."""
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _check_mirror_pod(attributes: AdmissionAttributes, spec: dict[str, Any]) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if any(True for _ in _secret_names(spec)):
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in objects.get(volume, "projected", "sources", default=()):
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _secret_names(spec: dict[str, Any]) -> list[str]:
    found = [reference.get("name") for reference in spec.get("imagePullSecrets") or ()]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        found += [objects.get(source, "secretRef", "name") for source in container.get("envFrom") or ()]
        found += [objects.get(variable, "valueFrom", "secretKeyRef", "name") for variable in container.get("env") or ()]
    for volume in spec.get("volumes") or ():
        found.append(objects.get(volume, "secret", "secretName"))
        found += [objects.get(source, "secret", "name") for source in objects.get(volume, "projected", "sources", default=())]
    return [str(name) for name in found if name]


def _check_secrets(attributes: AdmissionAttributes, account: objects.Object, pod: objects.Object) -> None:
    """Where the account asks for it, its pods may use only the secrets that it lists."""
    spec = pod.get("spec") or {}
    who = f"service account {objects.name(account)} does not reference that"
    mountable = {reference.get("name") for reference in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        name = objects.get(volume, "secret", "secretName")
        if name and name not in mountable:
            raise forbidden(attributes, f'volume with secret.secretName="{name}" is not allowed because {who} secret')
    init = len(spec.get("initContainers") or ())
    for position, container in enumerate(containers_of(pod)):
        kind = "init container" if position < init else "container"
        for variable in container.get("env") or ():
            name = objects.get(variable, "valueFrom", "secretKeyRef", "name")
            if name and name not in mountable:
                where = f"{kind} {container.get('name')} with envVar {variable.get('name')}"
                raise forbidden(attributes, f'{where} referencing secret.secretName="{name}" is not allowed because {who} secret')
    pullable = {reference.get("name") for reference in account.get("imagePullSecrets") or ()}
    for position, reference in enumerate(spec.get("imagePullSecrets") or ()):
        name = reference.get("name")
        if name not in pullable:
            raise forbidden(attributes, f'imagePullSecrets[{position}].name="{name}" is not allowed because {who} imagePullSecret')
