"""Between ``storage.api`` and etcd's messages. Loads protobuf."""

from __future__ import annotations

from typing import Any

from storage import api
from storage.etcdpb import etcdserverpb as pb

_KeyValue = api.KeyValue
_EVENT_TYPES = (api.EventType.PUT, api.EventType.DELETE)
_OPERANDS = {
    api.CompareTarget.VERSION: "version",
    api.CompareTarget.CREATE: "create_revision",
    api.CompareTarget.MOD: "mod_revision",
    api.CompareTarget.VALUE: "value",
    api.CompareTarget.LEASE: "lease",
}


# -- requests to etcd


def range_request(request: api.RangeRequest) -> Any:
    return pb.RangeRequest(
        key=request.key,
        range_end=request.range_end,
        limit=request.limit,
        revision=request.revision,
        sort_order=int(request.sort_order),
        sort_target=int(request.sort_target),
        serializable=request.serializable,
        keys_only=request.keys_only,
        count_only=request.count_only,
        min_mod_revision=request.min_mod_revision,
        max_mod_revision=request.max_mod_revision,
        min_create_revision=request.min_create_revision,
        max_create_revision=request.max_create_revision,
    )


def put_request(request: api.PutRequest) -> Any:
    return pb.PutRequest(
        key=request.key,
        value=request.value,
        lease=request.lease,
        prev_kv=request.prev_kv,
        ignore_value=request.ignore_value,
        ignore_lease=request.ignore_lease,
    )


def delete_range_request(request: api.DeleteRangeRequest) -> Any:
    return pb.DeleteRangeRequest(key=request.key, range_end=request.range_end, prev_kv=request.prev_kv)


def txn_request(request: api.TxnRequest) -> Any:
    return pb.TxnRequest(
        compare=[_compare(each) for each in request.compare],
        success=[_operation(each) for each in request.success],
        failure=[_operation(each) for each in request.failure],
    )


def watch_create_request(request: api.WatchRequest, start_revision: int) -> Any:
    """Fragments are taken: an answer may be larger than what the network between lets through at once."""
    filters = [pb.WatchCreateRequest.NOPUT] * request.no_put + [pb.WatchCreateRequest.NODELETE] * request.no_delete
    create = pb.WatchCreateRequest(
        key=request.key,
        range_end=request.range_end,
        start_revision=start_revision,
        prev_kv=request.prev_kv,
        filters=filters,
        progress_notify=True,
        fragment=True,
    )
    return pb.WatchRequest(create_request=create)


def _compare(compare: api.Compare) -> Any:
    made = pb.Compare(key=compare.key, range_end=compare.range_end, target=int(compare.target), result=int(compare.result))
    setattr(made, _OPERANDS[compare.target], compare.operand)
    return made


def _operation(request: api.Op) -> Any:
    match request:
        case api.RangeRequest():
            return pb.RequestOp(request_range=range_request(request))
        case api.PutRequest():
            return pb.RequestOp(request_put=put_request(request))
        case api.DeleteRangeRequest():
            return pb.RequestOp(request_delete_range=delete_range_request(request))
        case api.TxnRequest():
            return pb.RequestOp(request_txn=txn_request(request))


# -- answers of etcd


def header(answer: Any) -> api.ResponseHeader:
    return api.ResponseHeader(
        cluster_id=answer.cluster_id, member_id=answer.member_id, revision=answer.revision, raft_term=answer.raft_term
    )


def range_response(answer: Any) -> api.RangeResponse:
    return _range_response(answer, header(answer.header))


def put_response(answer: Any) -> api.PutResponse:
    return _put_response(answer, header(answer.header))


def delete_range_response(answer: Any) -> api.DeleteRangeResponse:
    return _delete_range_response(answer, header(answer.header))


def txn_response(answer: Any) -> api.TxnResponse:
    return _txn_response(answer, header(answer.header))


def events(answer: Any) -> tuple[api.Event, ...]:
    return tuple(
        api.Event(_EVENT_TYPES[event.type], _key_value(event.kv), _key_value(event.prev_kv) if event.HasField("prev_kv") else None)
        for event in answer.events
    )


def _key_value(kv: Any) -> api.KeyValue:
    return _KeyValue(kv.key, kv.create_revision, kv.mod_revision, kv.version, kv.value, kv.lease)


# The answers inside of a transaction's have headers with at most a revision: theirs is the transaction's.


def _range_response(answer: Any, whole: api.ResponseHeader) -> api.RangeResponse:
    return api.RangeResponse(header=whole, kvs=tuple(map(_key_value, answer.kvs)), more=answer.more, count=answer.count)


def _put_response(answer: Any, whole: api.ResponseHeader) -> api.PutResponse:
    return api.PutResponse(header=whole, prev_kv=_key_value(answer.prev_kv) if answer.HasField("prev_kv") else None)


def _delete_range_response(answer: Any, whole: api.ResponseHeader) -> api.DeleteRangeResponse:
    return api.DeleteRangeResponse(header=whole, deleted=answer.deleted, prev_kvs=tuple(map(_key_value, answer.prev_kvs)))


def _txn_response(answer: Any, whole: api.ResponseHeader) -> api.TxnResponse:
    return api.TxnResponse(
        header=whole, succeeded=answer.succeeded, responses=tuple(_operation_response(each, whole) for each in answer.responses)
    )


def _operation_response(answer: Any, whole: api.ResponseHeader) -> api.OpResponse:
    kind = answer.WhichOneof("response")
    match kind:
        case "response_range":
            return _range_response(answer.response_range, whole)
        case "response_put":
            return _put_response(answer.response_put, whole)
        case "response_delete_range":
            return _delete_range_response(answer.response_delete_range, whole)
    assert kind == "response_txn", kind
    return _txn_response(answer.response_txn, whole)
