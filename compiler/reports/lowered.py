"""A source program with its precision lowered as a certificate says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialects.errors import UserError
from ...dialects.floats import Label
from ...dialects.program import Program
from ...passes.precision import RULE
from ..pass_manager import make_passes
from ..targets.levels import run_passes
from .float_policy import floats_of


def as_lowered(source: Program, precision: Mapping[str, Any] | None) -> Program:
    """The source with its precision lowered as an entry says; itself without one.

    Raises:
        UserError: other passes than rewrites of ours and `lower-precision` are named there.
    """
    if precision is None:
        return source
    passes = make_passes(precision["passes"])
    for pass_ in passes:
        floats = floats_of(pass_)
        if pass_.name != RULE and (floats is None or floats.label is Label.VALUES):
            raise UserError(f"pass '{pass_.name}' is no part of lowering a precision")
    lowered = source.clone()
    run_passes(lowered, passes)
    return lowered


__all__ = ["as_lowered"]
