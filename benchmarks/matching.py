"""How long it takes to find that nothing is to be rewritten: this engine beside onnxscript's default rewriter.

Both run 46 rules over chains of nodes in which none of them fires. onnxscript is not needed by anything else here, so
it runs in an environment of its own (benchmarks/environments.py), which is made where it is not there:

    python benchmarks/matching.py [--peer]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable

import onnx_ir as ir
from environments import python

SIZES = (500, 2_000, 20_000)
#: a peer whose time grows with the square of the size is not waited for again and again
PATIENCE = 30.0
#: the operators of the chains; every one of them is the root of some of the rules
CHAIN = ("Add", "Relu", "Mul", "Sigmoid", "Sub", "Tanh", "Max", "Abs")
RULES = 46


def model(size: int) -> ir.Model:
    """A chain of nodes, each reading the one before and, where it takes two operands, the chain's input."""

    def value(name: str) -> ir.Value:
        return ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2, 8]))

    source = last = value("x")
    nodes = []
    for number, operator in zip(range(size), itertools.cycle(CHAIN), strict=False):
        inputs = [last, source] if operator in ("Add", "Mul", "Sub", "Max") else [last]
        result = value(f"v{number}")
        nodes.append(ir.Node("", operator, inputs, outputs=[result], name=f"n{number}"))
        last = result
    return ir.Model(ir.Graph([source], [last], nodes=nodes, opset_imports={"": 18}, name="chain"), ir_version=10)


def patterns() -> str:
    """Rules about pairs of the chain's operators that never follow each other in it."""
    rules = []
    pairs = [(a, b) for a in CHAIN for b in CHAIN if CHAIN[CHAIN.index(a) - 1] != b]
    for number, (outer, inner) in enumerate(pairs[:RULES]):
        root = f"{outer}({inner}(a, c), b)" if outer in ("Add", "Mul", "Sub", "Max") else f"{outer}({inner}(a, c))"
        if inner not in ("Add", "Mul", "Sub", "Max"):
            root = root.replace("(a, c)", "(a)")
        names = sorted(set(re.findall(r"\b[abc]\b", root)))
        total = " + ".join(names)
        tests = ", ".join(f"{name}: f32[2]" for name in names)
        rules.append(f"rule r{number} stage simplify {{ y = {root} => y = Exp({total}) test {tests} }}")
    return "ruleset bench : onnx -> onnx opset 13..25\n" + "\n".join(rules)


def ours() -> Callable[[ir.Model], None]:
    """This engine with its rules compiled."""
    from nnrewrite.engine.check.checker import check
    from nnrewrite.engine.dialects import ops_files
    from nnrewrite.engine.passes.pass_list import convert_graph
    from nnrewrite.engine.rewrite.rules import RuleSet
    from nnrewrite.engine.syntax.parser import parse

    catalogue = ops_files.load()
    file = parse(patterns(), "bench.rules")
    mistakes = check([file], catalogue)
    assert not mistakes, mistakes
    rules = RuleSet([file], catalogue, 18)

    def run(chain: ir.Model) -> None:
        assert not convert_graph(chain.graph, rules).outcome.fired

    return run


def theirs() -> Callable[[ir.Model], None]:
    """onnxscript's default rewriter."""
    from onnxscript.rewriter import _DEFAULT_REWRITE_RULES, RewriteRuleSet  # type: ignore[import-not-found]

    rules = RewriteRuleSet(_DEFAULT_REWRITE_RULES)

    def run(chain: ir.Model) -> None:
        assert rules.apply_to_model(chain) == 0

    return run


def measure(run: Callable[[ir.Model], None], repeats: int = 7) -> dict[int, float]:
    """The least of some times of the processor, in seconds, for each size; the sizes take turns."""
    run(model(50))
    found: dict[int, float] = {}
    for _ in range(repeats):
        for size in SIZES:
            if found.get(size, 0.0) > PATIENCE / repeats:
                continue
            chain = model(size)
            started = time.process_time()
            run(chain)
            found[size] = min(found.get(size, math.inf), time.process_time() - started)
    return found


def main() -> None:
    """Measure, and print a table with the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="beside onnxscript")
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_peer:
        print(json.dumps(measure(theirs())))
        return
    own = measure(ours())
    peer: dict[int, float] = {}
    if arguments.peer:
        done = subprocess.run([python("onnxscript"), __file__, "--as-peer"], capture_output=True, text=True, check=True)
        peer = {int(size): seconds for size, seconds in json.loads(done.stdout).items()}
    print("| nodes | ours |" + (" onnxscript | ratio |" if peer else ""))
    print("|--:|--:|" + ("--:|--:|" if peer else ""))
    for size in SIZES:
        line = f"| {size:,} | {1000 * own[size]:.1f} ms |"
        if peer:
            line += f" {1000 * peer[size]:,.0f} ms | {peer[size] / own[size]:,.0f} |"
        print(line)
    print(f"\nFrom {SIZES[1]:,} to {SIZES[2]:,} nodes our time grows {own[SIZES[2]] / own[SIZES[1]]:.1f} times.")


if __name__ == "__main__":
    sys.exit(main())
