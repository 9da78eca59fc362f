"""Count pattern rewrites and stop a pass whose patterns never end.

xDSL's `PatternRewriteWalker` applies patterns until nothing changes, with no bound, and passes
build their walkers themselves. Every change goes through `PatternRewriter`, which then sets
`has_done_action`: that attribute is the one place where all rewrites of all passes, ours and
xDSL's, can be counted. `rewrite_limit` makes it a property that counts against a budget kept in a
context variable; where no budget is set the property is a plain attribute, so it can stay installed
and threads do not disturb each other.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.pattern_rewriter import PatternRewriter

from ...dialects.errors import UserError

_FLAG = "has_done_action"

# Called as each rewrite begins, with its number from 1 and the rewriter.
Observer = Callable[[int, PatternRewriter], None]


@dataclass
class Budget:
    """The limit of rewrites, and how many were done."""

    limit: int  # most rewrites
    used: int = 0  # rewrites done
    observer: Observer | None = None  # called as each begins

    def spend(self, rewriter: PatternRewriter) -> None:
        """Count one rewrite.

        Raises: UserError where the limit is passed.
        """
        self.used += 1
        if self.used > self.limit:
            raise UserError(
                f"stopped after {self.limit} pattern rewrites",
                hint="patterns that undo each other? --max-rewrites sets the limit",
            )
        if self.observer is not None:
            self.observer(self.used, rewriter)


_budget: ContextVar[Budget | None] = ContextVar("isoform_rewrite_budget", default=None)


@contextmanager
def rewrite_limit(limit: int, observer: Observer | None = None) -> Generator[Budget]:
    """Count the pattern rewrites done in the block and stop at `limit`.

    One successful application of a pattern to an operation counts once.

    Raises: UserError where the limit is passed.
    """
    if not isinstance(PatternRewriter.__dict__.get(_FLAG), property):
        setattr(PatternRewriter, _FLAG, property(_get_flag, _set_flag))
    budget = Budget(limit, observer=observer)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def _get_flag(rewriter: PatternRewriter) -> bool:
    return rewriter.__dict__.get(_FLAG, False)


def _set_flag(rewriter: PatternRewriter, value: bool) -> None:
    budget = _budget.get()
    if value and budget is not None and not _get_flag(rewriter):
        budget.spend(rewriter)
    rewriter.__dict__[_FLAG] = value
