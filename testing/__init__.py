"""Tools for whoever writes a pass, a lowering, a rule or a kernel; isoform itself uses none.

    random_programs     programs drawn from a seed, their inputs, and what makes a failing one small
    differential_check  compare what a program computes before and after a pass
    cuda_emulator       run CUDA kernels on the CPU, every access checked (docs/cuda.md)
    per_op, peaks       the time of each kernel beside what the cores can do
    derivation_cases    the operators that EinNet's paper derives programs for
    derivation_tree     how many nodes its search would visit without interning
    tensat_rules        TENSAT's rule files as rules of ours
    property_checks     properties and facts of the provers, by execution

Example:
    from isoform.testing import Agreement, random_graph, random_inputs, reduce

    program = random_graph(seed=7, ops=12)
    inputs = random_inputs(program, seed=7)
    small = reduce(program, fails)  # fails: Callable[[Program], bool]
"""

from ..compiler.differential import differential_check
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
