"""Definitions of real projects: each loads, and its objects are created, listed, explained, applied and deleted.

    python -m tests.real_world DIRECTORY …      all definitions in these directories' YAML files
    python -m tests.real_world DIRECTORY … --objects SAMPLES      and sample objects, SAMPLES/PROJECT/….yaml

A few small ones are kept in ``data`` for CI (each says whose it is; all are under the Apache licence 2.0).
"""
