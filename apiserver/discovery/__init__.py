"""What the server says about itself: ``/api``, ``/apis`` and below, ``/version``, and the OpenAPI documents.

``documents`` builds the answers from a ``ResourceTable`` (pure); ``cache`` keeps their bytes until the table changes; ``routes`` and
``openapi_routes`` serve them. Clients fetch these documents once and keep them, so they are built at the first request and not before.
"""
