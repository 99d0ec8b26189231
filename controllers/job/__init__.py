"""Runs pods until enough of them have succeeded (``pkg/controller/job``).

Promised: at most ``parallelism`` pods are active, no more are made than completions still want; a Job fails at its backoffLimit or
deadline and then stops what runs; failures are followed by growing pauses; Indexed jobs have one pod an index; a suspended Job runs none.
Not promised: podFailurePolicy and successPolicy; and a finished pod that somebody deletes before it was counted has to run again
(no tracking finalizers are put on pods).
"""
