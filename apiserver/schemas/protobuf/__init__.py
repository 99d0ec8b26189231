"""Objects in Kubernetes' protobuf form (``application/vnd.kubernetes.protobuf``), to and from their JSON form.

The form is four bytes ``k8s\\0`` and a ``runtime.Unknown`` message: apiVersion and kind, then the object's own message. Typed Go clients
(client-go, controllers, the scheduler, ``kubectl create`` among them) send and prefer built-in objects so, and a real cluster's store
holds them so. ``encode`` writes the very bytes that Kubernetes' generated Go code writes: fields in the order of their numbers, maps
sorted by key, what cannot be nil even where it is zero. Custom resources have no protobuf form (``message_of`` answers None).

Read: ``decode``, ``to_json``. Write: ``encode``, and for bytes that are kept by object ``encode_message`` with ``envelope``.
Facts about messages: ``table``. Errors: ``ProtobufError``, and of it ``MessageError`` and
``UnknownKindError``, which know the kind that was said.
"""

from apiserver.schemas.protobuf.decoding import decode, to_json
from apiserver.schemas.protobuf.encoding import encode, encode_message, envelope, envelope_start
from apiserver.schemas.protobuf.table import MAGIC, message_of
from apiserver.schemas.protobuf.wire import MessageError, ProtobufError, UnknownKindError

__all__ = [
    "MAGIC",
    "MessageError",
    "ProtobufError",
    "UnknownKindError",
    "decode",
    "encode",
    "encode_message",
    "envelope",
    "envelope_start",
    "message_of",
    "to_json",
]
