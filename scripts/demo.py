"""`make demo`: optimise ResNet-18, measure it, and check it against float64.

Ends in under three minutes on two cores. `--model` and `--seconds` change the model and the time.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

import isoform
from isoform.compiler.api import improve
from isoform.compiler.commands.bench import bench, format_bench
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.commands.subcommands import table
from isoform.compiler.targets.levels import LEVELS, lower_to
from isoform.dialects import reference
from isoform.dialects.program import Program


def ops_by_level(before: Program, after: Program) -> list[list[str]]:
    """For the input, and the result at each level: how many ops, and the most frequent."""
    levels = [(level, lower_to(after, level)) for level in LEVELS]
    return [ops_of(name, program) for name, program in [("graph, as loaded", before), *levels]]


def ops_of(name: str, program: Program) -> list[str]:
    """One row of the table."""
    ops = Counter(op.name for op in program.main.body.block.ops)
    for data in ("graph.weight", "graph.constant", "func.return"):
        ops.pop(data, None)
    common = ", ".join(f"{n} {op.partition('.')[2]}" for op, n in ops.most_common(5))
    return [name, str(sum(ops.values())), common]


def optimise(program: Program, seconds: float) -> isoform.Program:
    """Optimise for the cpu and print what was done."""
    # A third of the budget is for comparing: on a busy machine, too, that is enough.
    better = isoform.optimize(program, target="cpu", budget=3 * seconds)
    report = better.report
    counts = Counter(rewrite["rule"] for rewrite in report["rewrites"])
    rules = ", ".join(f"{rule} {n}" for rule, n in counts.items()) or "none"
    before, after = (report["cost"][key] * 1e3 for key in ("before", "after"))
    print(f"rewrites: {rules}")
    print(f"cost ({report['cost']['kind']}): {before:.3f} ms -> {after:.3f} ms")
    if report["message"]:
        print(report["message"])
    return better


def greatest_error(program: Program) -> float:
    """Greatest error of a native run against float64, relative to the greatest magnitude."""
    feeds = draw_inputs(program)
    found = isoform.compile(improve(program))(**feeds)
    expected = reference.run(program, feeds)
    errors = [
        float(np.abs(found[name] - expected[name]).max() / np.abs(expected[name]).max())
        for name in expected
    ]
    return max(errors)


def main() -> None:
    """Print the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="zoo:resnet18")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each measurement (20)")
    arguments = parser.parse_args()
    started = time.perf_counter()
    program = isoform.load(arguments.model)
    print(f"== isoform optimize {arguments.model}")
    better = optimise(program, arguments.seconds)
    print(table(["level", "ops", "most frequent"], ops_by_level(program, better)))
    print(f"== isoform bench {arguments.model} --against onnxruntime")
    found = bench(
        program, ["onnxruntime"], threads=1, seconds=arguments.seconds, name=arguments.model
    )
    print(format_bench(found))
    print(f"greatest error against float64: {greatest_error(program):.1e} of the greatest output")
    print(f"done in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
