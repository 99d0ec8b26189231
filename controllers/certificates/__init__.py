"""Signs approved CertificateSigningRequests for Kubernetes' own signers with the cluster's CA (kube-controller-manager's ``csrsigning``).

``signing`` decides and signs: request, CA and time in, PEM or a refusal out. ``controller`` is the shell. Approving is left to people and
other controllers; requests for other signers are left alone.
"""
