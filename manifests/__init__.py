"""Manifests as data: bootstrap roles and namespaces that the server applies to itself, and examples that the README applies."""
