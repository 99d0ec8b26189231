"""CertificateSigningRequests of Kubernetes' own signers (kube-controller-manager's ``csrsigning``, ``csrapproving``, ``csrcleaner``).

``signing`` decides and signs: request, CA and time in, PEM or a refusal out; ``controller`` is its shell. ``approving`` approves the client
certificates that kubelets ask for, where RBAC lets them; everything else is left to people (``kubectl certificate approve``) and to
controllers of other signers. ``cleaning`` deletes requests that have had their time.
"""
