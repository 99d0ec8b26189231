"""Audit (audit.k8s.io/v1): who did what, when, to what, and what came of it.

A policy says how much is noted of a request (``policy``): the first rule that matches decides. The chain makes an ``Event`` of each
request that is to be noted (``event``), which is told at its stages:

    RequestReceived    once it is known who asks
    ResponseStarted    of watches and streams, whose end may be far; and of requests that fail to say who asks
    ResponseComplete   the answer is out
    Panic              the server failed

Handlers tell an event what only they know: ``event.note_request_object`` and ``annotate`` are for them and for admission.

Sinks (``log_file``, ``webhook``) take an event as bytes and never wait: each has a bounded queue of ``buffer.EVENTS_MAX`` and a worker of
its own; what finds no place is dropped and counted (``apiserver_audit_error_total``). So a slow disk or a dead webhook costs events, never
answers. That is kube-apiserver's ``batch`` mode; in the ``blocking`` ones the log file is written before the request goes on.

Never in an event, whatever the policy: the token of a TokenRequest's or TokenReview's body; headers.
"""
