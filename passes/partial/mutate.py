"""Rewrite contractions as corrected mutants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.context import WeightContext
from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import GUARDED, Floats
from ...dialects.program import Program, main_of
from ...dialects.weights import Weights
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel import AlgebraToKernel
from ...lowering.targets import target_named
from ..copies.algebra_gather_sums import added_contractions, collect_contractions
from ..cost.costs import Costs
from ..derivation.apply_steps import find_scope
from ..derivation.isolate import isolate_all
from ..derivation.lift import is_known, name_apart, program_of_scopes, scope_names, scope_ops
from ..derivation.price import ScopePrices
from ..derivation.search import is_contraction
from ..fusion.fuse_kernels import FuseKernels
from ..subprograms.find import groups
from .alternatives import DEPTH, PASS, Deriver, Mutation
from .apply import apply_to, lifted, windowed
from .generate import MaskTest, Options
from .rounds import EACH, MutationState, Rounds, preferred, priced, replayed
from .search import FoundCandidates, groupable, named_mutant, search_mutants

_DEPTH_OF_GROUPS = 3
# Of the gaps that windows of several sizes need, the smallest this many.
_GAPS = 2
_TESTS: dict[str, MaskTest] = {"every": "every", "split-points": "split-points"}


@dataclass(frozen=True)
class AlgebraMutate(ModulePass):
    """Search partially equivalent programs for every contraction, and correct them.

    Contractions that share an operand are also looked for as parts of one product, where none
    depends on another, and so are those that one scope adds (`algebra-gather-sums`). Scopes are
    rewritten where the best corrected mutant is modelled to be faster by the factor `gain` (one
    below 1 lets in what is modelled slower, to be measured). Every mutant is proved equal to the
    scope once it is corrected. `budget` is in seconds for each distinct scope, `most` how many
    mutants are corrected and priced. Costs are modelled for `target`. `test` finds the positions
    where a mutant is wrong: `every` one is compared, or PET's few at `split-points`, for
    comparison.
    With more `rounds` than one, each contraction of the best programs that a round leaves is
    rewritten once more, by its mutants and by the rules of `algebra-derive`.
    With `at` and `mutant` the scope of that name (or those, with commas between) becomes the mutant
    of that name, corrected in that `form`, as a search wrote it down; nothing is priced.

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

    With `rounds=2`, `%y.1` may then be derived from (rule sum-split):

        %y.1.0 = algebra.scope (i0: 4, i1: 256, i2: 7, i3: 7, i4: 3, i5: 3) sum (k0: 512)
                   %k[i1, k0, i4, i5] * %y.0[i0, k0, i2 + i4 - 1, i3 + i5 - 1]
        %y.1 = algebra.scope (i0: 4, i1: 256, i2: 7, i3: 7) sum (k0: 3, k1: 3)
                 %y.1.0[i0, i1, i2, i3, k0, k1]
    """

    name = PASS
    floats: ClassVar[Floats] = GUARDED
    depth: int = DEPTH
    rounds: int = 1
    budget: float = 20.0
    most: int = 16
    gain: float = 1.05
    target: str = "cpu"
    test: str = "every"
    at: str = ""
    mutant: str = ""
    form: str = "plain"
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Mutate. Raises UserError if `test` is none, or no mutant has that name."""
        _mask_test(self.test)
        if self.mutant:
            _apply_named(op, self)
        else:
            mutate(op, self)


@dataclass(frozen=True)
class Explored:
    """Scopes as a separate program, their names in it, and candidates for them.

    Units: seconds are modelled.
    """

    alone: Program  # the separate program
    names: tuple[str, ...]
    before: float  # seconds of the given scopes
    states: list[MutationState]  # the candidates


