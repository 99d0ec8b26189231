"""Who makes a request. Each authenticator answers a ``UserInfo``, None where the request does not carry its kind of credential,
or raises ``AuthenticationError`` where it does and the credential is wrong; the union (``union``) turns all of them into one answer,
a user or ``StatusError`` 401. Credentials are never logged and never stand in an error; they are compared by keyed hashes or in
constant time. What is promised: no authenticator waits; what is not: that a revoked certificate is noticed (there are no CRLs)."""
