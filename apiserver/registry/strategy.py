"""``Strategy``: what is particular to a kind when its objects are created and updated (apiserver ``registry/rest``).

The generic ``registry.Store`` calls, in order: on create ``default`` (right after decoding), admission, ``prepare_for_create``,
``validate``, ``warnings``; on update ``default``, ``prepare_for_update``, ``validate_update``, ``warnings``. Rules common to all
kinds (ObjectMeta, names, generation where ``spec_changed``, uid, timestamps) are the Store's, not a strategy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apiserver.authentication.user import UserInfo
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object


@dataclass(slots=True, kw_only=True)
class StrategyContext:
    """``now`` is RFC 3339 in seconds (``2024-01-02T03:04:05Z``). ``user`` is the requester's name, ``user_info`` all of it.

    ``allocators`` gives the strategies of services their cluster IPs and node ports (a ``service_allocators.ServiceAllocators``;
    None in dry validation). ``schemas`` is the ``SchemaSet`` of the served Kubernetes. ``undo`` is to be called, each, by whoever runs
    the write and sees it come to nothing after ``prepare_*``. ``warn`` takes what validation has to tell without refusing for it.
    Without ``patient`` a validation that takes long raises LongRunError (``apiserver.long_runs``), and is then done again with it.
    """

    namespace: str
    now: str
    user: str = ""
    user_info: UserInfo | None = None
    dry_run: bool = False
    allocators: Any = None
    schemas: Any = None
    undo: list[Callable[[], None]] = field(default_factory=list)
    warn: Callable[[str], None] = lambda text: None
    patient: bool = True


class Strategy:
    """The base has the defaults that most kinds share: nothing to default or check, status reset on create and kept on update.

    Objects are versioned JSON dicts, already pruned to the kind's schema. ``default``, ``prepare_*`` change the new object in place
    and never the old one. ``validate*`` answer all errors in Kubernetes' order and change nothing.
    """

    #: whether a PUT on a name that does not exist creates it
    allow_create_on_update: bool = False
    #: whether an update may come without a resourceVersion
    allow_unconditional_update: bool = True
    #: which check ``metadata.name`` must pass: a key of ``machinery.names``
    name_rule: str = "dns_subdomain"
    #: whether a finalizer without a domain must be one of the standard ones
    standard_finalizers: bool = True
    #: whether ``status`` is a subresource, so that the main endpoint never writes it
    has_status: bool = False
    #: grace period in seconds when a delete does not say; None: the kind is deleted at once
    default_grace_period_seconds: int | None = None
    #: "background", "orphan" or "unsupported" (events): what a delete without a propagation policy does with dependents
    default_garbage_collection: str = "background"

    def default(self, obj: Object) -> None:
        """Fill in the documented defaults of the version."""

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        if self.has_status:
            obj.pop("status", None)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return []

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        if self.has_status:
            _keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return []

    def prepare_for_status_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        """On ``/status``: the spec stays as it was. Of the metadata of built-in kinds ``status_metadata`` says what does."""
        _keep(new, old, "spec")

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return []

    def begin_deletion(self, obj: Object, now: str) -> bool:
        """What a kind does by itself at a delete, in place; True: that is all of the delete."""
        return False

    def why_never_deleted(self, name: str) -> str:
        """Why a request to delete the object of this name is refused; "" where it is not. A deletion of the collection does not ask."""
        return ""

    #: the revision since which the kind exists here; what came before is not its history. 0: always
    since_revision: int = 0
    #: whether ``from_storage`` and ``to_storage`` do more than ``registry.conversion``
    reads_otherwise: bool = False

    #: whether these two may raise ``NeedsConversionError``, since only a webhook can tell
    converts_remotely: bool = False

    def from_storage(self, obj: Object) -> Object:
        """A stored object, which may be changed, in the served version. Raises StatusError where that cannot be."""
        return obj

    def to_storage(self, obj: Object) -> Object:
        """An object in the version in which it is stored; ``obj`` itself is not changed."""
        return obj

    def subresource(self, name: str) -> Strategy | None:
        """Whose ``prepare_for_update`` and ``validate_update`` run for an update through a subresource other than ``status`` and
        ``scale``; None: nobody's, the handler of the subresource has decided all of the change."""
        return None

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        return []

    def canonicalize(self, obj: Object) -> None:
        """Bring a valid object into the form in which it is stored, in place."""

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Whether an update raises ``metadata.generation``; kinds without generation answer False by ``has_generation``."""
        return bool(new.get("spec") != old.get("spec"))

    #: whether ``metadata.generation`` is kept for the kind
    has_generation: bool = False

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        """The fields, besides metadata.name and metadata.namespace, by which a field selector may select."""
        return {}

    #: the names ``selectable_fields`` may answer, so that others are refused before any object is read
    selectable_field_names: frozenset[str] = frozenset()


def _keep(new: Object, old: Object, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
