"""Who makes a request. Each authenticator answers a ``UserInfo``, None where the request does not carry its kind of credential,
or raises ``StatusError`` 401 where it does and the credential is wrong."""
