"""The published schemas of Kubernetes as this server uses them.

``SchemaSet.load("1.37")`` answers, for every built-in kind of that version, its ``machinery.types.Type`` and a compiled validator;
``decoding`` turns a body into a pruned, canonical object with the messages of Kubernetes' decoder; ``openapi`` publishes the
schemas again for clients. Nothing is read before it is first asked for.

Promised: a ``Type`` of one definition is one object, however often it is asked for. Not promised: that a ``Type`` of one SchemaSet equals
that of another.
"""
