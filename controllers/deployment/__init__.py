"""Rolls ReplicaSets so that a Deployment's pods come to be those of its template (``pkg/controller/deployment``).

    template → one ReplicaSet ("new"; named by the template's hash, numbered by its revision); all others are "old"
    RollingUpdate: new grows within replicas + maxSurge, old shrink while replicas − maxUnavailable stay available
    Recreate: old go to 0, their pods end, then new grows

Promised: at no moment do the ReplicaSets together ask for more than replicas + maxSurge, and none is shrunk that would leave fewer
than replicas − maxUnavailable available; a paused Deployment is scaled but not rolled; the last ``revisionHistoryLimit`` old ReplicaSets
stay for ``kubectl rollout undo`` (which puts their template back).
"""
