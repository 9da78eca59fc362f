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

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from ...dialects.errors import UserError

_FLAG = "has_done_action"
# The first rewrite after which a cycle is looked for, and over how many rewrites.
FIRST_MARK, WINDOW = 512, 32

State = tuple[object, ...]

# Called as each rewrite begins, with its number from 1 and the rewriter.
Observer = Callable[[int, PatternRewriter], None]


@dataclass
class Budget:
    """The limit of rewrites, and how many were done."""

    limit: int  # most rewrites
    used: int = 0  # rewrites done
    observer: Observer | None = None  # called as each begins

    def __post_init__(self) -> None:
        # Passes of a few rewrites are not watched; one that makes many looks twice as late again.
        self._next_mark = max(FIRST_MARK, self.limit // 25)
        self._marked = 0
        self._mark: State | None = None
        self._again, self._between = 0, False

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
        self._watch(rewriter)

    def _watch(self, rewriter: PatternRewriter) -> None:
        """Look for a cycle now and then: the module that comes again and again.

        Raises: UserError where it does.
        """
        if self.used == self._next_mark:
            self._mark, self._again, self._between = _state(rewriter), 0, False
            self._next_mark, self._marked = 2 * self.used, self.used
        elif self._mark is not None and self.used <= self._marked + WINDOW:
            if _state(rewriter) != self._mark:
                self._between = True
            elif self._between:
                self._again, self._between = self._again + 1, False
                if self._again == 2:
                    raise UserError(
                        f"stopped after {self.used} pattern rewrites: the module is again what it"
                        f" was {(self.used - self._marked) // 2} rewrites before",
                        hint="two patterns undo each other",
                    )
        else:
            self._mark = None


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


def _state(rewriter: PatternRewriter) -> State | None:
    """What the module is, in a form to compare; None while the rewriter is at no module."""
    op = rewriter._current_operation  # pyright: ignore[reportPrivateUsage]
    root = None if op is None else op.get_toplevel_object()
    if not isinstance(root, ModuleOp):
        return None
    numbers: dict[SSAValue, int] = {}
    rows: list[object] = [id(root)]
    for step in root.walk():
        for value in (*step.results, *(a for r in step.regions for b in r.blocks for a in b.args)):
            numbers[value] = len(numbers)
        operands = tuple(numbers.get(value, -1) for value in step.operands)
        types = tuple(result.type for result in step.results)
        given = (*step.properties.items(), *step.attributes.items())
        rows.append((step.name, operands, types, given))
    return tuple(rows)


def _get_flag(rewriter: PatternRewriter) -> bool:
    return rewriter.__dict__.get(_FLAG, False)


def _set_flag(rewriter: PatternRewriter, value: bool) -> None:
    budget = _budget.get()
    if value and budget is not None and not _get_flag(rewriter):
        budget.spend(rewriter)
    rewriter.__dict__[_FLAG] = value
