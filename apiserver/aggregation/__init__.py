"""Other API servers behind this one (kube-aggregator): APIServices, and what is done for those that name a service.

    priorities ◇       which APIServices there are for what this server serves itself
    registration       makes, mends and removes them: built-in versions at the start, those of definitions as they come and go
    local              what the stored APIServices say of what is served here
    remote ◇           an APIService that names a service, as the others here need it; which request is whose
    go_words ◇         what went wrong with a connection, in the words of Go's clients
    connections        TLS to the extension servers, with the front-proxy certificate
    forwarding         a request passed on with its user's name, its body and its answer as streams
    tunnel             connections that are upgraded (exec, WebSockets)
    availability       the condition ``Available``
    documents, openapi what the extension servers serve, merged into discovery and OpenAPI

Promised: an extension server that is away, hangs or answers nonsense costs its own clients an error and nobody else anything: its requests
hold no seat among those in flight, wait no longer than others, and are bounded in number; its documents are bounded in size.
aiohttp is imported when the first APIService names a service.
"""
