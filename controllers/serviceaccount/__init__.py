"""What every namespace has: the ServiceAccount ``default``, and the ConfigMap ``kube-root-ca.crt`` with the cluster's CA.

Promised: both are there soon after a namespace is made, and again after they were deleted; the ConfigMap's content is put back when it
was changed (``pkg/controller/serviceaccount``, ``pkg/controller/certificates/rootcacertpublisher``).
"""
