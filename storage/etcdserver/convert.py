"""Between etcd's messages and the values of ``storage.api``. Numbers and names are the same on both sides, so it is all copying."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from storage import api, errors
from storage.etcdpb import etcdserverpb as pb
from storage.etcdpb import mvccpb
from storage.etcdserver import rpctypes
from storage.maintenance import ClusterMember

Header = Callable[[], api.ResponseHeader]
"""Answers the newest revision that is applied at this member, for answers that the store gives none with."""

_OPERAND_FIELDS: Final = {
    api.CompareTarget.VERSION: "version",
    api.CompareTarget.CREATE: "create_revision",
    api.CompareTarget.MOD: "mod_revision",
    api.CompareTarget.VALUE: "value",
    api.CompareTarget.LEASE: "lease",
}


def header(value: api.ResponseHeader) -> Any:
    return pb.ResponseHeader(cluster_id=value.cluster_id, member_id=value.member_id, revision=value.revision, raft_term=value.raft_term)


def range_request(message: Any) -> api.RangeRequest:
    """Raises RpcError for an order or target that is none."""
    try:
        return api.RangeRequest(
            key=message.key,
            range_end=message.range_end,
            limit=message.limit,
            revision=message.revision,
            sort_order=_SORT_ORDERS[message.sort_order],
            sort_target=_SORT_TARGETS[message.sort_target],
            serializable=message.serializable,
            keys_only=message.keys_only,
            count_only=message.count_only,
            min_mod_revision=message.min_mod_revision,
            max_mod_revision=message.max_mod_revision,
            min_create_revision=message.min_create_revision,
            max_create_revision=message.max_create_revision,
        )
    except KeyError:
        raise rpctypes.invalid_sort_option() from None


_SORT_ORDERS: Final = {int(order): order for order in api.SortOrder}
_SORT_TARGETS: Final = {int(target): target for target in api.SortTarget}


def put_request(message: Any) -> api.PutRequest:
    return api.PutRequest(
        key=message.key,
        value=message.value,
        lease=message.lease,
        prev_kv=message.prev_kv,
        ignore_value=message.ignore_value,
        ignore_lease=message.ignore_lease,
    )


def delete_range_request(message: Any) -> api.DeleteRangeRequest:
    return api.DeleteRangeRequest(key=message.key, range_end=message.range_end, prev_kv=message.prev_kv)


def txn_request(message: Any) -> api.TxnRequest:
    return api.TxnRequest(
        compare=tuple(_compare(each) for each in message.compare),
        success=tuple(_op(each) for each in message.success),
        failure=tuple(_op(each) for each in message.failure),
    )


def _compare(message: Any) -> api.Compare:
    try:
        target, result = api.CompareTarget(message.target), api.CompareResult(message.result)
    except ValueError:
        raise errors.InvalidRequestError("etcdserver: invalid comparison") from None
    return api.Compare(
        key=message.key,
        target=target,
        result=result,
        # where the operand of another target is set, this one's is zero, as in etcd
        operand=getattr(message, _OPERAND_FIELDS[target]),
        range_end=message.range_end,
    )


def _op(message: Any) -> api.Op:
    match message.WhichOneof("request"):
        case "request_range":
            return range_request(message.request_range)
        case "request_put":
            return put_request(message.request_put)
        case "request_delete_range":
            return delete_range_request(message.request_delete_range)
        case "request_txn":
            return txn_request(message.request_txn)
    # etcd's answer to an operation without content
    raise errors.KeyNotFoundError()


def range_response(response: api.RangeResponse) -> Any:
    message = pb.RangeResponse(header=header(response.header), more=response.more, count=response.count)
    add = message.kvs.add
    for kv in response.kvs:
        add(
            key=kv.key,
            create_revision=kv.create_revision,
            mod_revision=kv.mod_revision,
            version=kv.version,
            value=kv.value,
            lease=kv.lease,
        )
    return message


def put_response(response: api.PutResponse) -> Any:
    message = pb.PutResponse(header=header(response.header))
    if response.prev_kv is not None:
        message.prev_kv.CopyFrom(key_value(response.prev_kv))
    return message


def delete_range_response(response: api.DeleteRangeResponse) -> Any:
    return pb.DeleteRangeResponse(
        header=header(response.header), deleted=response.deleted, prev_kvs=[key_value(kv) for kv in response.prev_kvs]
    )


def txn_response(response: api.TxnResponse, *, top: bool = True) -> Any:
    """etcd fills the headers of parts with the revision alone."""
    message = pb.TxnResponse(header=header(response.header) if top else _part_header(response.header), succeeded=response.succeeded)
    for each in response.responses:
        part = message.responses.add()
        match each:
            case api.RangeResponse():
                part.response_range.CopyFrom(range_response(each))
                part.response_range.header.CopyFrom(_part_header(each.header))
            case api.PutResponse():
                part.response_put.CopyFrom(put_response(each))
                part.response_put.header.CopyFrom(_part_header(each.header))
            case api.DeleteRangeResponse():
                part.response_delete_range.CopyFrom(delete_range_response(each))
                part.response_delete_range.header.CopyFrom(_part_header(each.header))
            case api.TxnResponse():
                part.response_txn.CopyFrom(txn_response(each, top=False))
    return message


def _part_header(value: api.ResponseHeader) -> Any:
    return pb.ResponseHeader(revision=value.revision)


def key_value(kv: api.KeyValue) -> Any:
    return mvccpb.KeyValue(
        key=kv.key,
        create_revision=kv.create_revision,
        mod_revision=kv.mod_revision,
        version=kv.version,
        value=kv.value,
        lease=kv.lease,
    )


def watch_request(message: Any) -> api.WatchRequest:
    """Of a WatchCreateRequest. An empty key begins with the first key there can be."""
    filters = set(message.filters)
    return api.WatchRequest(
        key=message.key or b"\0",
        range_end=message.range_end,
        start_revision=message.start_revision,
        prev_kv=message.prev_kv,
        no_put=pb.WatchCreateRequest.NOPUT in filters,
        no_delete=pb.WatchCreateRequest.NODELETE in filters,
    )


def event(value: api.Event) -> Any:
    message = mvccpb.Event(type=int(value.type), kv=key_value(value.kv))
    if value.prev_kv is not None:
        message.prev_kv.CopyFrom(key_value(value.prev_kv))
    return message


def members(values: Iterable[ClusterMember]) -> list[Any]:
    return [member(value) for value in values]


def member(value: ClusterMember) -> Any:
    return pb.Member(ID=value.id, name=value.name, peerURLs=value.peer_urls, clientURLs=value.client_urls, isLearner=value.is_learner)
