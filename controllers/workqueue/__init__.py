"""Work queues of keys (client-go ``util/workqueue``).

Promised: a key is worked on by one worker at a time; a key added several times before it is taken is taken once; a key added while it is
worked on is taken again afterwards, so no change is missed. Keys come out in the order in which they were (re-)added.
The caller owes: ``done(key)`` for each key it got; ``forget(key)`` when the key went well.
Not promised: that a delayed key comes at its exact time, or that ``add_after`` twice gives two turns (the earlier time wins).
"""
