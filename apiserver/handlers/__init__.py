"""The HTTP edge of the resources: one plain ASGI endpoint, ``endpoint.ResourceEndpoint``, and a file for each kind of request.

Promised: every answer is a Kubernetes object or Status; no request holds the loop for longer than its own work; a watch ends cleanly.
Owed by the caller (the handler chain): ``scope["sampan"]`` is a ``RequestContext`` with an authorized user.
"""
