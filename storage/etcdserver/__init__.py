"""The operators' door: etcd's v3 gRPC API, and its HTTP pages, over a member of the store.

    client_port    listener, TLS, which of HTTP/2 and HTTP/1.1 a connection speaks
      http2        frames, streams, flow control (RFC 9113); headers by the ``hpack`` library
        grpc_server    gRPC over HTTP/2: methods, messages, deadlines, status
          kv watch lease cluster maintenance concurrency auth health reflection    one file a service
                       (concurrency: locks and elections)
      pages        /metrics, /health, /version … for HTTP/1.1 and HTTP/2 alike
    door            all of it over one member; metrics: what it counts
    convert rpctypes    requests and answers to and from ``storage.api``; errors to etcd's codes and texts

HTTP/2 is our own and not grpcio's: in this process grpcio answers 2,400 empty calls a second on one core, and cannot share its port
with the HTTP pages, renew a client's trust or be driven by the event loop that the member lives on. What is served is tested with
grpcio's and etcd's own clients.

Promised: what etcd's clients can see is as etcd has it (services, texts, codes, order, limits). The caller owes a started member, and
``ClientPort.stop`` before the member stops. Everything runs on the member's event loop and is bounded: what limits what is said at the
constants of each file. Not promised: etcd's HTTP/JSON gateway and its users and roles (answered as etcd with auth disabled does).
"""
