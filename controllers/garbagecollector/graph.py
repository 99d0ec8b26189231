"""``Graph``: who owns whom, and whom a change concerns. Pure.

A *virtual* node stands for an owner that somebody names and nobody has seen; asking the server decides whether it exists.

Example: pod p names ReplicaSet r, which no monitor has shown → r becomes a virtual node and is to be looked at; the server does not know
it → ``forget`` → p is to be looked at: its only owner is absent, it goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import Resource

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Identity:
    """Where an object is found. ``resource`` None: a virtual node of a kind not resolved yet."""

    uid: str
    api_version: str
    kind: str
    namespace: str
    name: str
    resource: Resource | None = None


@dataclass(slots=True)
class Node:
    identity: Identity
    owners: list[Object] = field(default_factory=list)
    dependents: set[str] = field(default_factory=set)
    being_deleted: bool = False
    #: is held by the finalizer foregroundDeletion until its blocking dependents are gone
    deleting_dependents: bool = False
    orphaning: bool = False
    virtual: bool = False

    def blocks(self, owner_uid: str) -> bool:
        """Whether its owner may not go before it."""
        return any(o.get("uid") == owner_uid and o.get("blockOwnerDeletion") for o in self.owners)


@dataclass(slots=True)
class Concerns:
    """Uids to look at. ``misplaced`` are dependents that name an owner which lives in another namespace."""

    delete: list[str] = field(default_factory=list)
    orphan: list[str] = field(default_factory=list)
    misplaced: list[tuple[str, Object]] = field(default_factory=list)


class Graph:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def observe(self, resource: Resource, obj: Object) -> Concerns:
        """An object was added or changed."""
        concerns = Concerns()
        uid = objects.uid(obj)
        identity = Identity(uid, resource.api_version, resource.kind, objects.namespace(obj), objects.name(obj), resource)
        node = self.nodes.get(uid)
        new_owners = objects.owner_references(obj)
        if node is None:
            node = self.nodes[uid] = Node(identity)
            self._link(node, new_owners, concerns)
        else:
            if node.virtual:
                node.virtual = False
                self._check_places(node, identity, concerns)
            node.identity = identity
            self._relink(node, new_owners, concerns)
        self._transitions(node, obj, concerns)
        return concerns

    def forget(self, uid: str) -> Concerns:
        """The object is gone, or never was there."""
        concerns = Concerns()
        node = self.nodes.pop(uid, None)
        if node is None:
            return concerns
        for owner_uid in _uids(node.owners):
            owner = self.nodes.get(owner_uid)
            if owner is None:
                continue
            owner.dependents.discard(uid)
            if owner.deleting_dependents:
                concerns.delete.append(owner_uid)
            elif owner.virtual and not owner.dependents:
                del self.nodes[owner_uid]
        concerns.delete += sorted(d for d in node.dependents if d in self.nodes)
        return concerns

    def dependents(self, uid: str) -> list[Node]:
        node = self.nodes.get(uid)
        return [] if node is None else [self.nodes[d] for d in sorted(node.dependents) if d in self.nodes]

    def blocking_dependents(self, uid: str) -> list[Node]:
        return [d for d in self.dependents(uid) if d.blocks(uid)]

    # inside

    def _link(self, node: Node, owners: list[Object], concerns: Concerns) -> None:
        uid = node.identity.uid
        node.owners = owners
        for reference in owners:
            owner_uid = str(reference.get("uid") or "")
            owner = self.nodes.get(owner_uid)
            if owner is None:
                owner = Node(identity_of(reference, node.identity.namespace), virtual=True)
                self.nodes[owner_uid] = owner
                concerns.delete.append(owner_uid)
            elif not owner.virtual and is_misplaced(node.identity, owner.identity):
                concerns.misplaced.append((uid, reference))
                concerns.delete.append(uid)
            elif owner.deleting_dependents or not _same_object(reference, owner.identity):
                concerns.delete.append(uid)
            owner.dependents.add(uid)

    def _relink(self, node: Node, owners: list[Object], concerns: Concerns) -> None:
        if node.owners == owners:
            return
        uid = node.identity.uid
        before, after = _uids(node.owners), _uids(owners)
        unblocked = _uids(o for o in node.owners if o.get("blockOwnerDeletion")) - _uids(o for o in owners if o.get("blockOwnerDeletion"))
        for owner_uid in before:
            owner = self.nodes.get(owner_uid)
            if owner is None:
                continue
            if owner_uid not in after:
                owner.dependents.discard(uid)
                if owner.virtual and not owner.dependents:
                    del self.nodes[owner_uid]
            if owner_uid in unblocked and owner.deleting_dependents:
                concerns.delete.append(owner_uid)
        added = [o for o in owners if o.get("uid") not in before]
        self._link(node, added, concerns)
        node.owners = owners

    def _check_places(self, owner: Node, identity: Identity, concerns: Concerns) -> None:
        """A virtual owner has been seen: dependents that looked for it elsewhere, or under another name, are to be looked at."""
        for dependent in self.dependents(identity.uid):
            for reference in dependent.owners:
                if reference.get("uid") != identity.uid:
                    continue
                if is_misplaced(dependent.identity, identity):
                    concerns.misplaced.append((dependent.identity.uid, reference))
                    concerns.delete.append(dependent.identity.uid)
                elif not _same_object(reference, identity):
                    concerns.delete.append(dependent.identity.uid)

    def _transitions(self, node: Node, obj: Object, concerns: Concerns) -> None:
        uid = node.identity.uid
        node.being_deleted = objects.is_being_deleted(obj)
        finalizers = objects.finalizers(obj)
        orphaning = node.being_deleted and ORPHAN in finalizers
        deleting = node.being_deleted and FOREGROUND in finalizers
        if orphaning and not node.orphaning:
            concerns.orphan.append(uid)
        if deleting and not node.deleting_dependents:
            concerns.delete += [*sorted(node.dependents), uid]
        node.orphaning, node.deleting_dependents = orphaning, deleting


def identity_of(reference: Object, namespace: str) -> Identity:
    """What an owner reference of an object in that namespace points at."""
    return Identity(
        str(reference.get("uid") or ""),
        str(reference.get("apiVersion") or ""),
        str(reference.get("kind") or ""),
        namespace,
        str(reference.get("name") or ""),
    )


def is_misplaced(dependent: Identity, owner: Identity) -> bool:
    """A namespaced owner serves its own namespace only."""
    return bool(owner.namespace) and owner.namespace != dependent.namespace


def _same_object(reference: Object, owner: Identity) -> bool:
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    return group == owner.api_version.rpartition("/")[0] and reference.get("kind") == owner.kind and reference.get("name") == owner.name


def _uids(owners: Iterable[Object]) -> set[str]:
    return {str(o.get("uid") or "") for o in owners}
