"""Priority and fairness: which requests run when there is more to do than the server can (KEP-1040; "API Priority and Fairness").

A request is classified by the first FlowSchema that matches it, which names a priority level. Each level has a number of *seats*; where
they are taken its requests wait in queues, one of a few that are dealt to each flow (a user, or a namespace), and are let in fairly
between flows; where a queue is full, or the wait too long, the answer is 429.

What a seat is, in one process on one event loop: a request that has begun and whose answer is not complete. One that is answered from
memory takes its seat and gives it back before anybody else runs, so seats hold those that wait: for the store, a webhook, the rest of a
body, a client that reads slowly. Processor time is the other thing that a flood takes away, and seats cannot ration it here. So there are
also *turns*: a turn is one round of the event loop, in which every connection with a request ready gets to start it. Once a turn has
lasted ``dispatcher.TURN_SECONDS``, a level that has had its share of the turn has its further requests queued like those without a seat,
and the next turn begins with what was queued. While nothing queues neither costs more than a few comparisons.

    rules ◇       FlowSchemas, and which requests they match
    queue_set ◇   the seats and the queues of one level
    allocation ◇  how many seats each level has, and lends
    width ◇       how many seats a request takes
    bootstrap ◇   the configuration that every cluster has, and how it is kept
    configuration ◇ FlowSchemas and levels that belong together
    dispatcher    the filter: classify, take a seat or wait for one, give it back; turns; metrics
    upkeep        writes what ``bootstrap`` wants and the status of FlowSchemas
    dump ◇        the tables of /debug/api_priority_and_fairness/

Different from kube-apiserver: a write's seat is given back with its answer, without the extra milliseconds that stand there for sending
its event to watchers, since that happens before the answer here; ``Retry-After`` is always 1.
"""
