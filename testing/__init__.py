"""Tools for authors of passes, lowerings, rules and kernels; isoform itself uses none of them.

    random_programs     random programs with inputs, and the reduction of failing ones
    differential_check  compare a program's results before and after a pass
    cuda_emulator       run CUDA kernels on the CPU, every access checked (docs/cuda.md)
    per_op, peaks       the time of each kernel, against what the cores can do
    derivation_cases    the operators for which EinNet's paper derives programs
    derivation_tree     how many nodes its search would visit without interning
    tensat_rules        TENSAT's rule files as rules of isoform
    property_checks     properties and facts of the provers, by execution

Example:
    from isoform.testing import Agreement, random_graph, random_inputs, reduce

    program = random_graph(seed=7, ops=12)
    inputs = random_inputs(program, seed=7)
    small = reduce(program, fails)  # fails: Callable[[Program], bool]
"""

from ..compiler.checks.differential import differential_check
from .random_programs import (
    FAMILIES,
    Agreement,
    Mismatch,
    random_graph,
    random_inputs,
    random_scope_program,
    random_weights,
    reduce,
    write_reproducer,
)

__all__ = [
    "FAMILIES",
    "Agreement",
    "Mismatch",
    "differential_check",
    "random_graph",
    "random_inputs",
    "random_scope_program",
    "random_weights",
    "reduce",
    "write_reproducer",
]
