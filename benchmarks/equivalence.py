"""Measure the equivalence engine: one convolution at all positions, whole models, CPU seconds.

    python benchmarks/equivalence.py                 everything, about two minutes
    python benchmarks/equivalence.py --conv          the convolution alone
    python benchmarks/equivalence.py --models bert-base --json

The convolution [1,512,14,14] x [256,512,3,3] is compared with its form as nine matrix products that
are added at offsets, and with the same where the two taps of the kernel are exchanged. Targets: the
field check at most 0.3 CPU seconds, the symbolic one with shrinking at most 5 ms. A model is
compared with what `optimize` makes of it, lowered to kernels as well, and with the model that
onnxruntime writes with its offline optimiser (where it is installed). Targets: 60 s and 4 GiB each.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import f32

from isoform.compiler import api, zoo
from isoform.compiler.search.optimizer import improve
from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import Scope
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.passes.equivalence import compare, symbolic
from isoform.passes.equivalence.error_bound import Measurer, lane_error, lanes_for, miss
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.inline import Inliner
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.equivalence.shrink import shrink
from isoform.passes.equivalence.translate import Translator, whole
from isoform.passes.equivalence.verdict import Verdict

MODELS = ("resnet50", "bert-base")
REPEATS = 7
DATA, KERNEL, OUT = (1, 512, 14, 14), (256, 512, 3, 3), (1, 256, 14, 14)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--conv", action="store_true", help="the convolution alone")
    parser.add_argument("--models", nargs="*", help="zoo models (default: resnet50 bert-base)")
    parser.add_argument("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    found = [] if parsed.models else list(convolution())
    if not parsed.conv:
        for name in parsed.models or MODELS:
            found += list(model(name))
    if parsed.json:
        print(json.dumps(found))
        return
    for row in found:
        print("  ".join(f"{key} {_shown(value)}" for key, value in row.items()))


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# --- one convolution ------------------------------------------------------------------------------


def convolution() -> Sequence[dict[str, Any]]:
    """Both checks of the convolution against its form by matrix products, right and wrong."""
    direct = _output(_program(False, None))
    rows: list[dict[str, Any]] = []
    for name, swapped in (("equal", False), ("taps exchanged", True)):
        other = _output(_program(True, swapped))
        seconds, answer = timed(lambda other=other: _symbolic(direct, other))
        row = {"conv": name, "symbolic_cpu_ms": 1e3 * seconds, "symbolic": answer}
        seconds, (answer, lanes, bound) = timed(lambda other=other: _field(direct, other))
        row |= {"field_cpu_s": seconds, "field": answer, "lanes": lanes, "bound": bound}
        rows.append(row)
    return rows


def _program(by_products: bool, swapped: bool | None) -> Program:
    b = GraphBuilder()
    x, w = Source(b.input("x", DATA)), Source(b.input("w", KERNEL))
    build = ScopeBuilder()
    n, f, h, v, c, r, s = iterators(7)
    if not by_products:
        made = build.scope(
            tensor(OUT, f32), x[n, c, h + r - 1, v + s - 1] * w[f, c, r, s], KERNEL[1:]
        )
    else:
        taps = tensor((3, 3, 256, 14, 14), f32)
        r1, s1, f1, h1, v1, c1 = iterators(6)
        product = build.scope(taps, x[0, c1, h1, v1] * w[f1, c1, r1, s1], [512])
        r, s = iterators(2, 4)
        first, second = (s, r) if swapped else (r, s)
        made = build.scope(
            tensor(OUT, f32), product[first, second, f, h + r - 1, v + s - 1], [3, 3]
        )
    for op in build.ops:
        b.append(op)
    b.output("y", made.value)
    return b.build()


def _output(program: Program) -> Scope:
    translator = Translator(lambda op: _no_weight(op.key))
    (made,) = translator.program(program, program.input_names)
    return whole(made)


def _no_weight(name: str) -> Scope:
    raise AssertionError(name)


def _symbolic(a: Scope, b: Scope) -> bool | None:
    inliner = Inliner()
    first, second = inliner.inline_scope(a), inliner.inline_scope(b)
    small_a, small_b, small = shrink(first, second, a.shape)
    return symbolic.compare(small_a, small_b, small)


def _field(a: Scope, b: Scope) -> tuple[bool, int, float]:
    measurer = Measurer()
    measures = [measurer.source(a), measurer.source(b)]
    lanes = lanes_for(measures, 1e-12)
    assert lanes is not None
    evaluator = Evaluator(Residues(draw_primes(lanes, 0), 0))
    same = bool(evaluator.field.equal(evaluator.value(a), evaluator.value(b)).all())
    return same, lanes, miss(measures, lanes, lane_error(measures))


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Median CPU seconds of some runs (all threads), and the last answer."""
    taken: list[float] = []
    answer: Any = None
    for _ in range(REPEATS):
        start = time.process_time()
        answer = run()
        taken.append(time.process_time() - start)
    return sorted(taken)[len(taken) // 2], answer


# --- whole models ---------------------------------------------------------------------------------


def model(name: str) -> Sequence[dict[str, Any]]:
    """A model against what our optimiser, our lowering and onnxruntime make of it."""
    program = zoo.build(name)
    better = improve(program)
    pairs: list[tuple[str, Program]] = [
        ("kernels", lower_to(program, "kernel")),
        ("optimised", better),
        ("optimised kernels", lower_to(better, "kernel")),
    ]
    if (other := _by_onnxruntime(program)) is not None:
        pairs.append(("onnxruntime", other))
    return [_judged(name, what, program, other) for what, other in pairs]


def _judged(name: str, what: str, a: Program, b: Program) -> dict[str, Any]:
    start, wall = time.process_time(), time.perf_counter()
    verdict: Verdict = compare(a, b)
    return {
        "model": name,
        "against": what,
        "verdict": verdict.kind,
        "cpu_s": time.process_time() - start,
        "wall_s": time.perf_counter() - wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "bound": verdict.error_bound,
        "ulps": verdict.largest_ulps,
        "methods": dict(verdict.methods),
        "reason": verdict.reason or verdict.text() * (not verdict.is_equal),
    }


def _by_onnxruntime(program: Program) -> Program | None:
    """The model as onnxruntime's offline optimiser writes it (basic rewrites, standard ops)."""
    try:
        import onnxruntime
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "source.onnx", Path(folder) / "result.onnx"
        api.save(program, source)
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(result)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        loaded = api.load(result)
        for key in loaded.weights:
            loaded.weights[key]  # the folder goes away
        return loaded


if __name__ == "__main__":
    main()
