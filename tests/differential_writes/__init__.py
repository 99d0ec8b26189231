"""The same writes on two servers, ours and a real kube-apiserver, and their answers compared.

    python -m tests.differential_writes --ours URL --theirs URL --token TOKEN [--script NAME] [--seconds N] [--seed N]

``scripts`` are made by hand, one for each group of rules; ``random_writes`` makes sequences of writes by several field managers. Both
servers are fresh namespaces of the same shape; what differs by nature (uids, times, revisions, allocated addresses) is normalised.
"""
