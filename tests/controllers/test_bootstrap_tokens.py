"""Bootstrap tokens: those that are over go, those that may sign vouch for cluster-info. And old tokens of accounts that nobody uses."""

from __future__ import annotations

import base64
import datetime
from typing import Any

import jwt
import pytest

from apiserver.machinery.objects import Object
from controllers.bootstrap import tokens
from controllers.bootstrap.cleaning import TokenCleaner
from controllers.bootstrap.signing import BootstrapSigner, signed
from controllers.client import errors
from controllers.client.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from controllers.lib.clock import format_time
from controllers.registry import CONTROLLERS, selected
from controllers.serviceaccount.legacy_tokens import INVALID_SINCE, LAST_USED, Fate, LegacyTokenCleaner, fate_of
from tests.controllers.world import World

NOW = datetime.datetime(2026, 6, 1, 12, tzinfo=datetime.UTC)


def token(token_id: str = "abcdef", **data: str) -> Object:
    whole = {"token-id": token_id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"} | data
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in whole.items()}
    return {"metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"}, "type": tokens.SECRET_TYPE, "data": encoded}


async def there(world: World, name: str) -> bool:
    try:
        await world.api.get(SECRETS, "kube-system", name)
    except errors.StatusError as error:
        assert errors.is_not_found(error)
        return False
    return True


async def test_a_token_goes_when_its_time_is_over_and_others_stay() -> None:
    world = World()
    async with world.running(TokenCleaner):
        soon = format_time(world.clock.now() + datetime.timedelta(seconds=60))
        await world.api.create(SECRETS, "kube-system", token("soonxx", expiration=soon))
        await world.api.create(SECRETS, "kube-system", token("always"))
        await world.api.create(SECRETS, "kube-system", token("broken", expiration="tomorrow"))
        await world.api.create(SECRETS, "kube-system", {**token("others", expiration="2001-01-01T00:00:00Z"), "type": "Opaque"})
        await world.rest()
        left = [name for name in ("soonxx", "always", "broken", "others") if await there(world, f"bootstrap-token-{name}")]
        assert left == ["soonxx", "always", "others"], "an end that nobody can read is over"
        await world.advance(61)
        assert not await there(world, "bootstrap-token-soonxx")
        # one that was given more time meanwhile gets it
        ends = format_time(world.clock.now() + datetime.timedelta(seconds=60))
        await world.api.create(SECRETS, "kube-system", token("longer", expiration=ends))
        await world.rest()
        found = await world.api.get(SECRETS, "kube-system", "bootstrap-token-longer")
        later = format_time(world.clock.now() + datetime.timedelta(seconds=600))
        await world.api.update(SECRETS, {**found, "data": token("longer", expiration=later)["data"]})
        await world.advance(120)
        assert await there(world, "bootstrap-token-longer")


async def test_cluster_info_is_signed_by_each_token_that_may_and_by_no_other() -> None:
    world = World()
    info: Object = {"metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": {"kubeconfig": "clusters: []\n", "own": "x"}}

    async def data() -> dict[str, str]:
        await world.rest()
        return dict((await world.api.get(CONFIG_MAPS, "kube-public", "cluster-info"))["data"])

    async with world.running(BootstrapSigner):
        await world.api.create(CONFIG_MAPS, "kube-public", info)
        ends = format_time(world.clock.now() + datetime.timedelta(seconds=60))
        await world.api.create(SECRETS, "kube-system", token("abcdef", expiration=ends))
        await world.api.create(SECRETS, "kube-system", token("nosign", **{"usage-bootstrap-signing": "false"}))
        await world.api.create(
            SECRETS, "kube-system", {**token("wrongx"), "metadata": {"name": "bootstrap-token-other1", "namespace": "kube-system"}}
        )
        found = await data()
        assert sorted(found) == ["jws-kubeconfig-abcdef", "kubeconfig", "own"]
        # what a joining node does: the content is put back between the two parts, and the token's secret verifies
        head, _, signature = found["jws-kubeconfig-abcdef"].split(".")
        content = base64.urlsafe_b64encode(found["kubeconfig"].encode()).rstrip(b"=").decode()
        assert jwt.get_unverified_header(f"{head}.{content}.{signature}") == {"alg": "HS256", "kid": "abcdef"}
        key = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
        assert key.verify(f"{head}.{content}".encode(), b"0123456789abcdef", raw)
        there = await world.api.get(CONFIG_MAPS, "kube-public", "cluster-info")
        await world.api.update(CONFIG_MAPS, {**there, "data": {"kubeconfig": "changed", "jws-kubeconfig-ghijkl": "stale"}})
        again = await data()
        assert sorted(again) == ["jws-kubeconfig-abcdef", "kubeconfig"]
        assert again["jws-kubeconfig-abcdef"] != found["jws-kubeconfig-abcdef"]
        await world.advance(61)
        assert sorted(await data()) == ["kubeconfig"], "a signature ends with its token"


