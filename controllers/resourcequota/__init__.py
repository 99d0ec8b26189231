"""Keeps the status of ResourceQuotas: what they allow and what their namespace uses (``pkg/controller/resourcequota``).

Admission charges a quota for what a request brings; this controller counts anew when something goes away or comes to use less, when a
quota is new or changed, and all five minutes, which sets right what was charged for objects that were never stored.

Not on every creation: a count taken between the charge of a request and the arrival of its object by the watch would give the place to
another request. Only a count whose quota has not been charged meanwhile is written (the resourceVersion guards it).

Pods, Services and PersistentVolumeClaims are counted in the shared caches; any other resource gets an informer of its metadata once a
quota counts it (``counted_resources``).
"""
