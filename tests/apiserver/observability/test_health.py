"""Health endpoints; texts are those of kube-apiserver."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from apiserver.health import HealthCheck, HealthEndpoints


class World:
    def __init__(self) -> None:
        self.problem = ""
        etcd = HealthCheck(name="etcd", check=lambda: self.problem)
        late = HealthCheck(name="poststarthook/rbac/bootstrap-roles", check=lambda: "")
        app = HealthEndpoints(FastAPI(), healthz=[etcd], livez=[], readyz=[etcd, late])
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")

    async def get(self, path: str) -> tuple[int, str]:
        answer = await self.client.get(path)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        return answer.status_code, answer.text


PATHS = ["/healthz", "/livez", "/readyz", "/readyz/etcd", "/readyz/poststarthook/rbac/bootstrap-roles", "/livez/ping"]


@pytest.mark.parametrize("path", PATHS)
async def test_all_is_well(path: str) -> None:
    assert await World().get(path) == (200, "ok")


async def test_verbose_tells_each_check() -> None:
    told = "[+]ping ok\n[+]etcd ok\n[+]poststarthook/rbac/bootstrap-roles ok\nreadyz check passed\n"
    assert await World().get("/readyz?verbose") == (200, told)


async def test_a_failure_is_told_without_its_reason_except_on_its_own_path() -> None:
    world = World()
    world.problem = "no leader"
    assert await world.get("/healthz") == (500, "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n")
    assert await world.get("/livez") == (200, "ok")
    assert await world.get("/readyz/etcd") == (500, "internal server error: no leader\n")


async def test_checks_can_be_excluded() -> None:
    world = World()
    world.problem = "no leader"
    assert await world.get("/healthz?exclude=etcd") == (200, "ok")
    status, told = await world.get("/healthz?verbose&exclude=etcd&exclude=nothing")
    assert status == 200
    assert told == (
        '[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for "nothing"\nhealthz check passed\n'
    )


async def test_an_unknown_check_is_not_there() -> None:
    assert (await World().client.get("/readyz/nothing")).status_code == 404
