"""Empties a namespace that is being deleted, then lets it go (``pkg/controller/namespace``).

    DELETE namespace → phase Terminating, held by spec.finalizers [kubernetes]
    this controller  → deletes everything in it of every resource that discovery names, pods first
                     → tells in status.conditions what is left and why
                     → nothing left, and discovery was complete: takes "kubernetes" out of the finalizers (subresource finalize)

Promised: a namespace is never let go while something that could be listed is in it, nor when some API group could not be discovered.
"""
