"""Requests about custom objects, put to a real 1.36 server of custom resources and to this one, every answer compared.

    python -m tests.custom_objects compare --ours URL --theirs URL --random 500     random requests to rich definitions
    python -m tests.custom_objects compare … --schemas 100                          and to definitions with random schemas
    python -m tests.custom_objects record --theirs URL                              writes recorded.json.gz, which a test replays

Bodies are written as texts, so that they hold what no dictionary can: fields that are repeated, ``1.0`` beside ``1``, lone surrogates.
This server is to run without controllers (``apiserver``), since the other has none.
"""
