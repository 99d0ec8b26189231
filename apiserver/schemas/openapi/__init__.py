"""OpenAPI as clients read it: ``swagger2`` (one document, JSON or protobuf) and ``openapi3`` (a document for each group and version).

``definitions`` turns the published schemas back into what Kubernetes publishes, ``custom`` makes definitions of custom resources,
``operations`` says which requests a resource takes; the two document modules put them into the form of their version. All of it is
pure and slow (some 100 ms for everything): whoever serves the documents builds them once, aside, and keeps the bytes.
"""
