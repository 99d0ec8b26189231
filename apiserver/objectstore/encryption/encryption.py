"""``Encryption``: which transformer a resource's values pass, from the file at the start and, where asked for, as it changes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from apiserver.objectstore.encryption import configuration
from apiserver.objectstore.encryption.configuration import Configuration, ConfigurationError, GroupResource
from apiserver.objectstore.encryption.kms import GrpcPlugin, KmsProvider
from apiserver.objectstore.encryption.transformer import IdentityProvider, KeyedProvider, Provider, Transformer
from apiserver.objectstore.object_store import ObjectStore
from storage.errors import StoreError

logger = logging.getLogger(__name__)

#: between two looks at the file (kube-apiserver's minute)
RELOAD_SECONDS = 60.0
#: for whether a value is encrypted, where nothing is configured for its resource
_CHECK = Transformer((IdentityProvider(),))

#: (group, resource) of a storage prefix
ResourceOf = Callable[[str], tuple[str, str]]


class Encryption:
    """``connect`` before the first value is read, then ``run``. ``reload``: look at the file again now and then."""

    def __init__(self, path: Path, resource_of: ResourceOf, *, reload: bool, reload_seconds: float = RELOAD_SECONDS) -> None:
        """Raises OSError, ConfigurationError."""
        self._path = path
        self._resource_of = resource_of
        self._reload = reload
        self._reload_seconds = reload_seconds
        content = path.read_bytes()
        self._digest = hashlib.sha256(content).digest()
        self._config = configuration.parse(content, str(path))
        self._plugins: dict[configuration.Kms, KmsProvider] = {}
        self._made: dict[GroupResource, Transformer] = {}
        self._use(self._config)

    def _use(self, config: Configuration) -> None:
        kept: dict[configuration.Kms, KmsProvider] = {}
        made: dict[GroupResource, Transformer] = {}
        shared: dict[configuration.Provider, Provider] = {}
        for resource, found in config.providers.items():
            providers = []
            for each in found:
                if isinstance(each, configuration.Kms):
                    kept[each] = kept.get(each) or self._plugins.get(each) or KmsProvider(each, GrpcPlugin(each))
                    shared[each] = kept[each]
                elif each not in shared:
                    shared[each] = KeyedProvider(each) if isinstance(each, configuration.Keyed) else IdentityProvider()
                providers.append(shared[each])
            made[resource] = Transformer(providers)
        self._config, self._plugins, self._made = config, kept, made

    @property
    def plugins(self) -> list[KmsProvider]:
        return list(self._plugins.values())

    def problem(self) -> str:
        """For health checks: of the plugins."""
        return ", ".join(f"{plugin.name}: {plugin.problem}" for plugin in self.plugins if plugin.problem)

    def transformer_of(self, prefix: str) -> Transformer:
        group, resource = self._resource_of(prefix)
        for key in (GroupResource(group=group, resource=resource), GroupResource(group=group, resource="*"), configuration.EVERYTHING):
            if key in self._made:
                return self._made[key]
        return _CHECK

    async def connect(self) -> None:
        """Have the plugins' first answers, so that what is read next can be."""
        await asyncio.gather(*(asyncio.to_thread(plugin.look) for plugin in self.plugins))

    async def run(self, objects: ObjectStore) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        due = {plugin.name: loop.time() + plugin.next_look_seconds for plugin in self.plugins}
        reload_at = loop.time() + self._reload_seconds
        while True:
            times = [*due.values(), *([reload_at] if self._reload else [])]
            if not times:
                return
            await asyncio.sleep(max(0.0, min(times) - loop.time()))
            now = loop.time()
            for plugin in self.plugins:
                if due.get(plugin.name, now) <= now:
                    await asyncio.to_thread(plugin.look)
                    due[plugin.name] = loop.time() + plugin.next_look_seconds
                    if plugin.maybe_forget_refusals():
                        await self._read_again(objects)
            if self._reload and reload_at <= now:
                reload_at = now + self._reload_seconds
                if await self._maybe_reload(objects):
                    names = {plugin.name for plugin in self.plugins}
                    due = {name: due.get(name, loop.time() + UNKNOWN_SECONDS) for name in names}

    async def _read_again(self, objects: ObjectStore) -> None:
        try:
            await objects.read_unreadable_again()
        except StoreError as error:
            logger.warning("values that could not be read are left for a later look: %s", error)

    async def _maybe_reload(self, objects: ObjectStore) -> bool:
        """A file that cannot be used leaves the configuration as it is."""
        try:
            content = await asyncio.to_thread(self._path.read_bytes)
            digest = hashlib.sha256(content).digest()
            if digest == self._digest:
                return False
            config = configuration.parse(content, str(self._path))
        except (OSError, ConfigurationError) as error:
            logger.error("the encryption configuration stays as it was: %s", error)
            return False
        before = self._config, self._plugins, self._made
        self._use(config)
        await self.connect()
        problem = self.problem()
        if problem:
            self._config, self._plugins, self._made = before
            logger.error("the encryption configuration stays as it was: its plugins are not well: %s", problem)
            return False
        self._digest = digest
        objects.set_transformers()
        await self._read_again(objects)
        logger.info("the encryption configuration was loaded anew: %s", self._path)
        return True


#: to the first look at a plugin that has just answered
UNKNOWN_SECONDS = 60.0
