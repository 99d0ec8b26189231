"""``POST serviceaccounts/NAME/token``: a TokenRequest in, a TokenRequest with a token out (authentication.k8s.io/v1)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from apiserver.admission.interfaces import ObjectGetter
from apiserver.authentication.service_account import BoundReference, TokenIssuer
from apiserver.machinery import field_errors, objects, status

EXPIRATION_SECONDS_DEFAULT = 3600
EXPIRATION_SECONDS_MIN = 600
EXPIRATION_SECONDS_MAX = 2**32
#: what a kubelet asks for the automatically mounted token; it tells such tokens from those whose owner chose an hour
INJECTED_EXPIRATION_SECONDS = 3607
#: such a token works for a year, so that programs that never re-read it go on; past its nominal end it is only reported
EXTENDED_EXPIRATION_SECONDS = 365 * 24 * 3600


def create_token(
    body: objects.Object,
    account: objects.Object,
    issuer: TokenIssuer,
    getter: ObjectGetter,
    api_audiences: Sequence[str],
    *,
    expiration_seconds_max: int = 0,
    extends: bool = True,
    warn: Callable[[str], object] = lambda _: None,
) -> objects.Object:
    """The answer to a token request for ``account``. ``expiration_seconds_max``: longer ones are cut, and ``warn`` is told; 0: none is.
    ``extends``: automatically mounted tokens work for a year.

    Raises StatusError 400, 404, 409 and 422 as the request or its bound object demands.
    """
    name, namespace = objects.name(account), objects.namespace(account)
    _check_names(body, name, namespace)
    spec = dict(body.get("spec") or {})
    seconds = spec.get("expirationSeconds")
    seconds = EXPIRATION_SECONDS_DEFAULT if seconds is None else int(seconds)
    if errors := _expiration_errors(seconds):
        raise status.invalid("authentication.k8s.io", "TokenRequest", "", errors)
    if expiration_seconds_max and seconds > expiration_seconds_max:
        warn(f"requested expiration of {seconds} seconds shortened to {expiration_seconds_max} seconds")
        seconds = expiration_seconds_max
    bound = _bound_reference(spec["boundObjectRef"], namespace, name, getter) if spec.get("boundObjectRef") else None
    audiences = list(spec.get("audiences") or api_audiences)
    lifetime, warn_after = seconds, 0
    is_injected = bound is not None and bound.kind == "pod" and seconds == INJECTED_EXPIRATION_SECONDS
    if extends and is_injected and set(audiences) <= set(api_audiences):
        longest = EXTENDED_EXPIRATION_SECONDS
        lifetime, warn_after = min(longest, expiration_seconds_max) if expiration_seconds_max else longest, seconds
    # taken before the token is made, so that what is told is never later than what holds
    expires_at = datetime.datetime.fromtimestamp(int(issuer.now()) + seconds, datetime.UTC)
    token = issuer.issue(account, audiences, lifetime, bound, warn_after)
    spec |= {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": spec.get("boundObjectRef")}
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": objects.unstored_metadata(name=name, namespace=namespace),
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }


def _check_names(body: objects.Object, name: str, namespace: str) -> None:
    if objects.name(body) not in ("", name):
        raise status.bad_request(f"the name of the object ({objects.name(body)}) does not match the name on the URL ({name})")
    if objects.namespace(body) not in ("", namespace):
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _expiration_errors(seconds: int) -> list[field_errors.FieldError]:
    if seconds < EXPIRATION_SECONDS_MIN:
        return [field_errors.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > EXPIRATION_SECONDS_MAX:
        return [field_errors.invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _bound_reference(reference: objects.Object, namespace: str, account: str, getter: ObjectGetter) -> BoundReference:
    kind, api_version, name = (str(reference.get(key) or "") for key in ("kind", "apiVersion", "name"))
    resource = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}.get(kind)
    if api_version != "v1" or resource is None:
        group, version = objects.group_version(api_version)
        raise status.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    obj = getter.get("", resource, "" if kind == "Node" else namespace, name)
    if obj is None:
        raise status.not_found("", resource, name)
    if kind == "Pod" and objects.get(obj, "spec", "serviceAccountName") != account:
        raise status.bad_request(f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.')
    wanted = str(reference.get("uid") or "")
    if wanted and wanted != objects.uid(obj):
        why = f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
        raise status.conflict("", kind, name, why + "The object might have been deleted and then recreated")
    node_name = str(objects.get(obj, "spec", "nodeName", default="")) if kind == "Pod" else ""
    node = getter.get("", "nodes", "", node_name) if node_name else None
    return BoundReference(
        kind=kind.lower(), name=name, uid=objects.uid(obj), node_name=node_name, node_uid=objects.uid(node) if node else ""
    )
