"""Do the promises hold when things break? Checkers (pure: ``kv_model``, ``history``, ``linearizability``, ``watch_promises``), and the
tests and long runs that break things and ask them."""
