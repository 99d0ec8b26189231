"""Keeps as many pods as a ReplicaSet (or ReplicationController) asks for (``pkg/controller/replicaset``).

Promised: never more pods than asked for are created, however late the watch is (expectations; a consistent list when they expire); matching
orphans are adopted, and pods that no longer match are let go; creations start slowly, so that a refusal is not repeated a hundred
times; what refuses them stands in the condition ReplicaFailure and in events.
"""
