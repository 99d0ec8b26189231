"""Which controllers run, as whom, and that their options are checked."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.resources import SERVICE_ACCOUNTS, Resource
from controllers.lib.identity import ServiceAccountTokens
from controllers.options import ManagerOptions
from controllers.registry import CONTROLLERS, selected
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock


class TokenApi(FakeApi):
    """Tokens are numbered and live for an hour."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.issued = 0

    async def create(self, resource: Resource, namespace: str, obj: Object, *, name: str = "", subresource: str = "") -> Object:
        if subresource != "token":
            return await super().create(resource, namespace, obj, name=name, subresource=subresource)
        await self.get(resource, namespace, name)
        self.issued += 1
        expires = self._clock.now() + datetime.timedelta(hours=1)
        return {"status": {"token": f"token-{self.issued}", "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}}


async def test_a_token_is_asked_for_once_and_renewed_before_it_ends() -> None:
    clock = VirtualClock()
    api = TokenApi(clock)
    tokens = ServiceAccountTokens(api, "deployment-controller", clock=clock)
    assert [await tokens.token(), await tokens.token()] == ["token-1", "token-1"]
    (account,) = api.all(SERVICE_ACCOUNTS)
    assert (account["metadata"]["namespace"], account["metadata"]["name"]) == ("kube-system", "deployment-controller")
    await clock.advance(0.79 * 3600)
    assert await tokens.token() == "token-1"
    await clock.advance(0.02 * 3600)
    assert await tokens.token() == "token-2"


def test_controllers_are_chosen_by_name() -> None:
    every = {r.name for r in CONTROLLERS if r.by_default}
    assert {r.name for r in selected(CONTROLLERS, ("*",))} == every
    assert {r.name for r in selected(CONTROLLERS, ("*", "-job"))} == every - {"job"}
    assert {r.name for r in selected(CONTROLLERS, ("job", "deployment"))} == {"job", "deployment"}
    with pytest.raises(ValueError, match="unknown controller 'nonsense'"):
        selected(CONTROLLERS, ("-nonsense",))


def test_names_and_accounts_are_each_controllers_own() -> None:
    names = [r.name for r in CONTROLLERS]
    # those of certificates share theirs, as upstream
    accounts = [r.service_account for r in CONTROLLERS if r.service_account and r.name not in ("csrapproving", "csrcleaner")]
    assert len(set(names)) == len(names) and len(set(accounts)) == len(accounts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_monitor_grace_period": 5.0}, "--node-monitor-grace-period"),
        ({"kube_api_qps": 0.0}, "--kube-api-qps"),
        ({"leader_elect_lease_duration": 5}, "--leader-elect-lease-duration"),
    ],
)
def test_options_that_cannot_work_are_refused_by_their_flag(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ManagerOptions(kubeconfig=Path("unused"), **options).validate()
