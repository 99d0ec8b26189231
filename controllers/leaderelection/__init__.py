"""Leader election by a Lease (client-go ``tools/leaderelection``): of several processes of one name, one works.

Promised: a holder that cannot renew for ``renew_deadline_seconds`` stops before another may take over after ``lease_seconds``.
The caller owes: clocks that run at about the same rate (not clocks that agree: a lease is judged by when *this* process saw it change),
and that its work stops when ``run`` ends it.
Not promised: mutual exclusion of writes already on their way; the API's resourceVersions guard those.
"""
