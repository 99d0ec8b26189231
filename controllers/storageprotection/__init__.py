"""Lets claims and volumes go once nothing uses them (``pkg/controller/volume/pvcprotection``, ``pvprotection``).

Admission puts a finalizer on each PersistentVolumeClaim and PersistentVolume. A claim that is deleted keeps it while a pod that has a node
names the claim; a volume while it is bound. Before the finalizer of a claim goes, the pods are listed on the server: the cache may not show
one that has just been placed.
"""
