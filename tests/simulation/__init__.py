"""Deterministic simulation of a whole storage cluster: the real members in one thread, on virtual time.

One seed is one run, byte for byte. The seed draws which faults happen (network, disk, clock, crashes, pauses, membership) and the sizes
that make rare paths common (short election timeouts, small log files, few entries between snapshots), then a cluster of
``storage.member.Member`` serves clients while the faults happen, is healed, and must make progress again.

- ``world``: virtual time, the processes' event loops, the choice of who runs next.
- ``network``, ``disk``, ``backend``: what a member believes to be the world; each does what the real one may do at worst.
- ``options``, ``nemesis``: what the seed draws, and the faults as they happen.
- ``workload``: clients. Each call is recorded with its start, its end and its answer.
- ``model``, ``checkers``: the observers with full view; a violation is an ``InvariantError``.
- ``run``: ``run_seed`` puts it all together.

    python -m tests.simulation --seconds 60            # fresh seeds, prints any failing one
    python -m tests.simulation --seed 1234 --trace     # one seed again, with all that happened

What is not simulated: Python threads (work of threads runs at one moment of virtual time), LMDB and TLS themselves.
"""
