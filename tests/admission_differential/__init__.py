"""The same writes to a real kube-apiserver 1.20 and to ours: what every branch of its admission plugins answers must be equal.

    python -m tests.admission_differential record GROUP --server https://127.0.0.1:16443 --token ADMIN
    python -m tests.admission_differential groups          # the groups, and the flags of the server that each wants

writes ``recorded/GROUP.json.gz``, which ``test_recorded.py`` holds our answers against. The server must be new and run without controllers:
what they would make (accounts, status of quotas) the steps make themselves. ``newer.py`` names what a current Kubernetes answers otherwise.
"""
