"""Bootstrap tokens, with which new nodes come: those whose time is over go, and those that may sign vouch for the ConfigMap
``kube-public/cluster-info``, by which a node that knows a token knows the cluster (``pkg/controller/bootstrap``).

Both are off unless ``--controllers`` names them, as in kube-controller-manager.
"""
