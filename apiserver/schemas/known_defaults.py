"""Defaults that Kubernetes' OpenAPI states (``+default=`` markers) but the published documents leave out.

Server-side apply needs those of list keys (a container port without a protocol is the one of TCP); the rest is shown by
``kubectl explain`` and used by no one else here: defaulting itself belongs to the strategies.
"""

from __future__ import annotations

from typing import Any

#: by definition and field
KNOWN_DEFAULTS: dict[tuple[str, str], Any] = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "cachingMode"): "ReadWrite",
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "fsType"): "ext4",
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "readOnly"): False,
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "kind"): "Shared",
    ("io.k8s.api.core.v1.ISCSIVolumeSource", "iscsiInterface"): "default",
    ("io.k8s.api.core.v1.ISCSIPersistentVolumeSource", "iscsiInterface"): "default",
    ("io.k8s.api.core.v1.RBDVolumeSource", "pool"): "rbd",
    ("io.k8s.api.core.v1.RBDVolumeSource", "user"): "admin",
    ("io.k8s.api.core.v1.RBDVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("io.k8s.api.core.v1.RBDPersistentVolumeSource", "pool"): "rbd",
    ("io.k8s.api.core.v1.RBDPersistentVolumeSource", "user"): "admin",
    ("io.k8s.api.core.v1.RBDPersistentVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("io.k8s.api.core.v1.ScaleIOVolumeSource", "storageMode"): "ThinProvisioned",
    ("io.k8s.api.core.v1.ScaleIOVolumeSource", "fsType"): "xfs",
    ("io.k8s.api.core.v1.ScaleIOPersistentVolumeSource", "storageMode"): "ThinProvisioned",
    ("io.k8s.api.core.v1.ScaleIOPersistentVolumeSource", "fsType"): "xfs",
}
