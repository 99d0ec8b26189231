"""The API server: Kubernetes' REST API over the store; the store's only client.

Promises: what ``kubectl`` and client libraries see is what kube-apiserver would answer. The path of a request is
``handler_chain`` → ``handlers`` → ``registry`` → ``objectstore`` → ``storage.api``; imports go only in that direction.
"""
