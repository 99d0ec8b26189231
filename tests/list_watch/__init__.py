"""The same requests to a real kube-apiserver and to this one, their outcomes in one form, so that every difference shows.

``recorded/`` keeps what the real servers answered (as tests that need no such server); ``python -m tests.list_watch URL TOKEN`` records
anew. Outcomes hold what a client can rely on: codes, reasons, texts, which objects in which version, tokens and counts; not the bytes.
"""
