"""What a real 1.36 server (of custom resources, over this one as the server of policies) answered under policies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.apiserver.admission.policies import ROOT
from tests.apiserver.api import Answer, Api
from tests.apiserver.apiextensions import definitions

RECORDED = Path(__file__).parent / "recorded" / "policies-1.36.json"

#: scenarios that are answered otherwise, and why
ACCEPTED = {
    "map patch missing": "the words of another version of the library for JSON patches",
    "map patch replace missing": "the recorded server has a newer library for JSON patches than a release, whose replace also adds",
    "map dyn": "upstream does not take a map inside of a map out of its CEL form, and refuses it for that",
    "map duration": "the same with lengths of time and unsigned numbers",
}


async def test_policies_answer_as_a_real_server_does(api: Api) -> None:
    recorded = json.loads(RECORDED.read_text())
    await definitions.established(api, recorded["definition"])
    await api.created("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "polcm"}, "data": {"x": "2"}})
    differ, count = [], 0
    for scenario in recorded["scenarios"]:
        for plural, body in scenario["policies"]:
            await api.created(f"{ROOT}/{plural}", body)
        for asked in scenario["asked"]:
            path, _, query = asked["path"].partition("?")
            found = _form(await api.post(path, asked["body"], query=query))
            count += 1
            if found != asked["answer"] and scenario["name"] not in ACCEPTED:
                differ.append(f"{scenario['name']} {asked['body']['spec']}\n  theirs {asked['answer']}\n  ours   {found}")
        for plural, body in reversed(scenario["policies"]):
            await api.delete(f"{ROOT}/{plural}/{body['metadata']['name']}")
    assert not differ, "\n".join(differ)
    assert count > 60


def _form(answer: Answer) -> list[Any]:
    """Status, the object or the refusal, warnings. A generated name is masked."""
    body = answer.json
    if answer.status < 300:
        said = {"labels": body["metadata"].get("labels"), "spec": body.get("spec"), "apiVersion": body.get("apiVersion")}
    else:
        said = {name: body.get(name) for name in ("message", "reason", "details", "code")}
    text = re.sub("g-[a-z0-9]{5}", "g-xxxxx", json.dumps(said, sort_keys=True))
    warnings = [warning.partition('"')[2] for warning in answer.headers.get("warning", [])]
    return [answer.status, json.loads(text), warnings]
