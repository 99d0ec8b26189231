"""The peer: bare uvicorn on uvloop and httptools over TLS, one small JSON answer for everything."""

from __future__ import annotations

import sys

import uvicorn

BODY = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"k":"' + b"v" * 200 + b'"}}'
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())],
}


async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    if scope["type"] != "http":
        return
    await send(START)
    await send({"type": "http.response.body", "body": BODY})


if __name__ == "__main__":
    port, certificate, key = sys.argv[1:]
    uvicorn.run(
        app, port=int(port), ssl_certfile=certificate, ssl_keyfile=key, log_level="error", access_log=False,
        loop="uvloop", http="httptools", lifespan="off",
    )  # fmt: skip
