"""`--pipeline`: what a user's passes make is compared with the input before any search."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...passes.equivalence import Verdict, compare


@dataclass(frozen=True)
class UserPasses:
    """Passes that run before the searches.

    Attributes:
        pipeline: as `isoform-opt -p` takes it; empty where there are none.
        allow_unproved: take what they make also where the comparison decides nothing.
        seconds: the most that the comparison takes.
    """

    pipeline: str
    allow_unproved: bool
    seconds: float

    def require_equal(self, given: Program, made: Program) -> None:
        """Refuse what they made of a program, where it may compute something else.

        Raises:
            UserError: it computes something else, or nobody knows whether it does.
        """
        verdict = compared(given, made, self.seconds)
        if verdict is None or (verdict.kind == "unknown" and self.allow_unproved):
            return
        if verdict.kind == "unknown":
            raise UserError(
                f"--pipeline '{self.pipeline}': {verdict.reason}",
                expected="a program that is proved to compute the same",
                hint="--allow-unproved takes it as it is",
            )
        raise UserError(
            f"--pipeline '{self.pipeline}' makes a program that computes something else",
            hint="isoform bisect finds the first pass and rewrite that does",
        )


def compared(given: Program, made: Program, seconds: float) -> Verdict | None:
    """The verdict on what a user's code made of a program; None where it computes the same."""
    if given.module.is_structurally_equivalent(made.module):
        return None
    verdict = compare(given, made, budget=seconds)
    return None if verdict.is_equal else verdict
