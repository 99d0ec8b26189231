"""A short share of the long run, of operations picked by a fixed seed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.schemathesis_run.run import run, server

OPERATIONS = 10
EXAMPLES = 3
#: small documents of different makings, which are quick to read; the long run takes all
DOCUMENTS = ("apis/batch/v1", "apis/policy/v1", "apis/rbac.authorization.k8s.io/v1", "apis/apiextensions.k8s.io/v1", "version")


@pytest.mark.slow
def test_schemathesis_finds_no_answer_that_fails_the_server(tmp_path: Path) -> None:
    with server(tmp_path, "1.37") as target:
        report = run(target, 4, seconds=math.inf, documents=DOCUMENTS, operations_max=OPERATIONS, examples=EXAMPLES)
    assert not report.wrong, report.text()
    assert report.rounds == 1
    assert report.requests > OPERATIONS, report.text()
    assert {200, 400, 404} <= set(report.codes), report.text()
