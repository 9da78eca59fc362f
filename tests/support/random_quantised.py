"""Random settings of the kernels of quantised ops, compiled, against onnxruntime.

    PYTHONPATH=tests python -m support.random_quantised [--count N] [--seed S] [OP ...]

Of each op N settings are drawn from the seeds S, S + 1, ... and compiled; weights of products are
constants, as integer kernels want them. A line for each op says how many agree (bit for bit, or by
one step where ONNX leaves the steps open), how many onnxruntime has no kernel for, and what
differs.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from support.random_nodes import quantised
from support.random_nodes.contributed import CONTRIBUTED, differences, with_constant_weights
from support.random_nodes.draw import Draw
from support.random_nodes.judge import verdict

PRODUCTS = ("QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger")
CONVERSIONS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
FUSED = ("QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits")


def found(op: str, seed: int) -> str:
    """What comparing one setting gives."""
    if op in CONTRIBUTED:
        draw, steps = CONTRIBUTED[op]
        return differences(draw(Draw(seed)), "compiled", steps)
    draw = with_constant_weights(op) if op in PRODUCTS else quantised.GENERATORS[op]
    return verdict(draw(Draw(seed)), "compiled")


def main() -> None:
    """Compare, and print a line for each op."""
    parser = argparse.ArgumentParser(description=__doc__)
    ops = (*PRODUCTS, *CONVERSIONS, *FUSED)
    parser.add_argument("ops", nargs="*", metavar="OP", help=f"of {', '.join(ops)}")
    parser.add_argument("--count", type=int, default=2000, help="settings of each op")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each op")
    args = parser.parse_args()
    for op in args.ops or ops:
        counts: Counter[str] = Counter()
        end, wrong = time.monotonic() + args.seconds, list[str]()
        for seed in range(args.seed, args.seed + args.count):
            if time.monotonic() > end:
                break
            said = found(op, seed)
            kind = next((k for k in ("agrees", "no kernel") if said.startswith(k)), "differs")
            counts[kind] += 1
            wrong += [f"  seed {seed}: {said}"] if kind == "differs" else []
        print(f"{op}: {dict(counts)}", *wrong, sep="\n", flush=True)


if __name__ == "__main__":
    main()