@dataclass(frozen=True)
class Mutated:
    """What was done to some scopes, or why nothing was.

    Attributes:
        names: of the scopes.
        explored: the candidates.
        chosen: the chosen candidate.
        sum: whether it applies to the addends of the named scope.
    """

    names: tuple[str, ...]
    explored: Explored
    chosen: MutationState | None
    sum: bool = False

    @property
    def saved(self) -> float:
        """Seconds, modelled."""
        return 0.0 if self.chosen is None else self.explored.before - self.chosen.seconds


def mutate(module: ModuleOp, options: AlgebraMutate) -> list[Mutated]:
    """Rewrite everything that gains, in place; return every contraction and group considered."""
    search = _Search(options)
    looked: list[tuple[list[ScopeOp], Mutated]] = []
    saved: dict[ScopeOp, float] = {}
    name_apart(module)
    for op in contractions(module):
        one = search.best(module, [op])
        saved[op] = one.saved
        looked.append(([op], one))
    for sub in groups(module, lambda known: ScopePrices(known, costs=search.costs)):
        for names in sub.occurrences:
            ops = [find_scope(module, name) for name in names]
            if groupable([op.traversal for op in ops]) and all(op in saved for op in ops):
                one = search.best(module, ops, sum(saved[op] for op in ops))
                looked.append((ops, one))
    looked += [found for op in scope_ops(module) if (found := _sum_at(search, module, op, saved))]
    taken: set[ScopeOp] = set()
    for ops, one in sorted(looked, key=lambda found: -len(found[0])):
        if one.chosen is not None and not taken & set(ops) and _apply(module, one):
            taken |= set(ops)
    return [one for _, one in looked]


def _sum_at(
    search: _Search, module: ModuleOp, op: ScopeOp, saved: dict[ScopeOp, float]
) -> tuple[list[ScopeOp], Mutated] | None:
    """The contractions that a scope adds, and candidates for their sum; None if it adds none."""
    name = scope_names(module)[op]
    if not op.is_pointwise:
        return None
    trial = module.clone()
    added = collect_contractions(trial, find_scope(trial, name))
    if added is None:
        return None
    names = [scope_names(trial)[part] for part in added_contractions(added)]
    parts = [find_scope(module, part) for part in names]
    if not all(part in saved for part in parts):
        return None
    one = search.best(trial, [added], sum(saved[part] for part in parts))
    return parts, replace(one, names=(name,), sum=True)


def _apply(module: ModuleOp, one: Mutated) -> bool:
    """Whether the scopes could be rewritten: other rewrites may stand between them."""
    assert one.chosen is not None
    for made in (module.clone(), module):
        at = one.names
        if one.sum:
            added = collect_contractions(made, find_scope(made, at[0]))
            if added is None:
                return False
            at = (scope_names(made)[added],)
        try:
            explored = one.explored
            replayed(explored.alone, explored.names, Program(made, Weights()), at, one.chosen)
        except UserError:
            return False
    return True


def contractions(module: ModuleOp) -> list[ScopeOp]:
    """The contractions that do not depend on weights alone."""
    constants = weights_only(main_of(module).body.block.ops)
    ops = [op for op in scope_ops(module) if op.result not in constants]
    return [op for op in ops if is_contraction(lifted(module, [op])[0][0])]


