"""The table of facts about every built-in resource: one file per API group, each a tuple of ``ResourceInfo``.

Which of them a chosen Kubernetes version serves follows from its published schemas: a resource is served where the schemas
define its kind in its group and version."""
