"""algebra-derive: replace contractions by the best programs that the rules derive from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.floats import GUARDED, Floats
from ...dialects.program import main_of
from ...dialects.types import byte_size, element_of, tensor_type
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel.match import match_conv
from ...lowering.targets import target_named
from ..convolution.conv_algorithms import ConvolutionProblem, conv_algorithms
from ..cost.flops import scope_work
from .lift import Lift, family, name_apart, scope_names, scope_ops
from .price import ScopePrices
from .replace import Roots
from .replay import Replay, StaleResultError
from .search import (
    DerivationResult,
    DerivationSettings,
    FoundProgram,
    Searcher,
    TrailStep,
    is_contraction,
)

# On the result of a derivation: the passes that repeat it.
DERIVATION = "isoform.derivation"


@dataclass
class Derivation:
    """How one scope was rewritten.

    Attributes:
        passes: elements of an isoform-opt pipeline that replay it, each with the text of the
            scopes that it leaves.
        before: modelled seconds of the original scope.
        kind: how the costs are known.
    """

    name: str
    result: DerivationResult
    chosen: FoundProgram
    before: float
    passes: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])
    kind: str = "modelled"

    @property
    def rules(self) -> list[str]:
        return self.chosen.state.rules()

    @property
    def pipeline(self) -> str:
        """The passes that replay it on the original program."""
        return ",".join(text for text, _ in self.passes)

    def trace(self) -> str:
        """The derivation, with the expressions after each step."""
        before, after = self.before, self.chosen.priced.seconds
        lines = [
            f"%{self.name}: {len(self.rules)} rules, {len(self.result.states)} states, "
            f"{before * 1e6:.3g} us -> {after * 1e6:.3g} us ({self.kind})"
        ]
        for text, scopes in self.passes:
            lines.append(f"  {text}")
            lines += [f"    {line}" for line in scopes]
        return "\n".join(lines)


@dataclass(frozen=True)
class AlgebraDerive(ModulePass):
    """Search programs beyond predefined operators for every contraction, by derivation rules.

    Rewrites a scope if the best program found is modelled to be faster by the factor `gain` (below
    1 also allows modelled losses, to be measured). The result is scopes again; those that a library
    kernel computes are written in its form. `budget` is in seconds for each distinct scope. Costs
    are modelled for `target`. The applied rules are in `isoform.rules`, the passes that replay them
    in `isoform.derivation`; `trace` names a file for readable derivations.

    Before, a transposed convolution (%one being ones of extent 1):

        %y = algebra.scope (n: 16, f: 256, h: 4, w: 4) sum (c: 448, r: 4, s: 4)
               %x[n, c, (h + 1 - r) floordiv 2, (w + 1 - s) floordiv 2] * %k[c, f, r, s] * ...

    After, a matrix product and a selective sum:

        %y.0 = algebra.scope (i0: 16, i1: 2, i2: 2, i3: 256, i4: 4, i5: 4) sum (k0: 448)
               %k[k0, i3, i4, i5] * %x[i0, k0, i1, i2]
        %y = algebra.scope (i0: 16, i1: 256, i2: 4, i3: 4) sum (k0: 4, k1: 4)
               %y.0[i0, (i2 - k0 + 1) floordiv 2, ..., i1, k0, k1] * ...
    """

    name = "algebra-derive"
    floats: ClassVar[Floats] = GUARDED
    depth: int = 4
    budget: float = 10.0
    states: int = 4000
    gain: float = 1.05
    target: str = "cpu"
    trace: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Derive."""
        found = derive(op, self)
        if self.trace:
            from ...dialects.files import write_whole

            text = "\n\n".join(d.trace() for d in found)
            write_whole(self.trace, f"{text}\n".encode())


def derive(module: ModuleOp, options: AlgebraDerive) -> list[Derivation]:
    """Rewrite all scopes that gain, in place; return the applied derivations."""
    settings = DerivationSettings(options.depth, options.states, options.budget)
    target = target_named(options.target)
    searched: dict[tuple[Scope, tuple[str, ...]], tuple[Searcher, DerivationResult]] = {}
    found: list[Derivation] = []
    name_apart(module)
    for op in scope_ops(module):
        known = weights_only(main_of(module).body.block.ops)
        lift = Lift(module, family(op), known, positional=True)
        root = lift.scope(op) if op.result not in known else None
        if root is None or not is_contraction(root):
            continue
        key = (root, tuple(lift.known()))
        if key not in searched:
            searcher = Searcher(ScopePrices(lift.known(), target), settings)
            searched[key] = searcher, searcher.search((root,))
        searcher, result = searched[key]
        derivation = _rewrite(module, op, searcher, result, options.gain)
        if derivation is not None:
            found.append(derivation)
    return found


