"""The documented defaults of each kind's version (Kubernetes ``pkg/apis/*/v1/defaults.go`` and what its conversions add).

A ``default_*`` function fills in what is missing, in place, and may be called any number of times. Where Go writes a field even
though it is empty (``resources: {}`` of a container, ``status: {}``), so do these.
"""
