"""Rewrites the stored objects of a resource in the version, and by the key, that is stored today, as StorageVersionMigrations ask
(kube-controller-manager ``storageversionmigrator``)."""
