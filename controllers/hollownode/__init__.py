"""Hollow nodes: kubelets that run no containers, so that one machine shows the whole loop (the idea of kubemark's hollow nodes).

Promised: a Node with capacity and addresses, a Lease renewed each ten seconds, status heartbeats; pods bound to it go through
Pending → ContainerCreating → Running, become Ready as their probes' delays and readiness gates say, complete or crash as their workload
says, and end gracefully when they are deleted; with a kubelet's events. A hollow node that is started again goes on with the pods it finds.

What a container would do is guessed (``workload``): with restartPolicy Always it runs on; otherwise it succeeds after a short
while; ``sleep N``, ``false`` and ``exit N`` in its command are understood; annotations override all of it:

    hollow.sampan.dev/run-seconds: "30"        ends after so long        hollow.sampan.dev/exit-code: "1"       with this code
    hollow.sampan.dev/start-seconds: "2"       starts after so long      hollow.sampan.dev/stop-seconds: "5"    takes so long to stop
    hollow.sampan.dev/never-ready: "true"      runs, is never ready      hollow.sampan.dev/pull-error: "true"   stays in ImagePullBackOff

Not promised: logs, exec, attach, port-forward, volumes, networking: there is nothing behind the pods' IPs.
"""

from controllers.hollownode.hollow_node import HollowNode
from controllers.hollownode.options import HollowNodeOptions
from controllers.hollownode.runner import run

__all__ = ["HollowNode", "HollowNodeOptions", "run"]
