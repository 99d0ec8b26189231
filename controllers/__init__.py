"""Controllers: processes that watch the cluster through its API and write what brings it nearer to what its objects ask for.

Promised: they know the cluster only by HTTP (``controllers.client``), keep what they read in caches (``controllers.cache``),
work on keys from queues (``controllers.workqueue``), and may be stopped or killed at any moment: everything they
know is in the API, so a new process goes on where the old one was.

Each controller is a package of its own. Its decision is a pure module (given these objects, do what?) that returns a plan; its
shell reads the caches, asks for the plan, carries it out and re-queues the key when something failed.

The caller owes: one event loop for everything, and objects from caches are never changed (copy first).
Not promised: the order in which two keys are worked on.
"""
