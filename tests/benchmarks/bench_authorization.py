"""What a decision costs: RBAC with 1,000 roles, cold and remembered, the chain's own memory, and a token's check.

python -m tests.benchmarks.bench_authorization
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from apiserver.authentication.user import UserInfo
from apiserver.authorization import bootstrap
from apiserver.authorization.authorizer import Attributes, Decision
from apiserver.authorization.rbac import RbacAuthorizer
from apiserver.authorization.rbac_data import RbacData
from apiserver.authorization.static import PrivilegedGroupAuthorizer
from apiserver.authorization.union import UnionAuthorizer
from apiserver.filters.authorization import Authorization
from apiserver.request.request_context import RequestContext
from apiserver.request.request_info import resolve

ROLES = 1000
#: limits in microseconds
CACHED_MAX, COLD_MAX = 5.0, 100.0


def world() -> tuple[RbacData, UnionAuthorizer]:
    """Kubernetes' default roles, and a thousand roles and bindings in ten namespaces and for the whole cluster."""
    data = RbacData()
    for made in bootstrap.load_policy():
        data.object_changed(made.resource, made.namespace, made.name, made.object)
    for number in range(ROLES):
        namespace = f"n{number % 10}" if number % 2 else ""
        rules = [{"verbs": ["get", "list"], "apiGroups": [f"g{number}.example"], "resources": ["things", "things/status"]}] * 3
        name = f"role-{number}"
        data.object_changed("roles" if namespace else "clusterroles", namespace, name, {"rules": rules})
        reference = {"kind": "Role" if namespace else "ClusterRole", "name": name}
        subjects = [{"kind": "User", "name": f"user-{number}"}, {"kind": "Group", "name": f"group-{number}"}]
        binding: dict[str, Any] = {"roleRef": reference, "subjects": subjects}
        data.object_changed("rolebindings" if namespace else "clusterrolebindings", namespace, name, binding)
    return data, UnionAuthorizer([PrivilegedGroupAuthorizer(), RbacAuthorizer(data)])


def microseconds(step: Callable[[], object], times: int) -> float:
    """Of processor time for one call, the median of seven runs."""
    runs: list[float] = []
    for _ in range(7):
        started = time.process_time()
        for _ in range(times):
            step()
        runs.append((time.process_time() - started) / times * 1e6)
    return statistics.median(runs)


def main() -> None:
    data, authorizer = world()
    user = UserInfo(name="user-999", groups=("group-998", "system:authenticated"))
    asked = Attributes(user=user, verb="list", group="g999.example", version="v1", namespace="n9", resource="things")
    refused = Attributes(user=user, verb="delete", group="g999.example", version="v1", namespace="n9", resource="things")
    assert authorizer.authorize(asked)[0] is Decision.ALLOW and authorizer.authorize(refused)[0] is Decision.NO_OPINION
    print(f"RBAC, remembered             {microseconds(lambda: authorizer.authorize(asked), 20_000):8.2f} µs (at most {CACHED_MAX:g})")

    def cold(attributes: Attributes) -> Callable[[], object]:
        def step() -> object:
            data.generation += 1  # as any change of any role does
            return authorizer.authorize(attributes)

        return step

    print(f"RBAC, cold, allowed          {microseconds(cold(asked), 500):8.2f} µs (at most {COLD_MAX:g})")
    print(f"RBAC, cold, refused          {microseconds(cold(refused), 500):8.2f} µs (at most {COLD_MAX:g})")
    info = resolve("GET", "/apis/g999.example/v1/namespaces/n9/things", {})
    context = RequestContext(info=info, method="GET", query={}, headers={}, audit_id="", received_at=0.0, user=user)
    step = Authorization(authorizer)
    print(f"the chain's step, remembered {microseconds(lambda: step(context), 20_000):8.2f} µs")


if __name__ == "__main__":
    main()