def test_without_content_there_is_nothing_to_sign() -> None:
    assert signed({"own": "x"}, [("abcdef", "s")]) is None


def test_both_work_only_where_they_are_named() -> None:
    usual = {registration.name for registration in selected(CONTROLLERS, ("*",))}
    assert not usual & {"bootstrapsigner", "tokencleaner"}
    both = {registration.name for registration in selected(CONTROLLERS, ("*", "bootstrapsigner", "tokencleaner"))}
    assert both == usual | {"bootstrapsigner", "tokencleaner"}


def old_token(**labels: str) -> Object:
    metadata = {
        "name": "t",
        "namespace": "n",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "annotations": {"kubernetes.io/service-account.name": "robot"},
        "labels": {name.replace("_", "-"): day for name, day in labels.items()},
    }
    return {"metadata": metadata, "type": "kubernetes.io/service-account-token"}


ACCOUNT: Object = {"metadata": {"name": "robot", "namespace": "n", "uid": "u"}, "secrets": [{"name": "t"}]}


@pytest.mark.parametrize(
    ("labels", "more", "fate"),
    [
        ({}, {}, Fate.MARKED),
        ({LAST_USED: "2025-05-31"}, {}, Fate.MARKED),
        ({LAST_USED: "2025-06-01"}, {}, Fate.STAYS),
        ({LAST_USED: "yesterday"}, {}, Fate.STAYS),
        ({INVALID_SINCE: "2025-06-01"}, {}, Fate.STAYS),
        ({INVALID_SINCE: "2025-05-31"}, {}, Fate.DELETED),
        ({INVALID_SINCE: "2025-05-31", LAST_USED: "2026-05-31"}, {}, Fate.STAYS),
        ({INVALID_SINCE: "nonsense"}, {}, Fate.MARKED),
        ({}, {"account": None}, Fate.STAYS),
        ({}, {"account": {**ACCOUNT, "secrets": []}}, Fate.STAYS),
        ({}, {"mounted": True}, Fate.STAYS),
        ({}, {"type": "Opaque"}, Fate.STAYS),
        ({}, {"made": "2025-07-01T00:00:00Z"}, Fate.STAYS),
    ],
)
def test_what_becomes_of_a_token_that_nobody_uses(labels: dict[str, str], more: dict[str, Any], fate: Fate) -> None:
    secret = old_token(**labels)
    secret["type"] = more.get("type", secret["type"])
    secret["metadata"]["creationTimestamp"] = more.get("made", secret["metadata"]["creationTimestamp"])
    mounted = bool(more.get("mounted"))
    assert fate_of(secret, more.get("account", ACCOUNT), lambda: mounted, NOW, datetime.timedelta(days=365)) is fate


async def test_tokens_are_marked_and_later_deleted_once_uses_were_noted_long_enough() -> None:
    world = World()
    day, began = datetime.timedelta(days=1), world.clock.now()
    async with world.running(lambda context: LegacyTokenCleaner(context, 3 * day)):
        await world.api.create(
            SERVICE_ACCOUNTS, "n", {"metadata": {"name": "robot", "namespace": "n"}, "secrets": [{"name": "t"}, {"name": "m"}]}
        )
        for name in ("t", "m"):
            secret = old_token()
            metadata = {key: value for key, value in secret["metadata"].items() if key != "creationTimestamp"} | {"name": name}
            await world.api.create(SECRETS, "n", {**secret, "metadata": metadata})
        volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "m"}}]}}
        pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [], "volumes": [volume]}}
        await world.api.create(PODS, "n", pod)
        tracking = "kube-apiserver-legacy-service-account-token-tracking"

        async def labels(name: str) -> dict[str, str]:
            return dict((await world.api.get(SECRETS, "n", name))["metadata"].get("labels") or {})

        for _ in range(5):
            await world.advance(day.total_seconds())
        assert await labels("t") == {}, "nobody says since when uses are noted"
        since = {"metadata": {"name": tracking, "namespace": "kube-system"}, "data": {"since": began.strftime("%Y-%m-%d")}}
        await world.api.create(CONFIG_MAPS, "kube-system", since)
        await world.advance(day.total_seconds())
        assert list(await labels("t")) == [INVALID_SINCE] and await labels("m") == {}
        for _ in range(5):
            await world.advance(day.total_seconds())
        with pytest.raises(errors.StatusError):
            await labels("t")
        assert await labels("m") == {}, "a pod uses it"
