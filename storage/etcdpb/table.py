"""The names and numbers of etcd's v3 protocol.

Source: the protocol files that etcd publishes (``api/etcdserverpb/rpc.proto``, ``api/mvccpb/kv.proto``, ``api/authpb/auth.proto``,
``server/lease/leasepb/lease.proto``, ``…/v3lockpb/v3lock.proto``, ``…/v3electionpb/v3election.proto`` of etcd 3.6, which only adds
fields to 3.5), and gRPC's ``health.proto`` and ``reflection.proto``. Only facts are here: names, numbers, types.

A message is written ``Name  field=number:type …``, a service ``Name  Method(Request)Response …``:

* ``*type`` is repeated; ``field=number:type/oneof`` belongs to that oneof;
* a type is a scalar of protobuf, an enum of the message, a message of the same package, or ``package.Name``;
* ``>Request`` and ``>Response`` stream;
* ``Message.Enum  A B C`` is an enum of a message, ``:Enum  A B C`` one of the file; values count from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SCALARS = frozenset({"bool", "bytes", "int32", "int64", "string", "uint32", "uint64"})


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    number: int
    type: str
    repeated: bool
    oneof: str


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    fields: tuple[Field, ...]
    enums: tuple[Enum, ...]


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    request: str
    response: str
    client_streaming: bool
    server_streaming: bool


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class File:
    name: str
    package: str
    imports: tuple[str, ...]
    enums: tuple[Enum, ...]
    messages: tuple[Message, ...]
    services: tuple[Service, ...]


_FIELD = re.compile(r"(\w+)=(\d+):(\*?)([\w.]+)(?:/(\w+))?")
_METHOD = re.compile(r"(\w+)\((>?)(\w+)\)(>?)(\w+)")


def _lines(text: str) -> list[tuple[str, list[str]]]:
    """Head and words of each entry; an indented line goes on with the one before it."""
    entries: list[tuple[str, list[str]]] = []
    for line in text.strip("\n").splitlines():
        words = line.split()
        if line.startswith(" "):
            entries[-1][1].extend(words)
        elif words:
            entries.append((words[0], words[1:]))
    return entries


def _field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    assert match is not None, word
    name, number, star, type_name, oneof = match.groups()
    return Field(name, int(number), type_name, bool(star), oneof or "")


def _method(word: str) -> Method:
    match = _METHOD.fullmatch(word)
    assert match is not None, word
    name, client, request, server, response = match.groups()
    return Method(name, request, response, bool(client), bool(server))


def _parse(name: str, package: str, imports: tuple[str, ...], messages: str, services: str = "") -> File:
    entries = _lines(messages)
    enums = {head: Enum(head.rpartition(".")[2].lstrip(":"), tuple(words)) for head, words in entries if "." in head or ":" in head}
    return File(
        name,
        package,
        imports,
        tuple(enum for head, enum in enums.items() if head.startswith(":")),
        tuple(
            Message(
                head,
                tuple(_field(word) for word in words),
                tuple(enum for where, enum in enums.items() if where.partition(".")[0] == head),
            )
            for head, words in entries
            if head not in enums
        ),
        tuple(Service(head, tuple(_method(word) for word in words)) for head, words in _lines(services)),
    )


_MVCC = """
KeyValue    key=1:bytes create_revision=2:int64 mod_revision=3:int64 version=4:int64 value=5:bytes lease=6:int64
Event       type=1:EventType kv=2:KeyValue prev_kv=3:KeyValue
Event.EventType    PUT DELETE
"""

_AUTH = """
UserAddOptions    no_password=1:bool
User              name=1:bytes password=2:bytes roles=3:*string options=4:UserAddOptions
Permission        permType=1:Type key=2:bytes range_end=3:bytes
Permission.Type   READ WRITE READWRITE
Role              name=1:bytes keyPermission=2:*Permission
"""

_RPC = """
ResponseHeader    cluster_id=1:uint64 member_id=2:uint64 revision=3:int64 raft_term=4:uint64

