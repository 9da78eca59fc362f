"""Check after each pass that a program still computes the same.

The equivalence engine compares the program with its state before the pass. Where it gives no
verdict, the float64 reference runs the first and the current state on the same drawn
inputs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.errors import UserError
from ...dialects.functions import MAIN, alone, functions_of, is_one_program
from ...dialects.program import Program, main_of, return_of
from ...dialects.types import Array
from ...dialects.weights import Weights
from ...passes.inline_calls import InlineCalls
from ..pass_manager import AfterPass, PassRun
from .differential import evaluate, first_difference

# Seconds for one comparison: a check after every pass must not take longer than the passes.
BUDGET = 10.0


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        difference: where the program differs from its earlier state; None where it does not.
        how: what the answer is based on, in words.
    """

    difference: str | None
    how: str


class EqualityCheck:
    """Remembers a program and compares later states with it.

    Args:
        weights: used by the reference; missing weights are drawn by name.
        budget: seconds for one comparison by the engine.

    Raises:
        UserError: the module is not a program.
    """

    def __init__(
        self,
        module: ModuleOp,
        weights: Weights | None = None,
        seed: int = 0,
        budget: float = BUDGET,
    ) -> None:
        main_of(module)
        return_of(module)
        self.weights = Weights() if weights is None else weights
        self.seed = seed
        self.budget = budget
        self._first = module.clone()
        self._last = self._first
        self._values: dict[str, Array] | None = None

    def check(self, module: ModuleOp) -> CheckResult:
        """Compare the module with the remembered program.

        Raises:
            UserError: neither the engine nor the reference can decide.
        """
        if self._last.is_structurally_equivalent(module):
            return CheckResult(None, "unchanged")
        answer = self._by_engine(module)
        if answer.difference is None:
            self._last = module.clone()
        return answer

    def _by_engine(self, module: ModuleOp) -> CheckResult:
        from ...passes.equivalence import compare  # only where something changed
        from ...passes.same_interface import check_same_interface

        before, after = (Program(m, self.weights) for m in (self._last, module))
        try:
            check_same_interface(before, after)
        except UserError as error:
            return CheckResult(str(error), "signature")
        try:
            verdict = compare(before, after, seed=self.seed, budget=self.budget)
        except UserError as error:
            return self._by_reference(module, str(error))
        if verdict.is_equal:
            return CheckResult(None, verdict.kind)
        found = verdict.difference
        if found is None:
            return self._by_reference(module, verdict.reason)
        was, now = found.values
        residues = "" if found.witness else " modulo a prime"
        place = f"output '{found.output}' at {list(found.position)}"
        return CheckResult(f"{place} was {was:.9g} and is {now:.9g}{residues}", "equivalence")

    def _by_reference(self, module: ModuleOp, reason: str) -> CheckResult:
        if self._values is None:
            self._values = evaluate(self._first, self.seed, self.weights)
        difference = first_difference(self._values, evaluate(module, self.seed, self.weights))
        return CheckResult(difference, f"not proved ({reason}), same results on drawn inputs")


def check_after_each_pass(
    module: ModuleOp, weights: Weights | None = None, say: bool = False
) -> AfterPass:
    """Return a function that compares the module, after a pass, with its earlier state.

    Each function that outlives the pass is compared, with its calls inlined.

    Args:
        say: whether to print on stderr what each answer is based on.

    Raises:
        UserError: the module is not a program.
    """
    watched = {name: EqualityCheck(m, weights) for name, m in _programs(module).items()}

    def check(run: PassRun, module: ModuleOp) -> None:
        for name, program in _programs(module).items():
            if name not in watched:
                continue
            answer = watched[name].check(program)
            of = "" if name == MAIN else f"@{name}: "
            if answer.difference is not None:
                text = f"{of}{answer.difference} [after pass '{run.name}']"
                raise UserError(text, where="--check")
            if say:
                print(f"check after {run.name}: {of}{answer.how}", file=sys.stderr)

    return check


def _programs(module: ModuleOp) -> dict[str, ModuleOp]:
    """The functions of a module by name, each as a program of its own, with its calls inlined."""
    if is_one_program(module):
        main_of(module)
        return {MAIN: module}
    copy = module.clone()
    InlineCalls().apply(Context(), copy)
    found: dict[str, ModuleOp] = {}
    for function in functions_of(copy):
        name = function.sym_name.data
        with alone(function) as program:
            found[name] = program.clone()
    return found


__all__ = ["CheckResult", "EqualityCheck", "check_after_each_pass"]
