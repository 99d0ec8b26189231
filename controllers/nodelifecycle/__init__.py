"""Notices nodes that fall silent, marks them, and moves their pods away (``pkg/controller/nodelifecycle``).

    Lease or status changes      →  the node is alive, by this controller's clock when it saw the change (never by the stamps in it)
    silent for the grace period  →  conditions Unknown; taints unreachable NoSchedule, then NoExecute; its pods not Ready
    NoExecute taint              →  pods that do not tolerate it are deleted, others after their tolerationSeconds
    alive again                  →  the kubelet's next report brings the conditions back; taints go, deletions not yet due are called off

Promised: new NoExecute taints come at a limited rate a zone, slower when most of a zone is silent, and not at all when every node of a
cluster of several is silent: then the fault is probably ours.
"""
