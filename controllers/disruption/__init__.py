"""Keeps the status of PodDisruptionBudgets, which the eviction subresource spends (``pkg/controller/disruption``).

An eviction takes one from ``disruptionsAllowed`` and notes the pod in ``disruptedPods``; this controller counts anew with every change of
the budget's pods and drops the note when the pod is on its way out, or two minutes later when it has not gone after all.

The count is written only over the version of the budget it was made from: a spent disruption is never given back by an older count.
Where the pods' controllers cannot be told, nothing may be disrupted (condition DisruptionAllowed: False, SyncFailed).
"""
