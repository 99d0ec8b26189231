"""Whether a user may do what a request asks: ``Authorizer`` implementations and their union.

What they decide from (roles, bindings, pods) is fed to them by the watch caches (``rbac_data.RbacData``, ``node_graph.NodeGraph``), so a
decision never waits and follows a change as soon as the cache has seen it. The caller owes them every event of their resources.
"""
