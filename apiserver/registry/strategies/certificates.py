"""The group certificates.k8s.io. Who asked is taken from the request, whatever the object says."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError, invalid
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import certificates, pod_certificates

#: a day
_POD_CERTIFICATE_SECONDS = 24 * 3600


class CertificateSigningRequestStrategy(Strategy):
    name_rule = "path_segment"
    selectable_field_names = frozenset(("spec.signerName",))

    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        user = context.user_info
        spec["username"] = context.user
        if user is not None:
            spec["groups"] = list(user.groups)
            if user.uid:
                spec["uid"] = user.uid
            if user.extra:
                spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return certificates.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "spec", "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return certificates.update(new, old)

    def prepare_for_status_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        """Not the approval: conditions of those types stay as they were."""
        super().prepare_for_status_update(context, new, old)
        _stamp(context, new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return certificates.update(new, old, signing=True)

    def subresource(self, name: str) -> Strategy | None:
        return _ApprovalStrategy() if name == "approval" else None

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.signerName": text(objects.get(obj, "spec", "signerName"))}


class _ApprovalStrategy(Strategy):
    """``/approval``: conditions only."""

    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        conditions = objects.get(new, "status", "conditions")
        keep(new, old, "spec", "metadata")
        new["metadata"] = dict(new["metadata"])
        new["status"] = dict(old.get("status") or {})
        if conditions:
            new["status"]["conditions"] = conditions
        else:
            new["status"].pop("conditions", None)
        _stamp(context, new, old)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return certificates.update(new, old, approving=True)


def _stamp(context: StrategyContext, new: Object, old: Object) -> None:
    """New conditions get their times."""
    known = {(c.get("type"), c.get("status")): c for c in objects.get(old, "status", "conditions", default=())}
    for condition in objects.get(new, "status", "conditions", default=()):
        before = known.get((condition.get("type"), condition.get("status")))
        if condition.get("lastTransitionTime") is None:
            kept = (before or {}).get("lastTransitionTime")
            condition["lastTransitionTime"] = kept or context.now
        if condition.get("lastUpdateTime") is None:
            condition["lastUpdateTime"] = context.now


class ClusterTrustBundleStrategy(Strategy):
    name_rule = "path_segment"
    selectable_field_names = frozenset(("spec.signerName",))

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return certificates.trust_bundle(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        errors = certificates.trust_bundle(new, old)
        signer, before = objects.get(new, "spec", "signerName"), objects.get(old, "spec", "signerName")
        return errors + ([invalid("spec.signerName", signer, "field is immutable")] if signer != before else [])

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.signerName": text(objects.get(obj, "spec", "signerName"))}


class PodCertificateRequestStrategy(Strategy):
    selectable_field_names = frozenset(("spec.signerName", "spec.podName", "spec.nodeName"))

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("maxExpirationSeconds") is None:
            spec["maxExpirationSeconds"] = _POD_CERTIFICATE_SECONDS
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return pod_certificates.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pod_certificates.update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return pod_certificates.status_update(new, old, context.now)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {f"spec.{field}": text(objects.get(obj, "spec", field)) for field in ("signerName", "podName", "nodeName")}


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): CertificateSigningRequestStrategy,
    ("certificates.k8s.io", "ClusterTrustBundle"): ClusterTrustBundleStrategy,
    ("certificates.k8s.io", "PodCertificateRequest"): PodCertificateRequestStrategy,
}
