"""What the authorization filter remembers, and when it forgets."""

from __future__ import annotations

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.union import build_authorizer
from apiserver.filters.authorization import DECISION_ANNOTATION, REASON_ANNOTATION, Authorization
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext, RequestInfo

ALICE = UserInfo(name="alice")
PODS = RequestInfo(is_resource_request=True, path="/api/v1/namespaces/ns/pods", verb="list", version="v1", namespace="ns", resource="pods")


def context(user: UserInfo = ALICE, info: RequestInfo = PODS) -> RequestContext:
    return RequestContext(info=info, method="GET", query={}, headers={}, audit_id="", received_at=0.0, user=user)


class World:
    def __init__(self) -> None:
        self.data = RbacData()
        self.filter = Authorization(build_authorizer(["RBAC"], {"RBAC": RbacAuthorizer(self.data)}))
        rules = [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]
        self.data.object_changed("clusterroles", "", "r", {"rules": rules})
        self.bind()

    def bind(self) -> None:
        reference = {"kind": "ClusterRole", "name": "r"}
        binding = {"roleRef": reference, "subjects": [{"kind": "User", "name": "alice"}]}
        self.data.object_changed("clusterrolebindings", "", "b", binding)

    def allows(self, request: RequestContext) -> bool:
        try:
            self.filter(request)
        except StatusError as error:
            assert error.code == 403
            return False
        return True


def test_what_is_remembered_is_forgotten_with_any_change() -> None:
    world = World()
    for _ in range(3):
        assert world.allows(context())
        world.data.object_changed("clusterrolebindings", "", "b", None)
        assert not world.allows(context())
        world.bind()


def test_a_remembered_request_is_annotated_as_a_new_one() -> None:
    world = World()
    first, second = context(), context()
    assert world.allows(first) and world.allows(second)
    reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "alice"'
    assert first.annotations == second.annotations == {DECISION_ANNOTATION: "allow", REASON_ANNOTATION: reason}


@pytest.mark.parametrize("remember", [True, False])
def test_others_and_other_requests_gain_nothing(remember: bool) -> None:
    world = World()
    if remember:
        assert world.allows(context())
    assert not world.allows(context(UserInfo(name="bob")))
    secrets = RequestInfo(is_resource_request=True, path="/x", verb="list", version="v1", namespace="ns", resource="secrets")
    assert not world.allows(context(info=secrets))


def test_an_impersonated_user_is_asked_about_each_time() -> None:
    world = World()
    request = context()
    request.original_user = UserInfo(name="root")
    assert world.allows(request)
    assert world.filter._allowed == {}
