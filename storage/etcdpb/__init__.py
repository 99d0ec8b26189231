"""The messages and services of etcd's v3 API as protobuf classes, made at first use from one table, without a code generator.

    from storage.etcdpb import etcdserverpb, mvccpb
    request = etcdserverpb.RangeRequest(key=b"a", limit=1)
    etcdserverpb.AlarmType.NOSPACE, etcdserverpb.RangeRequest.ASCEND

    from storage.etcdpb import services
    services.methods()["/etcdserverpb.KV/Range"]   # its request and response class, and whether they stream

Promised: packages, messages, fields, enums, services and numbers are those that etcd publishes (``table`` names the source), so that
the bytes are etcd's, and ``pool`` holds their descriptors for gRPC's reflection. Importing this package costs nothing: protobuf loads
with the first name that is asked for, gRPC never. Not promised: the HTTP/JSON mapping (etcd's gateway), and requests that only etcd's
members send each other.
"""

from __future__ import annotations

from storage.etcdpb.packages import Package

etcdserverpb = Package("etcdserverpb")
mvccpb = Package("mvccpb")
authpb = Package("authpb")
leasepb = Package("leasepb")
v3lockpb = Package("v3lockpb")
v3electionpb = Package("v3electionpb")
health = Package("grpc.health.v1")
reflection_v1 = Package("grpc.reflection.v1")
reflection_v1alpha = Package("grpc.reflection.v1alpha")
