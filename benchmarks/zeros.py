"""Models whose inputs turn out to have no elements, which their files do not tell, beside the interpreter.

    python -m nnrewrite.benchmarks.zeros --cases 2

Of each rule that the interpreter can run some models are drawn from its test; each extent of each operand is unknown to
the conversion in turn, and 0 in the run. Prints how many there were, and each that differs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from nnrewrite.fuzz import odd_models
from nnrewrite.fuzz.cases import draw
from nnrewrite.fuzz.choices import Choices
from nnrewrite.fuzz.finding import End, Finding, Rejected
from nnrewrite.fuzz.oracle import Oracle
from nnrewrite.fuzz.rule_sets import Options, list_stacks
from nnrewrite.fuzz.subjects import Subject
from nnrewrite.verify import Interpreter

#: what the interpreter does not take is no model
UNTAKEN = "not taken by the interpreter"


def judge(subject: Subject, oracle: Oracle, cases: int, seed: int) -> Iterator[tuple[str, Finding | None]]:
    """Each model in a line, and what came of it."""
    for turn in range(cases):
        try:
            case = draw(Choices.make_seeded(f"{seed}/{subject.name}/{turn}", turn), subject, oracle)
        except Rejected:
            continue
        if len(case.steps) != 1 or case.steps[0].meaning or case.steps[0].graphs:
            continue
        for variant in odd_models.list_empty_variants(case.steps[0]):
            odd = odd_models.change_step(case, variant, oracle)
            yield odd.steps[0].describe(), oracle.judge(odd) if odd.taken else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2, help="models of each rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the names of rules")
    asked = parser.parse_args()
    stack = list_stacks(Options())[0]
    counts: Counter[str] = Counter()
    with Interpreter() as interpreter:
        oracle = Oracle(interpreter, stack.pack.catalogue, stack.rules)
        for subject in stack.trials:
            if not odd_models.is_suitable(subject) or asked.only not in subject.name:
                continue
            assert isinstance(subject, Subject)
            for model, found in judge(subject, oracle, asked.cases, asked.seed):
                counts[UNTAKEN if found is None else found.end.value] += 1
                if found is not None and found.end is not End.PASSED:
                    reason = " ".join(found.reason.split())[-300:]
                    print(f"{subject.name}: {model}: {found.end.value}: {reason}", flush=True)
    print(", ".join(f"{count} {end}" for end, count in counts.most_common()))


if __name__ == "__main__":
    main()
