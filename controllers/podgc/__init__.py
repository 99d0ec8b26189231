"""Removes pods that nothing else will (``pkg/controller/podgc``).

    finished pods beyond the threshold           oldest first
    pods of a node that does not exist           after the node has been missing for the quarantine, and the server confirms it
    deleted pods that never got a node           nobody is there to end them
    deleted pods on a node out of service        taint node.kubernetes.io/out-of-service, and the node is not ready

Promised: pods that have not finished are marked Failed before they go, so that their owners count them.
"""
