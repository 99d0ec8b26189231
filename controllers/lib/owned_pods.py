"""The part that controllers of pods share: which owner a pod's event concerns, with expectations kept; and whether the cache can be
believed.

It cannot while creations or deletions have not been seen by the watch: then the owner waits. When they are not seen for long, or a
creation got no answer, the server is asked for a consistent list, each time until cache and server agree again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler, SharedInformer
from controllers.client import errors
from controllers.client.interface import Api, ListOptions, list_all
from controllers.client.resources import PODS, Resource
from controllers.lib import pods as pod_facts
from controllers.lib import selectors
from controllers.lib.expectations import Expectations
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller, orphans_key

#: between looks at the server for an owner whose pods the cache does not show
UNCERTAIN_SECONDS = 30.0

log = logging.getLogger(__name__)


class OwnedPods:
    """``enqueue`` gets the owner of a pod that changed, and owners whose selector an orphan matches."""

    def __init__(
        self,
        pods: SharedInformer,
        owners: SharedInformer,
        resource: Resource,
        expectations: Expectations,
        enqueue: Callable[[Object], None],
        selector_of: Callable[[Object], Object | None],
    ) -> None:
        self._pods, self._owners, self._resource = pods, owners, resource
        self._expectations, self._enqueue, self._selector_of = expectations, enqueue, selector_of
        #: owners whose pods the cache is known not to show
        self._uncertain: set[str] = set()
        pods.add_index(BY_CONTROLLER, index_by_controller)
        pods.add_handler(EventHandler(on_add=self._on_add, on_update=self._on_update, on_delete=self._on_delete))

    def candidates(self, owner: Object) -> list[Object]:
        """Its pods and the orphans of its namespace."""
        indexer = self._pods.indexer
        return indexer.by_index(BY_CONTROLLER, objects.uid(owner)) + indexer.by_index(BY_CONTROLLER, orphans_key(objects.namespace(owner)))

    async def look(self, api: Api, owner: Object) -> tuple[list[Object], bool]:
        """The candidates, and whether pods may be made and deleted on their word."""
        key = key_of(owner)
        cached = self.candidates(owner)
        if not (self._expectations.is_expired(key) or key in self._uncertain):
            return cached, self._expectations.satisfied(key)
        log.warning("%s %s: what was asked for is not seen, listing its pods", self._resource.kind, key)
        options = ListOptions(label_selector=selectors.to_string(self._selector_of(owner)))
        live, _ = await list_all(api, PODS, objects.namespace(owner), options)
        uid = objects.uid(owner)

        def ours(pods: list[Object]) -> set[str]:
            return {objects.uid(p) for p in pods if pod_facts.is_active(p) and (objects.controller_of(p) or {}).get("uid") == uid}

        self._expectations.forget(key)
        if ours(live) == ours(cached):
            self._uncertain.discard(key)
        else:
            self._uncertain.add(key)
        return live, True

    def creation_failed(self, key: str, error: Exception) -> None:
        """A refusal makes no pod; without an answer there may be one all the same."""
        if isinstance(error, errors.StatusError):
            self._expectations.creation_observed(key)
        else:
            self._uncertain.add(key)

    def forget(self, key: str) -> None:
        """The owner is gone."""
        self._expectations.forget(key)
        self._uncertain.discard(key)

    def seconds_until_next_look(self, key: str) -> float | None:
        """When to look at the owner again though no event comes; None where nothing is awaited."""
        if key in self._uncertain:
            return UNCERTAIN_SECONDS
        return None if self._expectations.satisfied(key) else self._expectations.seconds_until_expired(key) + 1

    def owner_of(self, pod: Object) -> Object | None:
        reference = objects.controller_of(pod)
        if reference is None or reference.get("kind") != self._resource.kind:
            return None
        found = self._owners.indexer.get(f"{objects.namespace(pod)}/{reference.get('name')}")
        return found if found is not None and objects.uid(found) == reference.get("uid") else None

    def _on_add(self, pod: Object) -> None:
        if objects.is_being_deleted(pod):
            self._on_delete(pod)
            return
        owner = self.owner_of(pod)
        if owner is not None:
            self._expectations.creation_observed(key_of(owner))
            self._enqueue(owner)
        elif objects.controller_of(pod) is None:
            self._enqueue_possible_owners(pod)

    def _on_update(self, old: Object, new: Object) -> None:
        if objects.resource_version(old) == objects.resource_version(new):
            return
        if objects.is_being_deleted(new):
            self._on_delete(new)
            return
        before, after = self.owner_of(old), self.owner_of(new)
        if before is not None and (after is None or objects.uid(after) != objects.uid(before)):
            self._enqueue(before)
        if after is not None:
            self._enqueue(after)
        elif objects.controller_of(new) is None and (objects.labels(old) != objects.labels(new) or before is not None):
            self._enqueue_possible_owners(new)

    def _on_delete(self, pod: Object) -> None:
        owner = self.owner_of(pod)
        if owner is not None:
            self._expectations.deletion_observed(key_of(owner), key_of(pod))
            self._enqueue(owner)

    def _enqueue_possible_owners(self, pod: Object) -> None:
        for candidate in self._owners.indexer.in_namespace(objects.namespace(pod)):
            selector = self._selector_of(candidate)
            if not selectors.is_empty(selector) and selectors.matches(selector, objects.labels(pod)):
                self._enqueue(candidate)