class _Search:
    """Searches each distinct scope once."""

    def __init__(self, options: AlgebraMutate) -> None:
        self.options = options
        self.costs = Costs(target_named(options.target))
        self.known: dict[tuple[Scope, ...], Explored] = {}
        self.rounds = Rounds(
            self._search,
            partial(priced, costs=self.costs),
            lambda candidate: Mutation(candidate, options.target, options.depth),
            options.rounds,
            derive=Deriver(self.costs, EACH).alternatives if options.rounds > 1 else None,
        )

    def best(self, module: ModuleOp, ops: Sequence[ScopeOp], saved: float = 0.0) -> Mutated:
        """The decision for scopes each of which alone would become faster by `saved`."""
        roots = tuple(lifted(module, ops)[0])
        if roots not in self.known:
            self.known[roots] = self._explored(module, ops)
        found = self.known[roots]
        best = preferred(found.states)
        gains = best is not None and best.seconds * self.options.gain < found.before - saved
        names = scope_names(module)
        of = tuple(names[op] for op in ops)
        return Mutated(of, found, best if gains else None)

    def _explored(self, module: ModuleOp, ops: Sequence[ScopeOp]) -> Explored:
        inside = [part for op in ops for part in added_contractions(op)]
        known = weights_only(main_of(module).body.block.ops)
        alone, copies = isolate_all(ops, known, inside=inside)
        names = tuple(scope_names(alone.module)[copy] for copy in copies)
        states = [state for state in self.rounds.run(alone, names) if state.steps]
        return Explored(alone, names, self.rounds.price(alone), states)

    def _search(self, ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
        made, price = _options(ops, self.options), partial(modelled, costs=self.costs)
        return search_mutants(roots, made, price, self.options.most, self.costs)


def _apply_named(module: ModuleOp, options: AlgebraMutate) -> None:
    """Raises UserError."""
    ops = [find_scope(module, name) for name in options.at.split(",")]
    costs = Costs(target_named(options.target))
    roots, _ = lifted(module, ops)
    found = None
    if groupable([op.traversal for op in ops]):
        made = _options(ops, options)
        found = named_mutant(roots, made, options.mutant, options.form, costs)
    if found is None:
        raise UserError(
            f"no mutant '{options.mutant}'", where=f"%{options.at}", hint="the name is the search's"
        )
    apply_to(module, ops, found)


def _options(ops: Sequence[ScopeOp], options: AlgebraMutate) -> Options:
    test = _mask_test(options.test)
    made = Options(depth=options.depth, seconds=options.budget, test=test, seed=options.seed)
    return tried(ops, made)


def _mask_test(name: str) -> MaskTest:
    found = _TESTS.get(name)
    if found is None:
        hint = did_you_mean(name, tuple(_TESTS)) or ", ".join(_TESTS)
        raise UserError(f"unknown mask test '{name}'", where="test", hint=hint)
    return found


def tried(ops: Sequence[ScopeOp], options: Options) -> Options:
    """The windows worth trying: 1 and the steps of the ops; and the gaps that they need.

    Several ops become one product, plain or with one group each, of operands side by side: one
    operator less than one of them with moves needs.
    """
    steps, one = {1}, len(ops) == 1
    ops = windowed(ops)
    for read in (read for op in ops for read in op.reads()):
        for index in read.index:
            steps |= {abs(c) for atom, c in index.terms if isinstance(atom, int)}
    few = tuple(sorted(s for s in steps if s <= 4))
    gaps = tuple(sorted({taps // 2 * step for taps in _taps(ops) for step in few} - {0}))
    made = replace(options, strides=(1,), dilations=few, groups=(1,), gaps=gaps[:_GAPS])
    if one:
        return made
    depth = min(options.depth, _DEPTH_OF_GROUPS)
    return replace(made, strides=few, groups=(1, len(ops)), gaps=(), depth=depth)


def _taps(ops: Sequence[ScopeOp]) -> set[int]:
    """Extents of the windows that the ops read."""
    found: set[int] = set()
    for op in ops:
        for index in (index for read in op.reads() for index in read.index):
            if len(index.terms) > 1:
                atoms = [a for a, _ in index.terms if isinstance(a, int)]
                found |= {op.extents[a] for a in atoms if a >= len(op.traversal)}
    return found


def modelled(roots: Sequence[Scope], costs: Costs) -> float:
    """Modelled seconds of a program of scopes, as lowered; ops on weights alone are free."""
    module = program_of_scopes(roots, is_known)
    context = WeightContext()
    AlgebraToKernel().apply(context, module)
    FuseKernels().apply(context, module)
    return costs.program(Program(module, Weights())).seconds


__all__ = [
    "AlgebraMutate",
    "Mutated",
    "contractions",
    "modelled",
    "mutate",
    "tried",
]
