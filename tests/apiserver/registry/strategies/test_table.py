"""The table of strategies names what the modules have."""

from __future__ import annotations

import subprocess
import sys

from apiserver.registry.strategies import table
from apiserver.registry.strategy import Strategy
from apiserver.resources.table import ResourceTable


def test_every_strategy_of_a_module_is_in_the_table() -> None:
    for module, groups in table.MODULES.items():
        named = {(group, kind) for group, kinds in groups.items() for kind in kinds.split()}
        assert named == set(table.strategies_in(module)), module


def test_strategies_are_not_loaded_before_they_are_used() -> None:
    """Nor what they check with; the reading of addresses apart, which ranges of services need."""
    code = "import sys, apiserver.server; print([m for m in sys.modules if m.startswith('apiserver.registry.validation.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['apiserver.registry.validation.formats']"


def test_every_kind_that_is_stored_has_rules_of_its_own() -> None:
    """Left over are reviews and bindings, which are never stored, and the statuses of components, which are made up."""
    without = {
        info.kind
        for minor in ("1.26", "1.30", "1.31", "1.37")
        for info in ResourceTable(minor, "api/all=true" if minor != "1.37" else "")
        if info.group == "resource.k8s.io" or minor == "1.37"
        if type(table.strategy_for(info)) is Strategy
    }
    assert all("Review" in kind or kind in ("Binding", "ComponentStatus") for kind in without), without
