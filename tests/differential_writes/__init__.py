"""The same writes on two servers, ours and a real one, and their answers compared.

    python -m tests.differential_writes --ours URL --theirs URL                     scripts made by hand, one for each group of rules
    python -m tests.differential_writes --ours URL --theirs URL --random 200        random sequences of writes to a custom resource by
                                                                                    several field managers; needs a server of today

Each script and sequence has a fresh namespace on both; what differs by nature (uids, times, revisions) is normalised.
"""
