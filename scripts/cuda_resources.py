"""Compile a model's CUDA kernels without a GPU and list the resources of each.

    python scripts/cuda_resources.py MODEL [--target h100]

One line for each kernel: registers, bytes spilled, bytes of stack and shared memory, threads per
block; then the problems of any kernel. Exit 1 if there are some. Needs the extra `cuda-compile`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import isoform
from isoform.compiler.targets.levels import place
from isoform.dialects.errors import UserError
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.compile import architecture_of, compile_kernels


def main(arguments: Sequence[str]) -> int:
    """Print the table; 0 if every kernel fits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", metavar="MODEL", help="FILE.onnx, FILE.mlir or zoo:NAME")
    parser.add_argument("--target", default="h100")
    parsed = parser.parse_args(arguments)
    try:
        program = cuda_program(place(isoform.load(parsed.model), target="cuda"), with_weights=False)
        cubins = compile_kernels(program.kernels, architecture_of(parsed.target))
    except UserError as error:
        print(f"cuda_resources: {error}", file=sys.stderr)
        return 1
    print("registers  spilled  stack  shared  threads  kernel")
    for c in cubins:
        numbers = (c.spill_bytes, c.stack_bytes, c.shared_bytes, c.kernel.threads)
        columns = "  ".join(f"{n:>{w}}" for n, w in zip(numbers, (7, 5, 6, 7), strict=True))
        print(f"{c.registers:>9}  {columns}  {c.kernel.name}")
    wrong = [f"{c.kernel.name}: {problem}" for c in cubins for problem in c.problems()]
    print("\n".join(wrong) or f"all {len(cubins)} kernels fit")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
