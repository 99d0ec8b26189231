"""What admission reads: always as of the last write, also where a list was kept."""

from __future__ import annotations

from apiserver.registry import registry
from tests.apiserver.api import Api

CM = "/api/v1/namespaces/ns-a/configmaps"


def names_in(api: Api, namespace: str = "ns-a") -> list[str]:
    return [obj["metadata"]["name"] for obj in api.server.access.cached.list("", "configmaps", namespace)]


async def test_a_list_is_that_of_the_last_write(api: Api) -> None:
    before = names_in(api)
    await api.created(CM, {"metadata": {"name": "a"}})
    await api.created(CM, {"metadata": {"name": "b"}})
    assert set(names_in(api)) == {*before, "a", "b"}
    assert api.server.access.cached.list("", "configmaps", "ns-a") is api.server.access.cached.list("", "configmaps", "ns-a")
    await api.patch(f"{CM}/a", {"data": {"k": "v"}})
    (found,) = [o for o in api.server.access.cached.list("", "configmaps", "ns-a") if o["metadata"]["name"] == "a"]
    assert found["data"] == {"k": "v"}
    await api.delete(f"{CM}/b")
    assert set(names_in(api)) == {*before, "a"}
    assert names_in(api, "nowhere") == []


async def test_long_lists_are_not_kept_and_lists_are_bounded(api: Api) -> None:
    for number in range(registry.KEPT_LIST_OBJECTS_MAX + 1):
        await api.created(CM, {"metadata": {"name": f"c-{number}"}})
    cached = api.server.access.cached
    assert len(cached.list("", "configmaps", "ns-a")) > registry.KEPT_LIST_OBJECTS_MAX
    assert cached.list("", "configmaps", "ns-a") is not cached.list("", "configmaps", "ns-a")
    for number in range(registry.KEPT_LISTS_MAX + 1):
        cached.list("", "configmaps", f"namespace-{number}")
    assert len(cached._lists) <= registry.KEPT_LISTS_MAX