RangeRequest    key=1:bytes range_end=2:bytes limit=3:int64 revision=4:int64 sort_order=5:SortOrder sort_target=6:SortTarget
                serializable=7:bool keys_only=8:bool count_only=9:bool min_mod_revision=10:int64 max_mod_revision=11:int64
                min_create_revision=12:int64 max_create_revision=13:int64
RangeRequest.SortOrder     NONE ASCEND DESCEND
RangeRequest.SortTarget    KEY VERSION CREATE MOD VALUE
RangeResponse          header=1:ResponseHeader kvs=2:*mvccpb.KeyValue more=3:bool count=4:int64
PutRequest             key=1:bytes value=2:bytes lease=3:int64 prev_kv=4:bool ignore_value=5:bool ignore_lease=6:bool
PutResponse            header=1:ResponseHeader prev_kv=2:mvccpb.KeyValue
DeleteRangeRequest     key=1:bytes range_end=2:bytes prev_kv=3:bool
DeleteRangeResponse    header=1:ResponseHeader deleted=2:int64 prev_kvs=3:*mvccpb.KeyValue
RequestOp     request_range=1:RangeRequest/request request_put=2:PutRequest/request
              request_delete_range=3:DeleteRangeRequest/request request_txn=4:TxnRequest/request
ResponseOp    response_range=1:RangeResponse/response response_put=2:PutResponse/response
              response_delete_range=3:DeleteRangeResponse/response response_txn=4:TxnResponse/response
Compare       result=1:CompareResult target=2:CompareTarget key=3:bytes version=4:int64/target_union
              create_revision=5:int64/target_union mod_revision=6:int64/target_union value=7:bytes/target_union
              lease=8:int64/target_union range_end=64:bytes
Compare.CompareResult    EQUAL GREATER LESS NOT_EQUAL
Compare.CompareTarget    VERSION CREATE MOD VALUE LEASE
TxnRequest     compare=1:*Compare success=2:*RequestOp failure=3:*RequestOp
TxnResponse    header=1:ResponseHeader succeeded=2:bool responses=3:*ResponseOp
CompactionRequest     revision=1:int64 physical=2:bool
CompactionResponse    header=1:ResponseHeader

HashRequest
HashResponse        header=1:ResponseHeader hash=2:uint32
HashKVRequest       revision=1:int64
HashKVResponse      header=1:ResponseHeader hash=2:uint32 compact_revision=3:int64 hash_revision=4:int64
SnapshotRequest
SnapshotResponse    header=1:ResponseHeader remaining_bytes=2:uint64 blob=3:bytes version=4:string

WatchRequest          create_request=1:WatchCreateRequest/request_union cancel_request=2:WatchCancelRequest/request_union
                      progress_request=3:WatchProgressRequest/request_union
WatchCreateRequest    key=1:bytes range_end=2:bytes start_revision=3:int64 progress_notify=4:bool filters=5:*FilterType
                      prev_kv=6:bool watch_id=7:int64 fragment=8:bool
WatchCreateRequest.FilterType    NOPUT NODELETE
WatchCancelRequest    watch_id=1:int64
WatchProgressRequest
WatchResponse         header=1:ResponseHeader watch_id=2:int64 created=3:bool canceled=4:bool compact_revision=5:int64
                      cancel_reason=6:string fragment=7:bool events=11:*mvccpb.Event

LeaseGrantRequest          TTL=1:int64 ID=2:int64
LeaseGrantResponse         header=1:ResponseHeader ID=2:int64 TTL=3:int64 error=4:string
LeaseRevokeRequest         ID=1:int64
LeaseRevokeResponse        header=1:ResponseHeader
LeaseCheckpoint            ID=1:int64 remaining_TTL=2:int64
LeaseCheckpointRequest     checkpoints=1:*LeaseCheckpoint
LeaseCheckpointResponse    header=1:ResponseHeader
LeaseKeepAliveRequest      ID=1:int64
LeaseKeepAliveResponse     header=1:ResponseHeader ID=2:int64 TTL=3:int64
LeaseTimeToLiveRequest     ID=1:int64 keys=2:bool
LeaseTimeToLiveResponse    header=1:ResponseHeader ID=2:int64 TTL=3:int64 grantedTTL=4:int64 keys=5:*bytes
LeaseLeasesRequest
LeaseStatus                ID=1:int64
LeaseLeasesResponse        header=1:ResponseHeader leases=2:*LeaseStatus

