"""The two plugins. They are asked at every write, so that they do nothing until there is a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin
from apiserver.admission.webhooks.world import WebhookWorld
from apiserver.machinery.objects import Object
from apiserver.outbound.kubeconfig import NO_USERS, Users
from apiserver.resources.resource_info import ResourceInfo

if TYPE_CHECKING:
    from apiserver.admission.webhooks.hooks import Hook, Hooks


class _WebhookPlugin(Plugin):
    operations = frozenset(Operation)
    subresources = None
    #: of the configurations
    resource: ClassVar[str]

    def __init__(self, world: WebhookWorld, users: Users = NO_USERS) -> None:
        """``users``: as whom webhooks are called."""
        self._world = world
        self._users = users
        self._configurations: dict[str, Object] = {}
        self._hooks: Hooks | None = None
        world.observe(self.resource, self._changed)

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        return not rule_matching.is_exempt(info)

    def _changed(self, name: str, configuration: Object | None) -> None:
        if configuration is None:
            self._configurations.pop(name, None)
        else:
            self._configurations[name] = configuration
        self._hooks = None

    def _concerned(self, attributes: AdmissionAttributes) -> tuple[Hook, ...]:
        """The webhooks that a request may concern by operation and resource, in order."""
        hooks = self._hooks
        if hooks is None:
            from apiserver.admission.webhooks.hooks import Hooks

            hooks = self._hooks = Hooks(self._configurations, self._world, self._users)
        return hooks.concerned(attributes)


class MutatingAdmissionWebhook(_WebhookPlugin):
    name = "MutatingAdmissionWebhook"
    resource = "mutatingwebhookconfigurations"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        if self._configurations and (hooks := self._concerned(attributes)):
            from apiserver.admission.webhooks import mutating

            await mutating.dispatch(hooks, attributes, self._world)


class ValidatingAdmissionWebhook(_WebhookPlugin):
    name = "ValidatingAdmissionWebhook"
    resource = "validatingwebhookconfigurations"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if self._configurations and (hooks := self._concerned(attributes)):
            from apiserver.admission.webhooks import validating

            await validating.dispatch(hooks, attributes, self._world)
