"""Caches of API objects kept by list and watch (client-go ``tools/cache``).

    server --list/watch--> Reflector --> DeltaFIFO --> SharedInformer --> Indexer, then handlers

Promised: the Indexer holds some state each object really had, in order, never older than before; handlers see each change after the
Indexer has it, in the Indexer's order; a handler sees one add, then updates, then one delete per object (a delete and re-creation
between two looks show as delete, add where their uids differ).
The caller owes: handlers return quickly (they put keys into queues) and never change an object they were given.
Not promised: that every intermediate state is seen, or that the cache is up to date: read what you wrote through expectations or a
live read.
"""
