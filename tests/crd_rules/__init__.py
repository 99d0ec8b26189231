"""Rules in CEL of custom resources, as a real 1.36 server of custom resources judges definitions and objects.

    python -m tests.crd_rules record https://127.0.0.1:6443 TOKEN      writes recorded.json.gz from a real server
    python -m tests.crd_rules compare                                  prints what this implementation answers otherwise

A case is a schema and a sequence of objects: whole objects that are created, and pairs of which the second replaces the first. What is
compared are the causes of refusals, in order where the server's order is not an accident, and warnings.
"""
