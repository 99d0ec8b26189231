"""Calls of programs outside that have a say: admission and conversion webhooks (apiserver ``util/webhook``).

``addresses`` finds out where a configured service listens, ``client`` sends one JSON document and reads one, ``wording`` says in the words
of Kubernetes' own client what went wrong. What the documents say is the matter of whoever calls.

Promised: a call ends by its timeout, whatever the other side does; an answer larger than ``client.ANSWER_BYTES_MAX`` is not read; nothing
of an answer is trusted before it was checked. Loaded when the first webhook is configured.
"""
