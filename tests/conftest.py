"""Options of the whole suite.

Generated examples are the same in every run of CI, so that a change is judged by what it changes; elsewhere they are new each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


if os.environ.get("SAMPAN_TEST_ETCD"):
    # they are about the embedded store, or bring an etcd of their own
    left_out = ("backup", "client_port", "cluster*", "external_etcd", "from_snapshot", "golden_on_etcd")
    collect_ignore_glob = [f"*/test_{name}.py" for name in left_out]


def pytest_configure() -> None:
    if os.environ.get("SAMPAN_TEST_ETCD"):
        from tests import etcd_backed

        etcd_backed.install()


def pytest_unconfigure() -> None:
    if os.environ.get("SAMPAN_TEST_ETCD"):
        from tests import etcd_backed

        etcd_backed.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the actual output into datadriven test files")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))
