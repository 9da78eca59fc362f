"""Rewrite contractions as corrected mutants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.context import WeightContext
from ...dialects.errors import UserError, did_you_mean
from ...dialects.program import Program, main_of
from ...dialects.weights import Weights
from ...lowering.algebra_to_kernel import AlgebraToKernel
from ...lowering.targets import target_named
from ..cost import Costs
from ..derivation.by_hand import find_scope, replace_op
from ..derivation.lift import Lift, family, is_known, program_of_scopes, scope_ops
from ..derivation.search import is_contraction
from ..derivation.step import Step
from ..fuse_kernels import FuseKernels
from ..weights_only import weights_only
from .generate import MaskTest, Options
from .search import Candidate, Found, named_mutant, search_mutants

RULE = "mutate"
_TESTS: dict[str, MaskTest] = {"every": "every", "split-points": "split-points"}


@dataclass(frozen=True)
class AlgebraMutate(ModulePass):
    """Search partially equivalent programs for every contraction, and correct them.

    Rewrites a scope where the best corrected mutant is modelled to be faster by the factor `gain`
    (one below 1 lets in what is modelled slower, to be measured). Every mutant is proved equal to
    the scope once it is corrected. `budget` is in seconds for each distinct scope, `most` how many
    mutants are proved and priced. Costs are modelled for `target`. `test` finds the positions where
    a mutant is wrong: `every` one is compared, or PET's few at `split-points`, for comparison.
    With `at` and `mutant` the scope of that name becomes the mutant of that name, as a search wrote
    it down; nothing is priced.

    Before, a convolution of dilation 2:

        %y = algebra.scope (n: 1, f: 256, h: 14, w: 14) sum (c: 512, r: 3, s: 3)
               %x[n, c, h + 2 * r - 2, w + 2 * s - 2] * %k[f, c, r, s]

    After, a regular one of four images, one for each parity of row and column:

        %y.0 = algebra.scope (i0: 4, i1: 512, i2: 7, i3: 7)
                 %x[0, i1, 2 * i2 + i0 mod 2, 2 * i3 + i0 floordiv 2]
        %y.1 = algebra.scope (i0: 4, i1: 256, i2: 7, i3: 7) sum (k0: 512, k1: 3, k2: 3)
                 %y.0[i0, k0, i2 + k1 - 1, i3 + k2 - 1] * %k[i1, k0, k1, k2]
        %y = algebra.scope (i0: 1, i1: 256, i2: 14, i3: 14)
               %y.1[i2 mod 2 + 2 * (i3 mod 2), i1, i2 floordiv 2, i3 floordiv 2]
    """

    name = "algebra-mutate"
    depth: int = 4
    budget: float = 20.0
    most: int = 16
    gain: float = 1.05
    target: str = "cpu"
    test: str = "every"
    at: str = ""
    mutant: str = ""
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Mutate. Raises UserError if `test` is none, or no mutant has that name."""
        _mask_test(self.test)
        if self.mutant:
            _apply_named(op, self)
        else:
            mutate(op, self)


@dataclass(frozen=True)
class Mutated:
    """What was done to one scope, or why nothing was."""

    place: str
    before: float
    found: Found
    chosen: Candidate | None


def mutate(module: ModuleOp, options: AlgebraMutate) -> list[Mutated]:
    """Rewrite what gains, in place; every contraction that was looked at."""
    costs = Costs(target_named(options.target))
    known: dict[Scope, tuple[float, Found]] = {}
    done: list[Mutated] = []
    for op in scope_ops(module):
        constants = weights_only(main_of(module).body.block.ops)
        if op.result in constants:
            continue
        lift = Lift(module, constants=constants, positional=True)
        root = lift.scope(op)
        if not is_contraction(root):
            continue
        if root not in known:
            known[root] = _searched(op, root, options, costs)
        before, found = known[root]
        best = found.candidates[0] if found.candidates else None
        chosen = best if best is not None and best.seconds * options.gain < before else None
        done.append(Mutated(op.result.name_hint or "", before, found, chosen))
        if chosen is not None:
            (result,) = chosen.results
            replace_op(module, op, Step(RULE, result), dict(lift.values))
    return done


def replay(name: str, candidate: Candidate) -> str:
    """The pass that rewrites the scope of that name as a candidate."""
    return f'{AlgebraMutate.name}{{at="{name}" mutant="{candidate.mutant.name}"}}'


def _apply_named(module: ModuleOp, options: AlgebraMutate) -> None:
    op = find_scope(module, options.at)
    found = named_mutant([lifted(module, op).scope(op)], _options(op, options), options.mutant)
    if found is None:
        raise UserError(
            f"no mutant '{options.mutant}'", where=f"%{options.at}", hint="the name is the search's"
        )
    apply_to(module, op, found)


def lifted(module: ModuleOp, op: ScopeOp) -> Lift:
    """Canonical forms by position, so that ops alike are equal; the op itself is not among them."""
    known = weights_only(main_of(module).body.block.ops)
    return Lift(module, family(op), known, positional=True)


def apply_to(module: ModuleOp, op: ScopeOp, candidate: Candidate) -> None:
    """Compute an op by a candidate for the scope that it is."""
    lift = lifted(module, op)
    lift.scope(op)
    (result,) = candidate.results
    replace_op(module, op, Step(RULE, result), dict(lift.values))


def _options(op: ScopeOp, options: AlgebraMutate) -> Options:
    made = Options(
        depth=options.depth,
        seconds=options.budget,
        test=_mask_test(options.test),
        seed=options.seed,
    )
    return replace(made, **windows_of(op))


def _searched(
    op: ScopeOp, root: Scope, options: AlgebraMutate, costs: Costs
) -> tuple[float, Found]:
    made = _options(op, options)
    found = search_mutants([root], made, lambda s: modelled(s, costs), options.most)
    return modelled([root], costs), found


def _mask_test(name: str) -> MaskTest:
    found = _TESTS.get(name)
    if found is None:
        hint = did_you_mean(name, tuple(_TESTS)) or ", ".join(_TESTS)
        raise UserError(f"unknown mask test '{name}'", where="test", hint=hint)
    return found


def windows_of(op: ScopeOp) -> dict[str, tuple[int, ...]]:
    """The strides, dilations and groups worth trying: 1, and the steps that the op takes."""
    steps = {1}
    for read in op.reads():
        for index in read.index:
            steps |= {abs(c) for atom, c in index.terms if isinstance(atom, int)}
    few = tuple(sorted(s for s in steps if s <= 4))
    return {"strides": (1,), "dilations": few, "groups": (1,)}


def modelled(roots: Sequence[Scope], costs: Costs) -> float:
    """Modelled seconds of a program of scopes, as it would be lowered; of weights alone, none."""
    module = program_of_scopes(roots, is_known)
    context = WeightContext()
    AlgebraToKernel().apply(context, module)
    FuseKernels().apply(context, module)
    return costs.program(Program(module, Weights())).seconds


__all__ = [
    "RULE",
    "AlgebraMutate",
    "Mutated",
    "apply_to",
    "modelled",
    "mutate",
    "replay",
    "windows_of",
]
