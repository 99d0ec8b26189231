"""Keeps a pod of each DaemonSet on each node that fits (``pkg/controller/daemon``).

A pod is made for one node by a node affinity for its name, and placed there by the scheduler. It tolerates what befalls nodes, so that it
runs on one that is not ready or cordoned. Pods on nodes that no longer fit go, and of two on one node the younger.

    placement     which nodes fit; the pod of a node ◇
    decision      which pods to make and delete: keeping them, and the rolling update ◇
    status        the numbers ◇
    controller    reads, carries out, writes
"""
