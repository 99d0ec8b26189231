"""Endpoints and EndpointSlices of Services with a selector (``pkg/controller/endpoint``, ``endpointslice``).

Promised: an Endpoints object lists the IPs of pods that the Service selects, ready ones apart from those that are not; EndpointSlices
list the same pods, and those that are terminating, in pieces of a hundred; both go with their Service. Both are kept, as clients of
either sort are about.
"""
