"""Assigns pods to nodes (``kube-scheduler``): filters say where a pod can run, scores say where it should, a binding makes it so.

    waiting pods, by priority and age → filter nodes → score → assume → bind (POST pods/binding), many bindings at once

Promised: a pod is bound only to a node that passed every filter on what was known and assumed at that moment; what does not fit is told in
an event FailedScheduling and the condition PodScheduled, in kube-scheduler's words, and tried again when nodes or pods change.
Filters: schedulable, node name, taints, node selector and affinity, host ports, resources, pod (anti-)affinity, topology spread.
Not promised: preemption, volume binding, extenders.
"""
