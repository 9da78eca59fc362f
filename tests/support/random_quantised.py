"""Random settings of the kernels of quantised ops, compiled, against onnxruntime.

    PYTHONPATH=tests python -m support.random_quantised [--count N] [--seed S] [--out F] [OP ...]

Of each op N settings are drawn from the seeds S, S + 1, ... and compiled; weights of products are
constants in two of three, as integer kernels want them. A line for each op says how many agree (bit
for bit, or by one step where ONNX leaves the steps open), how many onnxruntime has no kernel for,
and what differs. With `--out` answers are kept in a file, and not computed again.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from support.random_nodes import quantised
from support.random_nodes.contributed import CONTRIBUTED, differences, with_constant_weights
from support.random_nodes.draw import Draw
from support.random_nodes.judge import verdict

PRODUCTS = ("QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger")
CONVERSIONS = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
FUSED = ("QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits")
KINDS = ("agrees", "no kernel")


def found(op: str, seed: int) -> str:
    """What comparing one setting gives."""
    if op in CONTRIBUTED:
        draw, steps = CONTRIBUTED[op]
        return differences(draw(Draw(seed)), "compiled", steps)
    constant = op in PRODUCTS and seed % 3
    draw = with_constant_weights(op) if constant else quantised.GENERATORS[op]
    return verdict(draw(Draw(seed)), "compiled")


def answers(file: Path | None) -> dict[tuple[str, int], str]:
    """What a file holds: a line is an op, a seed and what was said."""
    if file is None or not file.exists():
        return {}
    lines = [line.split(" ", 2) for line in file.read_text().splitlines()]
    return {(op, int(seed)): said for op, seed, said in lines}


def counted(op: str, known: Mapping[tuple[str, int], str]) -> str:
    """How many settings of an op gave what, and what differs."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for (_, seed), said in sorted(item for item in known.items() if item[0][0] == op):
        kind = next((k for k in KINDS if said.startswith(k)), "differs")
        counts[kind] += 1
        wrong += [f"  seed {seed}: {said}"] if kind == "differs" else []
    return "\n".join([f"{op}: {dict(counts)}", *wrong])


def main() -> None:
    """Compare, and print a line for each op."""
    parser = argparse.ArgumentParser(description=__doc__)
    ops = (*PRODUCTS, *CONVERSIONS, *FUSED)
    parser.add_argument("ops", nargs="*", metavar="OP", help=f"of {', '.join(ops)}")
    parser.add_argument("--count", type=int, default=2000, help="settings of each op")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each op")
    parser.add_argument("--out", type=Path, help="a file of answers, read first and added to")
    args = parser.parse_args()
    known = answers(args.out)
    for op in args.ops or ops:
        end = time.monotonic() + args.seconds
        for seed in range(args.seed, args.seed + args.count):
            if time.monotonic() > end:
                break
            if (op, seed) in known:
                continue
            known[op, seed] = said = " ".join(found(op, seed).split())
            if args.out is not None:
                with args.out.open("a") as file:
                    file.write(f"{op} {seed} {said}\n")
        print(counted(op, known), flush=True)


if __name__ == "__main__":
    main()
