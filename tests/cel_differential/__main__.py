"""Ask the real server, compare, and record."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from tests.cel_differential import ask, compare, expressions

RECORDED = Path(__file__).parent.parent / "apiserver" / "cel" / "recorded.json"
_BATCH = 60  # rules in one definition: an object's rules may cost 10,000,000 together


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--token", default="admin-token")
    arguments.add_argument("--record", action="store_true")
    arguments.add_argument("--random", type=int, default=0, help="so many random expressions in place of the listed ones")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--costs", action="store_true", help="compare the estimated costs, too")
    options = arguments.parse_args()
    server = ask.Server(options.server, options.token)
    source = random.Random(options.seed)
    asked = [expressions.generate(source) for _ in range(options.random)] if options.random else expressions.listed()
    asked = list(dict.fromkeys(asked))
    answers: dict[str, str] = {}
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        refused = ask.compile_answers(server, [compare.rule(e) if compare.compiles(e) else e for e in batch])
        good = []
        for index, expression in enumerate(batch):
            if refused.get(index, "").startswith("estimated"):
                continue
            if index in refused and not refused[index].startswith("cel expression must evaluate"):
                answers[expression] = refused[index]
            elif not compare.compiles(expression):
                answers[expression] = "compiles"
            else:
                good.append(expression)
        costly = ask.compile_answers(server, [compare.rule(e) for e in good])
        good = [e for index, e in enumerate(good) if index not in costly]
        if good:
            for expression, answer in zip(good, ask.evaluation_answers(server, good, f"evals{options.seed}x{start}"), strict=True):
                answers[expression] = answer
    wrong = 0
    for expression, answer in answers.items():
        ours = compare.ours(expression)
        if not compare.same(answer, ours):
            wrong += 1
            print(f"{expression!r}\n  server: {answer!r}\n  ours:   {ours!r}")
    print(f"{len(answers)} asked, {wrong} differ")
    if options.costs:
        costs(server, asked)
    if options.record:
        kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        RECORDED.write_text(json.dumps({**kept, **answers}, indent=0, ensure_ascii=False) + "\n")


def costs(server: ask.Server, asked: list[str]) -> None:
    """Compare estimates: a rule must be taken where ours says it just fits, and refused one item further."""
    rules = [compare.rule(e) for e in asked if not compare.ours(e).startswith(("compilation", "program"))]
    estimates = [compare.estimate(rule) for rule in rules]
    pairs = [(rule, cost) for rule, cost in zip(rules, estimates) if 0 < cost <= ask.RULE_LIMIT // 2]
    wrong = 0
    for start in range(0, len(pairs), 20):
        batch = pairs[start : start + 20]
        fits = [ask.RULE_LIMIT // cost for _, cost in batch]
        below = ask.refused_for_cost(server, [rule for rule, _ in batch], fits)
        above = ask.refused_for_cost(server, [rule for rule, _ in batch], [count + 1 for count in fits])
        for (rule, cost), early, late in zip(batch, below, above):
            if early or not late:
                wrong += 1
                print(f"estimate of {rule!r}: ours {cost}, the server's is {'more' if early else 'less'}")
    print(f"{len(pairs)} estimates asked, {wrong} differ")


if __name__ == "__main__":
    main()
