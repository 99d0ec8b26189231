"""Aggregated cluster roles: what they gather, in which order, and that they follow every change."""

from __future__ import annotations

from typing import Any

from apiserver.machinery.objects import Object
from controllers.client.resources import CLUSTER_ROLES
from controllers.clusterroleaggregation import decision
from controllers.clusterroleaggregation.controller import ClusterRoleAggregationController
from tests.controllers.world import World


def rule(resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}


def role(name: str, *rules: dict[str, Any], **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


def gathering(name: str, *selectors: dict[str, Any], **labels: str) -> Object:
    made = role(name, **labels)
    made["aggregationRule"] = {"clusterRoleSelectors": list(selectors)}
    return made


def by(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def test_rules_come_by_selector_and_name_and_each_once() -> None:
    roles = [
        role("b", rule("pods", "get"), to="view"),
        role("a", rule("nodes", "get"), rule("pods", "get"), to="view"),
        role("c", rule("secrets", "get"), to="edit"),
        role("d", rule("jobs", "get")),
    ]
    whole = gathering("all", by(to="edit"), by(to="view"), to="view")
    assert decision.aggregated_rules(whole, [*roles, whole]) == [rule("secrets", "get"), rule("nodes", "get"), rule("pods", "get")]
    done = decision.with_rules(whole, roles)
    assert done is not None and decision.with_rules(done, roles) is None


def test_selectors_may_be_expressions_and_an_empty_one_is_everything() -> None:
    roles = [role("a", rule("pods", "get"), to="x"), role("b", rule("nodes", "get"))]
    exists = {"matchExpressions": [{"key": "to", "operator": "Exists"}]}
    assert decision.aggregated_rules(gathering("g", exists), roles) == [rule("pods", "get")]
    assert decision.aggregated_rules(gathering("g", {}), roles) == [rule("pods", "get"), rule("nodes", "get")]
    assert decision.aggregated_rules(gathering("g"), roles) == []


async def test_aggregations_of_aggregations_settle_and_follow_changes() -> None:
    world = World()
    await world.api.create(CLUSTER_ROLES, "", gathering("edit", by(to="edit")))
    await world.api.create(CLUSTER_ROLES, "", gathering("view", by(to="view"), to="edit"))
    await world.api.create(CLUSTER_ROLES, "", role("reader", rule("pods", "get"), to="view"))

    async def rules(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await world.api.get(CLUSTER_ROLES, "", name))["rules"]
        return found

    async with world.running(ClusterRoleAggregationController):
        assert await rules("view") == [rule("pods", "get")] == await rules("edit")
        await world.api.create(CLUSTER_ROLES, "", role("custom", rule("gadgets", "get", "list"), to="view"))
        await world.rest()
        assert await rules("edit") == [rule("gadgets", "get", "list"), rule("pods", "get")]
        await world.api.delete(CLUSTER_ROLES, "", "reader")
        await world.rest()
        assert await rules("view") == [rule("gadgets", "get", "list")] == await rules("edit")


async def test_rules_written_by_hand_into_an_aggregated_role_are_put_right() -> None:
    world = World()
    await world.api.create(CLUSTER_ROLES, "", gathering("view", by(to="view")))
    async with world.running(ClusterRoleAggregationController):
        made = await world.api.get(CLUSTER_ROLES, "", "view")
        await world.api.update(CLUSTER_ROLES, {**made, "rules": [rule("*", "*")]})
        await world.rest()
        assert (await world.api.get(CLUSTER_ROLES, "", "view"))["rules"] == []