Member                   ID=1:uint64 name=2:string peerURLs=3:*string clientURLs=4:*string isLearner=5:bool
MemberAddRequest         peerURLs=1:*string isLearner=2:bool
MemberAddResponse        header=1:ResponseHeader member=2:Member members=3:*Member
MemberRemoveRequest      ID=1:uint64
MemberRemoveResponse     header=1:ResponseHeader members=2:*Member
MemberUpdateRequest      ID=1:uint64 peerURLs=2:*string
MemberUpdateResponse     header=1:ResponseHeader members=2:*Member
MemberListRequest        linearizable=1:bool
MemberListResponse       header=1:ResponseHeader members=2:*Member
MemberPromoteRequest     ID=1:uint64
MemberPromoteResponse    header=1:ResponseHeader members=2:*Member

DefragmentRequest
DefragmentResponse    header=1:ResponseHeader
MoveLeaderRequest     targetID=1:uint64
MoveLeaderResponse    header=1:ResponseHeader
:AlarmType            NONE NOSPACE CORRUPT
AlarmRequest          action=1:AlarmAction memberID=2:uint64 alarm=3:AlarmType
AlarmRequest.AlarmAction    GET ACTIVATE DEACTIVATE
AlarmMember           memberID=1:uint64 alarm=2:AlarmType
AlarmResponse         header=1:ResponseHeader alarms=2:*AlarmMember
DowngradeRequest      action=1:DowngradeAction version=2:string
DowngradeRequest.DowngradeAction    VALIDATE ENABLE CANCEL
DowngradeResponse     header=1:ResponseHeader version=2:string
DowngradeInfo         enabled=1:bool targetVersion=2:string
StatusRequest
StatusResponse        header=1:ResponseHeader version=2:string dbSize=3:int64 leader=4:uint64 raftIndex=5:uint64 raftTerm=6:uint64
                      raftAppliedIndex=7:uint64 errors=8:*string dbSizeInUse=9:int64 isLearner=10:bool storageVersion=11:string
                      dbSizeQuota=12:int64 downgradeInfo=13:DowngradeInfo

AuthEnableRequest
AuthDisableRequest
AuthStatusRequest
AuthenticateRequest                name=1:string password=2:string
AuthUserAddRequest                 name=1:string password=2:string options=3:authpb.UserAddOptions hashedPassword=4:string
AuthUserGetRequest                 name=1:string
AuthUserDeleteRequest              name=1:string
AuthUserChangePasswordRequest      name=1:string password=2:string hashedPassword=3:string
AuthUserGrantRoleRequest           user=1:string role=2:string
AuthUserRevokeRoleRequest          name=1:string role=2:string
AuthRoleAddRequest                 name=1:string
AuthRoleGetRequest                 role=1:string
AuthUserListRequest
AuthRoleListRequest
AuthRoleDeleteRequest              role=1:string
AuthRoleGrantPermissionRequest     name=1:string perm=2:authpb.Permission
AuthRoleRevokePermissionRequest    role=1:string key=2:bytes range_end=3:bytes
AuthEnableResponse                 header=1:ResponseHeader
AuthDisableResponse                header=1:ResponseHeader
AuthStatusResponse                 header=1:ResponseHeader enabled=2:bool authRevision=3:uint64
AuthenticateResponse               header=1:ResponseHeader token=2:string
AuthUserAddResponse                header=1:ResponseHeader
AuthUserGetResponse                header=1:ResponseHeader roles=2:*string
AuthUserDeleteResponse             header=1:ResponseHeader
AuthUserChangePasswordResponse     header=1:ResponseHeader
AuthUserGrantRoleResponse          header=1:ResponseHeader
AuthUserRevokeRoleResponse         header=1:ResponseHeader
AuthRoleAddResponse                header=1:ResponseHeader
AuthRoleGetResponse                header=1:ResponseHeader perm=2:*authpb.Permission
AuthRoleListResponse               header=1:ResponseHeader roles=2:*string
AuthUserListResponse               header=1:ResponseHeader users=2:*string
AuthRoleDeleteResponse             header=1:ResponseHeader
AuthRoleGrantPermissionResponse    header=1:ResponseHeader
AuthRoleRevokePermissionResponse   header=1:ResponseHeader
"""

_RPC_SERVICES = """
KV         Range(RangeRequest)RangeResponse Put(PutRequest)PutResponse DeleteRange(DeleteRangeRequest)DeleteRangeResponse
           Txn(TxnRequest)TxnResponse Compact(CompactionRequest)CompactionResponse
