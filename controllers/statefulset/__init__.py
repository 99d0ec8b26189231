"""Keeps the pods of StatefulSets: each with a name, a host name and claims of its own (``pkg/controller/statefulset``).

Promised: pod N+1 is made when pod N is ready, and pods go in the other order (unless podManagementPolicy is Parallel); never two pods
of one name, since names are given and the API server stores each once; claims outlive pods unless the set's retention policy says
otherwise. A rolling update replaces one pod after the other from the highest ordinal down to ``partition`` and waits for each.

    identity      the name, labels and claims that belong to an ordinal
    decision      which pods to make, delete or mend now, and the status
    claims        who owns the claims, by the retention policy
    controller    reads, carries out, writes
"""
