"""The same questions about identity and rights to a real kube-apiserver 1.20 and to ours: statuses and messages must be equal.

    python -m tests.identity_differential record --server https://127.0.0.1:16443 --token ADMIN --user-token ALICE

writes ``recorded-1.20.json``, which ``test_recorded.py`` holds our answers against. The server must be new: authorization by Node and RBAC,
a user ``admin`` in ``system:masters`` and a user ``alice`` in ``devs`` without any rights of her own.
"""
