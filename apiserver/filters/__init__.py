"""The steps that every request takes before its handler, one file each, and what a response gets on its way out.

A step is a plain function or object called with the ``RequestContext``: it fills in what it finds out, or raises ``StatusError``, which
the chain (``apiserver.handler_chain``) turns into the answer. None of them waits: all that they need is in memory. So a step costs about
a microsecond, and the chain is a loop rather than a nest of callables.
"""
