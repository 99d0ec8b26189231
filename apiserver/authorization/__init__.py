"""Whether a user may do what a request asks: ``Authorizer`` implementations and their union."""
