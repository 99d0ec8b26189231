"""Bytes that no well-behaved program sends, for everything that takes bytes from outside.

``targets`` says what is fuzzed and what must hold; ``mutate`` makes new inputs of old ones; ``python -m tests.fuzz --seconds N`` runs for
as long as one likes (``--coverage TARGET``: led by coverage, which needs ``atheris``), and the tests run a fixed share.
"""
