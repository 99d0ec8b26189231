"""A KMS v2 plugin on a Unix socket: ``python -m tests.fakes.kms_plugin SOCKET KEY_ID_FILE``. Its key's name is what the file holds at each
moment; it encrypts by a fixed key of its own. Speaks by grpcio with the messages written out, as a plugin in any language would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import grpc
from cryptography.fernet import Fernet

from apiserver.objectstore.encryption import kms_messages

_FERNET = Fernet(b"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")


class Service(grpc.GenericRpcHandler):
    def __init__(self, key_id: Callable[[], str]) -> None:
        self._key_id = key_id

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        handler = {"Status": self._status, "Encrypt": self._encrypt, "Decrypt": self._decrypt}.get(details.method.rpartition("/")[2])
        return grpc.unary_unary_rpc_method_handler(handler) if handler is not None else None

    def _status(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        return kms_messages.encode({1: "v2", 2: "ok", 3: self._key_id()})

    def _encrypt(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        plain = kms_messages.decode(request).bytes_of(1)
        return kms_messages.encode({1: _FERNET.encrypt(plain), 2: self._key_id(), 3: {"version.example.com": b"1"}})

    def _decrypt(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        return kms_messages.encode({1: _FERNET.decrypt(kms_messages.decode(request).bytes_of(1))})


def serve(socket: Path, key_id: Callable[[], str]) -> grpc.Server:
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2), handlers=(Service(key_id),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


if __name__ == "__main__":
    file = Path(sys.argv[2])
    serve(Path(sys.argv[1]), lambda: file.read_text().strip()).wait_for_termination()