Watch      Watch(>WatchRequest)>WatchResponse
Lease      LeaseGrant(LeaseGrantRequest)LeaseGrantResponse LeaseRevoke(LeaseRevokeRequest)LeaseRevokeResponse
           LeaseKeepAlive(>LeaseKeepAliveRequest)>LeaseKeepAliveResponse
           LeaseTimeToLive(LeaseTimeToLiveRequest)LeaseTimeToLiveResponse LeaseLeases(LeaseLeasesRequest)LeaseLeasesResponse
Cluster    MemberAdd(MemberAddRequest)MemberAddResponse MemberRemove(MemberRemoveRequest)MemberRemoveResponse
           MemberUpdate(MemberUpdateRequest)MemberUpdateResponse MemberList(MemberListRequest)MemberListResponse
           MemberPromote(MemberPromoteRequest)MemberPromoteResponse
Maintenance    Alarm(AlarmRequest)AlarmResponse Status(StatusRequest)StatusResponse Defragment(DefragmentRequest)DefragmentResponse
               Hash(HashRequest)HashResponse HashKV(HashKVRequest)HashKVResponse Snapshot(SnapshotRequest)>SnapshotResponse
               MoveLeader(MoveLeaderRequest)MoveLeaderResponse Downgrade(DowngradeRequest)DowngradeResponse
Auth    AuthEnable(AuthEnableRequest)AuthEnableResponse AuthDisable(AuthDisableRequest)AuthDisableResponse
        AuthStatus(AuthStatusRequest)AuthStatusResponse Authenticate(AuthenticateRequest)AuthenticateResponse
        UserAdd(AuthUserAddRequest)AuthUserAddResponse UserGet(AuthUserGetRequest)AuthUserGetResponse
        UserList(AuthUserListRequest)AuthUserListResponse UserDelete(AuthUserDeleteRequest)AuthUserDeleteResponse
        UserChangePassword(AuthUserChangePasswordRequest)AuthUserChangePasswordResponse
        UserGrantRole(AuthUserGrantRoleRequest)AuthUserGrantRoleResponse
        UserRevokeRole(AuthUserRevokeRoleRequest)AuthUserRevokeRoleResponse RoleAdd(AuthRoleAddRequest)AuthRoleAddResponse
        RoleGet(AuthRoleGetRequest)AuthRoleGetResponse RoleList(AuthRoleListRequest)AuthRoleListResponse
        RoleDelete(AuthRoleDeleteRequest)AuthRoleDeleteResponse
        RoleGrantPermission(AuthRoleGrantPermissionRequest)AuthRoleGrantPermissionResponse
        RoleRevokePermission(AuthRoleRevokePermissionRequest)AuthRoleRevokePermissionResponse
