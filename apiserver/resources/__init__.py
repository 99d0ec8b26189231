"""The table of facts about every built-in resource: one file per API group, each a tuple of ``ResourceInfo``.

Which of them a Kubernetes version serves by default stands in the facts (``since``, ``until``), so that starting needs no schema; tests
hold them against the published schemas of every version. ``table.ResourceTable`` is the table of one version, ``columns`` what
``kubectl get`` prints of each kind.
"""
