"""The same story told to a real API server and to this one, with the same webhook behind both: conversions beside the custom resources of
1.36, admission beside a kube-apiserver 1.20.

    python -m tests.webhook_differential record conversion https://127.0.0.1:6443 TOKEN     writes what a real server answers
    python -m tests.webhook_differential compare [conversion|admission] [NAME …]            shows where this server, in process, differs

A story (``conversions``, ``admissions``) is a function of a ``World``: it sends requests, sets how the webhook answers, and what comes of
each step is kept in one form (``told``): answers without what is accidental, and the reviews that the webhook got. ``test_recorded``
tells all of them in CI.
"""
