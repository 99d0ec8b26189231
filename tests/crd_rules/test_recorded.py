"""What a real server answered to definitions with rules, and to objects of them."""

from __future__ import annotations

from tests.crd_rules import asking
from tests.crd_rules.cases import cases

#: cases that are answered otherwise, and why
ACCEPTED = {
    "runtime-8": "the recorded server has a newer cel-go, which words a text that is no time otherwise than the one in a release",
    "runtime-17": "the real server compares a list that the schema declares with a number by an error, one that the rule made by false",
}


def test_rules_are_judged_as_a_real_server_judges_them() -> None:
    recorded, differ, count = asking.recorded(), [], 0
    for case in cases():
        for what, theirs, ours in asking.compared(case, recorded[case.name]):
            count += 1
            if theirs != ours and case.name not in ACCEPTED:
                differ.append(f"{case.name} {what}\n  theirs {theirs}\n  ours   {ours}")
    assert not differ, "\n".join(differ[:20])
    assert count > 1000, "the recording is of fewer questions than the cases have"
