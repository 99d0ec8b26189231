"""The README's chapter on failures: what it names exists, and no alert is without a word on what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHAPTER = README.partition("## When something is wrong\n")[2].partition("\n## ")[0]
ROWS = [line for line in CHAPTER.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip().replace(" ", "-"))
def test_each_failure_has_a_way_out_and_tests_that_exist(row: str) -> None:
    what, shows, remedy, tested = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
    assert what and shows and remedy
    named = re.findall(r"`([\w/]+\.py) -k (\w+)`", tested)
    assert named, "no test"
    for file, words in named:
        content = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"def test_\w*{words}", content), f"no test of {file} is named {words}"


def test_each_alert_is_told_of() -> None:
    rules = yaml.safe_load((ROOT / "manifests" / "monitoring" / "rules.yaml").read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert alerts == set(re.findall(r"\bSampan[A-Z]\w+", CHAPTER))
