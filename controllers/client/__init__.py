"""The controllers' way to the API server: REST verbs, watches, discovery, kubeconfig files.

``Api`` (``interface``) is what controllers ask for; ``Client`` (``rest``) is the one over HTTP; tests pass an in-memory one.

Promised: every answer of code 400 and above is raised as ``apiserver.machinery.status.StatusError``; trouble below HTTP (refused or
broken connections, time-outs) as ``errors.ConnectionFailed``. Reads are retried a bounded number of times after 429, 500, 502, 503 and
504 or a broken connection; writes never, since their effect is then unknown - the caller looks again and decides anew.

The caller owes: ``await client.close()``, and that objects are JSON values.
"""
