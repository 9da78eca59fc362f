"""`--pipeline`: what a user's passes make is compared with the input before any search."""

from __future__ import annotations

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...passes.equivalence import compare


def require_equal(
    given: Program, made: Program, pipeline: str, allow_unproved: bool, seconds: float
) -> None:
    """Refuse a program that a user's passes changed in meaning.

    Args:
        allow_unproved: take it also where the comparison decides nothing.
        seconds: of the comparison.

    Raises:
        UserError: it computes something else, or nobody knows whether it does.
    """
    if given.module.is_structurally_equivalent(made.module):
        return
    verdict = compare(given, made, budget=seconds)
    if verdict.is_equal or (verdict.kind == "unknown" and allow_unproved):
        return
    if verdict.kind == "unknown":
        raise UserError(
            f"--pipeline '{pipeline}': {verdict.reason}",
            expected="a program that is proved to compute the same",
            hint="--allow-unproved takes it as it is",
        )
    raise UserError(
        f"--pipeline '{pipeline}' makes a program that computes something else",
        hint="isoform bisect finds the first pass and rewrite that does",
    )
