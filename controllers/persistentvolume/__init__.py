"""Binds PersistentVolumeClaims to PersistentVolumes that are there (``pkg/controller/volume/persistentvolume``).

A binding is two references, the volume's ``claimRef`` and the claim's ``volumeName``. The volume's is written first, so that a volume never
serves two claims: a second writer meets a conflict. Then each side's status follows.

Not promised: volumes are neither made nor wiped. Claims of a class with a provisioner wait for it; a released volume whose policy is
Delete goes by its provisioner, or else fails, since no plugin here could delete what is behind it. A claim of a class that waits for its
first consumer is bound when a pod that names it has a node, to a volume that this node can reach (kube-scheduler chooses both
together).
"""
