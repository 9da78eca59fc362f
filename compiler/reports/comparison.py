"""Compare two programs as `isoform verify` does: at their sizes, or at every size they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialects.program import Program
from ...dialects.shape_guards import symbols_of
from ...passes.equivalence import Verdict, compare
from ...passes.same_interface import check_comparable, check_same_interface
from ..frontends.models import require_static
from .lowered import as_lowered


def compared(
    first: Program,
    second: Program,
    *,
    seed: int,
    budget: float | None = None,
    precision: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict at the programs' sizes; at every size where both have symbolic dims.

    Args:
        budget: seconds; None for 60, for 600 at every size.
        precision: compare with the first one lowered so (lowered.py).

    Raises:
        UserError: inputs or outputs differ in names, dims or types; one program alone has symbolic
            dims.
    """
    first, second = with_sizes(first), with_sizes(second)
    if not (first.is_dynamic and second.is_dynamic):
        for program in (first, second):
            require_static(program)
        check_comparable(first, second)
        given = as_lowered(first, precision)
        return compare(given, second, seed=seed, budget=60.0 if budget is None else budget)
    from ...passes.equivalence.all_sizes import compare_at_all_sizes
    from ..frontends.program_family import family_of

    families = family_of(first), family_of(second)
    check_same_interface(*(family.symbolic for family in families))
    return compare_at_all_sizes(*families, seed=seed, budget=600.0 if budget is None else budget)


def with_sizes(program: Program) -> Program:
    """A program of IR with symbolic dims as one that is bound by shapes; others as they are."""
    if program.is_dynamic or not symbols_of(program.main):
        return program
    from ..frontends.symbolic_program import SymbolicProgram

    return SymbolicProgram(program)


def as_written(program: Program) -> Program:
    """The program with its symbols, where it has symbolic dims."""
    if not program.is_dynamic:
        return program
    from ..frontends.program_family import family_of

    return family_of(program).symbolic


__all__ = ["as_written", "compared", "with_sizes"]