def _rewrite(
    module: ModuleOp, op: ScopeOp, searcher: Searcher, result: DerivationResult, gain: float
) -> Derivation | None:
    chosen = result.best[0] if result.best else None
    if chosen is None or not math.isfinite(chosen.priced.seconds):
        return None
    before = min(result.root.priced.seconds, native_seconds(op, searcher.prices))
    if chosen.priced.seconds * gain > before:
        return None
    done = apply_found(module, [op], searcher, chosen)
    return (
        None if done is None else Derivation(done.names[0], result, done.found, before, done.passes)
    )


@dataclass(frozen=True)
class FoundDerivation:
    """A derivation of some ops: its retraced form, and the passes that repeat it."""

    names: tuple[str, ...]
    roots: Roots
    found: FoundProgram
    passes: list[tuple[str, list[str]]]

    @property
    def pipeline(self) -> str:
        return ",".join(text for text, _ in self.passes)


def apply_found(
    module: ModuleOp,
    ops: Sequence[ScopeOp],
    searcher: Searcher,
    chosen: FoundProgram,
    inside: Sequence[ScopeOp] = (),
) -> FoundDerivation | None:
    """Apply the derivation found for equal ops; None if it cannot be retraced."""
    trail, seconds = chosen.state.trail(), chosen.priced.seconds
    return apply_rules(module, ops, searcher, trail, seconds, inside)


def apply_rules(
    module: ModuleOp,
    ops: Sequence[ScopeOp],
    searcher: Searcher,
    trail: Sequence[TrailStep],
    seconds: float,
    inside: Sequence[ScopeOp] = (),
) -> FoundDerivation | None:
    """Apply the program that these rules give at that price; None if they give none.

    The ops are read with those `inside` opened, which only they read.

    The ops must have unique names (`name_apart`, or `algebra-name-scopes`).
    Every step keeps the program's meaning, but after None some steps may remain applied.

    Raises:
        UserError: two ops are to be computed as one, and no place in the program suits both.
    """
    known = weights_only(main_of(module).body.block.ops)
    names = tuple(scope_names(module)[op] for op in ops)
    families = [family(op) for op in ops]

    def opened(other: ScopeOp) -> bool:
        return other in inside or (other not in ops and any(f(other) for f in families))

    named = Lift(module, opened)
    roots = tuple(named.scope(op) for op in ops)
    read = [v for op in (*ops, *inside) for v in op.inputs]
    constants = [named.source(v).token for v in read if v in known]
    again = Searcher(ScopePrices(constants, costs=searcher.prices.costs), searcher.settings)
    traced = again.retrace(roots, trail, seconds)
    if traced is None:
        return None
    replay = Replay(module, *ops, *inside)
    try:
        for applied in traced.state.steps():
            replay.apply(applied)
        replay.finish()
        for scope, match in traced.priced.choices:
            replay.match(scope, match)
    except StaleResultError:
        return None
    done = FoundDerivation(names, roots, traced, replay.passes)
    for other, name in scope_names(module).items():
        if other in replay.made and name in names:
            other.attributes[DERIVATION] = StringAttr(done.pipeline)
    return done


def native_seconds(op: ScopeOp, prices: ScopePrices) -> float:
    """The cost of a transposed convolution as lowered; infinite for other ops."""
    found = match_conv(op)
    if found is None or not found.transposed:
        return math.inf
    macs = scope_work(op).flops / 2
    moved = sum(byte_size(tensor_type(v)) for v in (found.data, op.result))
    weights = byte_size(tensor_type(found.weights))
    algorithms = conv_algorithms(
        ConvolutionProblem.of(found), macs, prices.target, prices.costs.fitted
    )
    element = element_of(op.result)
    return min(prices.costs.seconds(algorithm, element, weights, moved) for algorithm in algorithms)


def is_unchanged(found: FoundProgram, op: ScopeOp) -> bool:
    """Whether a program is the convolution that the op already is: no rule, nothing moved."""
    if found.state.parent is not None or match_conv(op) is None:
        return False
    return all(m.kernel.name == "conv" and all(m.direct) for _, m in found.priced.choices)


__all__ = [
    "DERIVATION",
    "AlgebraDerive",
    "Derivation",
    "FoundDerivation",
    "apply_found",
    "apply_rules",
    "derive",
    "is_unchanged",
    "native_seconds",
]
