"""Collects what its owners left behind (``pkg/controller/garbagecollector``).

    monitors: metadata of every deletable resource  →  graph: who owns whom, by uid  →  two queues of uids
      to delete: no owner is left → delete; some are → drop the dead references; its owner waits (foreground) → delete it first
      to orphan: an owner with the finalizer "orphan" → its dependents lose the reference, then the owner the finalizer

Promised: nothing is deleted on the word of the cache alone: the object and its owners are read live before (an owner seen to be
deleted is remembered as absent), and the deletion carries the object's uid. An owner is looked for in its dependent's namespace: one
elsewhere does not count, and an event OwnerRefInvalidNamespace says so. A cluster-wide object that names a namespaced owner is kept.
"""