"""

_LEASE = """
Lease                    ID=1:int64 TTL=2:int64 RemainingTTL=3:int64
LeaseInternalRequest     LeaseTimeToLiveRequest=1:etcdserverpb.LeaseTimeToLiveRequest
LeaseInternalResponse    LeaseTimeToLiveResponse=1:etcdserverpb.LeaseTimeToLiveResponse
"""

_LOCK = """
LockRequest       name=1:bytes lease=2:int64
LockResponse      header=1:etcdserverpb.ResponseHeader key=2:bytes
UnlockRequest     key=1:bytes
UnlockResponse    header=1:etcdserverpb.ResponseHeader
"""

_ELECTION = """
CampaignRequest     name=1:bytes lease=2:int64 value=3:bytes
CampaignResponse    header=1:etcdserverpb.ResponseHeader leader=2:LeaderKey
LeaderKey           name=1:bytes key=2:bytes rev=3:int64 lease=4:int64
LeaderRequest       name=1:bytes
LeaderResponse      header=1:etcdserverpb.ResponseHeader kv=2:mvccpb.KeyValue
ResignRequest       leader=1:LeaderKey
ResignResponse      header=1:etcdserverpb.ResponseHeader
ProclaimRequest     leader=1:LeaderKey value=2:bytes
ProclaimResponse    header=1:etcdserverpb.ResponseHeader
"""

_HEALTH = """
HealthCheckRequest     service=1:string
HealthCheckResponse    status=1:ServingStatus
HealthCheckResponse.ServingStatus    UNKNOWN SERVING NOT_SERVING SERVICE_UNKNOWN
"""

_REFLECTION = """
ServerReflectionRequest    host=1:string file_by_filename=3:string/message_request file_containing_symbol=4:string/message_request
                           file_containing_extension=5:ExtensionRequest/message_request
                           all_extension_numbers_of_type=6:string/message_request list_services=7:string/message_request
ExtensionRequest           containing_type=1:string extension_number=2:int32
ServerReflectionResponse   valid_host=1:string original_request=2:ServerReflectionRequest
                           file_descriptor_response=4:FileDescriptorResponse/message_response
                           all_extension_numbers_response=5:ExtensionNumberResponse/message_response
                           list_services_response=6:ListServiceResponse/message_response
                           error_response=7:ErrorResponse/message_response
FileDescriptorResponse     file_descriptor_proto=1:*bytes
ExtensionNumberResponse    base_type_name=1:string extension_number=2:*int32
ListServiceResponse        service=1:*ServiceResponse
ServiceResponse            name=1:string
ErrorResponse              error_code=1:int32 error_message=2:string
"""

_REFLECTION_SERVICE = "ServerReflection ServerReflectionInfo(>ServerReflectionRequest)>ServerReflectionResponse"

_KV_FILE = "etcd/api/mvccpb/kv.proto"
_AUTH_FILE = "etcd/api/authpb/auth.proto"
_RPC_FILE = "etcd/api/etcdserverpb/rpc.proto"

# Each file after those it imports.
FILES: tuple[File, ...] = (
    _parse(_KV_FILE, "mvccpb", (), _MVCC),
    _parse(_AUTH_FILE, "authpb", (), _AUTH),
    _parse(_RPC_FILE, "etcdserverpb", (_KV_FILE, _AUTH_FILE), _RPC, _RPC_SERVICES),
    _parse("etcd/server/lease/leasepb/lease.proto", "leasepb", (_RPC_FILE,), _LEASE),
    _parse("v3lock.proto", "v3lockpb", (_RPC_FILE,), _LOCK, "Lock Lock(LockRequest)LockResponse Unlock(UnlockRequest)UnlockResponse"),
    _parse(
        "v3election.proto",
        "v3electionpb",
        (_RPC_FILE, _KV_FILE),
        _ELECTION,
        """
Election    Campaign(CampaignRequest)CampaignResponse Proclaim(ProclaimRequest)ProclaimResponse Leader(LeaderRequest)LeaderResponse
            Observe(LeaderRequest)>LeaderResponse Resign(ResignRequest)ResignResponse
""",
    ),
    _parse(
        "grpc/health/v1/health.proto",
        "grpc.health.v1",
        (),
        _HEALTH,
        "Health Check(HealthCheckRequest)HealthCheckResponse Watch(HealthCheckRequest)>HealthCheckResponse",
    ),
    _parse("grpc/reflection/v1/reflection.proto", "grpc.reflection.v1", (), _REFLECTION, _REFLECTION_SERVICE),
    _parse("grpc/reflection/v1alpha/reflection.proto", "grpc.reflection.v1alpha", (), _REFLECTION, _REFLECTION_SERVICE),
)
