"""Where a current Kubernetes answers otherwise than the recorded 1.20, and why."""

from __future__ import annotations

import re

_NO_500 = "refused, since it is not the server that is at fault"
#: (the step, the difference as ``path: ours, not real``, why)
_NEWER = tuple(
    (re.compile(step), re.compile(difference, re.DOTALL), why)
    for step, difference, why in (
        ("", r"^object\.labels: .*'kubernetes\.io/metadata\.name'.*, not None$", "namespaces carry their name as a label"),
        ("^quota (pods|uncounted|several)", r"must specify .* for: .*, not .*must specify ", "the containers that lack it are named"),
        ("^quota services", r"^object\.spec\.(internalTrafficPolicy|ipFamilies|ipFamilyPolicy)", "fields of services that came later"),
        ("^quota services", r"^object\.spec\.allocateLoadBalancerNodePorts: True", "a field that came later"),
        ("^quota services", r"^object\.spec\.ports\[0\]\.nodePort: \d+, not \d+$", "each server takes a free one"),
        ("^eviction: budget after", r"^object\.status\.conditions: .*DisruptionAllowed", "budgets have conditions"),
        ("^eviction: (budget (state|after)|evict (dry|really)) negative", "", "policy/v1 takes no number below nothing"),
        ("^eviction: evict under the empty selector$", "", "in policy/v1 an empty selector is about every pod"),
        ("^node: owner$", "", "CVE-2025-5187, mended in every release that was maintained"),
        ("^node: claim ", r"other than status\.quantity.*, not .*other than status\.capacity", "words"),
        ("^node: token wrong uid$", "does not match the UID in record. ", "a node is not told what it does not know"),
        ("^node: exec$", "", "the nodes are hollow"),
        ("^(selector|tolerations) ", r"status: 403, not 500", _NO_500),
        ("^(selector|tolerations) ", r"reason: Forbidden, not $", _NO_500),
        ("^(selector|tolerations) ", r'message: pods "\S+" is forbidden: (.*), not \1$', _NO_500),
        ("^tolerations bad", r"is no list of tolerations, not ", "words: what is wrong, not what Go's decoder makes of it"),
        ("^limit bounds", r"must be less than or equal to (cpu|memory) limit of \S+, not ", "the limit is told"),
        ("^priority: value$", r"\bvalue\b.*, not .*\bValue\b", "the path as it is written"),
        ("^priority: pod (priority|class)$", r"pod updates may not change fields other than", "more fields may"),
        ("^(storage: class by update|resize: grow .*)$", r"and volumeAttributesClassName for bound claims", "one more field may"),
        ("^quota (scopes|selectors|objects)", r"Invalid value: (\[|\")", "values are told as JSON"),
        ("^quota selectors: invalid terminating-in$", r"must be 'Exist' (only )?", "words"),
    )
)
#: of several quotas that a request exceeds the real server names any
_ANY_QUOTA = re.compile(
    r'^message: pods "\S+" is forbidden: exceeded quota: (\S+), (.*), not pods "\S+" is forbidden: exceeded quota: (\S+), \2$'
)


def unexplained(name: str, found: list[str]) -> list[str]:
    """The differences of a step that no rule explains."""
    return [told for told in found if not _ANY_QUOTA.match(told) and not explained_by(name, told)]


def explained_by(name: str, told: str) -> set[int]:
    """The positions of the rules that explain a difference."""
    return {position for position, (step, difference, _) in enumerate(_NEWER) if step.search(name) and difference.search(told)}


RULES = frozenset(range(len(_NEWER)))
