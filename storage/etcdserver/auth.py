"""``etcdserverpb.Auth``: what an etcd answers that has no users and no roles. Who may connect is decided by client certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler
from storage.etcdserver.rpctypes import Code, RpcError

AUTH_REVISION: Final = 1
"""Of an authentication store that was never changed."""

_NOT_KEPT: Final = (Code.UNIMPLEMENTED, "etcdserver: users and roles are not kept here; client certificates decide who may connect")
_NO_USER: Final = (Code.FAILED_PRECONDITION, "etcdserver: user name not found")
_NO_ROLE: Final = (Code.FAILED_PRECONDITION, "etcdserver: role name not found")

_REFUSALS: Final[dict[str, tuple[Code, str]]] = {
    "AuthEnable": (Code.FAILED_PRECONDITION, "etcdserver: root user does not exist"),
    "Authenticate": (Code.FAILED_PRECONDITION, "etcdserver: authentication is not enabled"),
    "UserAdd": _NOT_KEPT,
    "UserGet": _NO_USER,
    "UserDelete": _NO_USER,
    "UserChangePassword": _NO_USER,
    "UserGrantRole": _NO_USER,
    "UserRevokeRole": _NO_USER,
    "RoleAdd": _NOT_KEPT,
    "RoleGet": _NO_ROLE,
    "RoleDelete": _NO_ROLE,
    "RoleGrantPermission": _NO_ROLE,
    "RoleRevokePermission": _NO_ROLE,
}


class AuthService:
    def __init__(self, header: convert.Header) -> None:
        self._header = header

    def handlers(self) -> Mapping[str, Handler]:
        answered: dict[str, Handler] = {
            "AuthStatus": self.status,
            "AuthDisable": self.disable,
            "UserList": self.users,
            "RoleList": self.roles,
        }
        refused = {name: _refusing(*refusal) for name, refusal in _REFUSALS.items()}
        return {f"/etcdserverpb.Auth/{name}": handler for name, handler in (answered | refused).items()}

    async def status(self, request: Any, call: Call) -> Any:
        return pb.AuthStatusResponse(header=convert.header(self._header()), enabled=False, authRevision=AUTH_REVISION)

    async def disable(self, request: Any, call: Call) -> Any:
        return pb.AuthDisableResponse(header=convert.header(self._header()))

    async def users(self, request: Any, call: Call) -> Any:
        return pb.AuthUserListResponse(header=convert.header(self._header()))

    async def roles(self, request: Any, call: Call) -> Any:
        return pb.AuthRoleListResponse(header=convert.header(self._header()))


def _refusing(code: Code, text: str) -> Handler:
    async def refuse(request: Any, call: Call) -> Any:
        raise RpcError(code, text)

    return refuse
