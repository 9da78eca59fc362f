"""Find the first pass, and in it the first rewrite, after which a program differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.weights import Weights
from ..pass_manager import default_limit, run_pipeline
from .equality_check import EqualityCheck
from .rewrite_limit import rewrite_limit
from .rewrite_recorder import Rewrite, describe
from .verify_module import verify_module


@dataclass(frozen=True)
class Culprit:
    """Where a program first goes wrong.

    Attributes:
        index: the pass's place in the pipeline, from 1.
        difference: what differs after it.
        rewrites: how many the pass did; changes made without pattern rewrites are not counted.
        first, last: range of numbers, from 1, that holds the wrong rewrite; both are 0 where the
            wrong change was not a rewrite.
        rule, place: of rewrite `first`, where the range has one element.
    """

    pass_name: str
    index: int
    difference: str
    rewrites: int = 0
    first: int = 0
    last: int = 0
    rule: str = ""
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {"pass": self.pass_name, **{k: v for k, v in vars(self).items() if k != "pass_name"}}

    def text(self) -> str:
        """One line."""
        head = f"pass {self.index} '{self.pass_name}'"
        if self.last == 0:
            return f"{head}, as a whole (its changes are not counted rewrites): {self.difference}"
        if self.first != self.last:
            span = f"rewrites {self.first} to {self.last} of {self.rewrites}"
            return f"{head}, {span} (the states between are invalid): {self.difference}"
        rule = f", rule {self.rule}" if self.rule else ""
        which = f"rewrite {self.first} of {self.rewrites}{rule}, at {self.place}"
        return f"{head}, {which}: {self.difference}"


def bisect(
    program: Program,
    passes: Sequence[ModulePass],
    context: Context,
    seed: int = 0,
    budget: float = 20.0,
) -> Culprit | None:
    """Run passes one by one and find the first rewrite that changes what the program computes.

    The program is not changed. Bisection over the wrong pass's rewrites runs the pass again with
    fewer of them. The state before the rewrite found equals the program; the state after does
    not.

    Args:
        context: with the program's weights, where a pass needs them.
        budget: seconds for one comparison.

    Returns:
        None where every pass keeps the program.

    Raises:
        UserError: a pass fails or leaves an invalid program; equality cannot be checked at all.
    """
    state = program.module.clone()
    check = EqualityCheck(state, program.weights, seed, budget)
    for index, pass_ in enumerate(passes, start=1):
        before = state.clone()
        (run,) = run_pipeline(state, [pass_], context)
        difference = check.check(state).difference
        if difference is not None:
            search = _Search(before, pass_, context, program.weights, seed, budget)
            return search.culprit(index, run.rewrites, difference)
    return None


class _StopError(BaseException):
    """Stop a pass when a rewrite begins; no `except Exception` on the way catches it."""


@dataclass
class _Search:
    """Runs one pass up to a given number of rewrites."""

    before: ModuleOp
    pass_: ModulePass
    context: Context
    weights: Weights
    seed: int
    budget: float

    def culprit(self, index: int, rewrites: int, difference: str) -> Culprit:
        """Find the first wrong rewrite of a pass that changes the result."""
        name = self.pass_.name
        low, high = 0, rewrites  # after `low` rewrites equal, after `high` not
        while high - low > 1:
            found = self._decided(low, high)
            if found is None:
                return Culprit(name, index, difference, rewrites, low + 1, high)
            number, text = found
            if text is None:
                low = number
            else:
                high, difference = number, text
        if high == 0 or (high == rewrites and not self._is_rewrite(high)):
            return Culprit(name, index, difference, rewrites)
        last = self._run(high)[1]
        return Culprit(name, index, difference, rewrites, high, high, last.rule, last.place)

    def _is_rewrite(self, number: int) -> bool:
        """Whether the program differs already when the last rewrite is done.

        If not, the pass changes it afterwards, by other means.
        """
        return self._difference(number) is not None

    def _decided(self, low: int, high: int) -> tuple[int, str | None] | None:
        """A number of rewrites in the range, as near the middle as possible, with a valid state."""
        middle = (low + high) // 2
        for number in sorted(range(low + 1, high), key=lambda n: abs(n - middle)):
            try:
                return number, self._difference(number)
            except UserError:
                continue  # in the middle of a larger change the module may be invalid
        return None

    def _difference(self, number: int) -> str | None:
        module, _ = self._run(number)
        verify_module(module)
        return (
            EqualityCheck(self.before, self.weights, self.seed, self.budget)
            .check(module)
            .difference
        )

    def _run(self, number: int) -> tuple[ModuleOp, Rewrite]:
        """The program after `count` rewrites of the pass, and the last of them."""
        module, last = self.before.clone(), Rewrite("", "main")

        def observe(count: int, rewriter: PatternRewriter) -> None:
            nonlocal last
            if count > number:
                raise _StopError
            if count == number:
                last = describe(rewriter)

        try:
            with rewrite_limit(default_limit(module) + number, observe):
                self.pass_.apply(self.context, module)
        except _StopError:
            pass
        return module, last
