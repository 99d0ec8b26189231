"""``Hook``: one entry of a stored configuration, ready to be asked; ``Hooks``: all of them, in the order in which they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.rule_matching import Matcher
from apiserver.admission.webhooks.world import ConditionError, Conditions, WebhookWorld
from apiserver.machinery import labels, status
from apiserver.machinery.objects import Object
from apiserver.outbound.kubeconfig import Users
from apiserver.resources.resource_info import ResourceInfo

TIMEOUT_SECONDS_DEFAULT = 10
REVIEW_VERSIONS = ("v1", "v1beta1")
_QUIET_IN_DRY_RUN = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """``id`` tells webhooks of one name apart, ``position`` is the one among all of the kind. ``review_version`` is "" where the webhook
    takes none that this server speaks. ``conditions`` None: there are none."""

    id: str
    position: int
    configuration: str
    name: str
    client_config: dict[str, Any]
    users: Users
    matcher: Matcher
    ignores_failures: bool
    timeout_seconds: int
    side_effects: str
    reinvocable: bool
    review_version: str
    conditions: Conditions | None

    @property
    def quiet_in_dry_run(self) -> bool:
        return self.side_effects in _QUIET_IN_DRY_RUN

    async def match(self, attributes: AdmissionAttributes, world: WebhookWorld) -> ResourceInfo | None:
        """In which version the webhook wants to see the object; None: it is not asked. Raises StatusError."""
        wanted = self.matcher.match(attributes, world.getter, world.equivalents)
        if wanted is None or self.conditions is None:
            return wanted
        try:
            return wanted if await self.conditions(attributes, await in_version(attributes, wanted, world)) else None
        except ConditionError as error:
            if self.ignores_failures:
                return None
            info = attributes.info
            raise status.forbidden(info.group, info.resource, attributes.name, str(error)) from error


async def in_version(attributes: AdmissionAttributes, to: ResourceInfo, world: WebhookWorld) -> AdmissionAttributes:
    """The request with its objects as a webhook sees them that asked for them in the version of ``to``."""
    info = attributes.info
    if to is info:
        return attributes
    if rule_matching.kind_of(info, attributes.subresource)[2] != info.kind:
        return replace(attributes, info=to)  # a Scale, a Binding: one and the same in all versions of the resource
    new, old = attributes.object, attributes.old_object
    return replace(
        attributes,
        info=to,
        object=None if new is None else await world.converted(new, info, to),
        old_object=None if old is None else await world.converted(old, info, to),
    )


class Hooks:
    """Of all configurations of one kind, by the configurations' names and then as they stand in them."""

    def __init__(self, configurations: Mapping[str, Object], world: WebhookWorld, users: Users) -> None:
        self._world = world
        found: list[Hook] = []
        for name in sorted(configurations):
            found += _of_configuration(name, configurations[name], world, users, len(found))
        self._all = tuple(found)
        self._generation = -1
        self._concerned: dict[tuple[Operation, str, str, str], tuple[Hook, ...]] = {}

    def concerned(self, attributes: AdmissionAttributes) -> tuple[Hook, ...]:
        """Those that operation and resource let be concerned: found once for each combination."""
        generation = self._world.generation
        if generation != self._generation:
            self._generation = generation
            self._concerned.clear()
        info = attributes.info
        key = (attributes.operation, info.api_version, info.resource, attributes.subresource)
        found = self._concerned.get(key)
        if found is None:
            equivalents = self._world.equivalents(info)
            found = self._concerned[key] = tuple(
                hook for hook in self._all if hook.matcher.may_concern(attributes.operation, info, attributes.subresource, equivalents)
            )
        return found


def _of_configuration(configuration: str, stored: Object, world: WebhookWorld, users: Users, first: int) -> list[Hook]:
    found: list[Hook] = []
    seen: dict[str, int] = {}
    for said in stored.get("webhooks") or ():
        name = said.get("name") or ""
        count = seen[name] = seen.get(name, -1) + 1
        found.append(_hook(f"{configuration}/{name}/{count}", first + len(found), configuration, name, said, world, users))
    return found


def _hook(id: str, position: int, configuration: str, name: str, said: dict[str, Any], world: WebhookWorld, users: Users) -> Hook:
    conditions = said.get("matchConditions")
    return Hook(
        id=id,
        position=position,
        configuration=configuration,
        name=name,
        client_config=said.get("clientConfig") or {},
        users=users,
        matcher=_matcher(said),
        ignores_failures=said.get("failurePolicy") == "Ignore",
        timeout_seconds=said.get("timeoutSeconds") or TIMEOUT_SECONDS_DEFAULT,
        side_effects=said.get("sideEffects") or "",
        reinvocable=said.get("reinvocationPolicy") == "IfNeeded",
        review_version=_review_version(said.get("admissionReviewVersions") or ()),
        conditions=world.compile_conditions(conditions, name) if conditions else None,
    )


def _matcher(said: dict[str, Any]) -> Matcher:
    try:
        return rule_matching.matcher_of_webhook(said)
    except labels.SelectorError:
        # no current server stores such a selector; an old store may hold one, and a webhook that cannot say what it wants is not asked
        return Matcher((), rule_matching.Selectors.of({}))


def _review_version(accepted: Sequence[str]) -> str:
    return next((version for version in accepted if version in REVIEW_VERSIONS), "")
