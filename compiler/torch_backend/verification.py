"""Decide whether two torch modules compute the same."""

from __future__ import annotations

from typing import Any

from ...dialects.errors import UserError
from ...dialects.program import Program, named
from ...passes.equivalence.compare import compare
from ...passes.equivalence.verdict import Verdict
from ..frontends.torch_export import import_module


def verify(module_a: Any, module_b: Any, args: Any, budget: float = 60.0, seed: int = 0) -> Verdict:
    """Compare two modules at every position of their results, for the shapes of `args`.

    Inputs and results correspond by position. Floats are taken as real numbers (docs/trust.md).

    Args:
        args: example inputs, a tensor or a tuple.
        budget: seconds; after them, what is not proved is unknown.

    Returns:
        A verdict; `kind` is `equal`, one of `equal-up-to-...`, `different` (with a witness) or
        `unknown`.

    Raises:
        UserError: a module cannot be imported, or the two have other inputs or results.
    """
    a, b = import_module(module_a, args), import_module(module_b, args)
    _name_as(a, b)
    return compare(a, b, seed=seed, budget=budget)


def _name_as(a: Program, b: Program) -> None:
    """Give b's inputs and outputs the names of a's."""
    for what, mine, theirs in (("inputs", a.inputs, b.inputs), ("results", a.outputs, b.outputs)):
        if list(mine.values()) != list(theirs.values()):
            raise UserError(
                f"the modules have other {what}",
                expected=", ".join(map(str, mine.values())),
                found=", ".join(map(str, theirs.values())),
            )
    b.main.arg_attrs, b.main.res_attrs = named(a.input_names), named(a.output_names)
