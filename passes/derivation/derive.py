"""algebra-derive: replace contractions by the best programs that the rules derive from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope, Source
from ...dialects.program import main_of
from ...dialects.types import byte_size, tensor_type
from ...lowering.algebra_to_kernel.iterator_table import Match, matches
from ...lowering.algebra_to_kernel.match import match_conv
from ...lowering.targets import target_named
from ..flops import scope_work
from ..weights_only import weights_only
from .body import body_of
from .by_hand import replace_op
from .instantiate import instantiate
from .lift import Lift, body_of_op, family, fresh_name, names_in, scope_names, scope_ops
from .price import Prices
from .search import (
    MERGE_COPIES,
    Applied,
    Found,
    Result,
    Searcher,
    Settings,
    is_contraction,
)
from .step import Parameters, Step, pass_text

# On the result of a derivation: the passes that do by hand what the search found.
DERIVATION = "isoform.derivation"


@dataclass
class Derivation:
    """How one scope was rewritten.

    Attributes:
        passes: elements of an isoform-opt pipeline that replay it, with the text of the scopes
            that each leaves behind.
        before: modelled seconds of the scope as it was.
        kind: how the costs are known.
    """

    name: str
    result: Result
    chosen: Found
    before: float
    passes: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])
    kind: str = "modelled"

    @property
    def rules(self) -> list[str]:
        return self.chosen.state.rules()

    @property
    def pipeline(self) -> str:
        """The passes that replay it on the program it was found for."""
        return ",".join(text for text, _ in self.passes)

    def trace(self) -> str:
        """What was applied, with the expressions after each step."""
        before, after = self.before, self.chosen.priced.seconds
        lines = [
            f"%{self.name}: {len(self.rules)} rules, {len(self.result.states)} states, "
            f"{before * 1e6:.3g} us -> {after * 1e6:.3g} us ({self.kind})"
        ]
        for text, scopes in self.passes:
            lines.append(f"  {text}")
            lines += [f"    {line}" for line in scopes]
        return "\n".join(lines)


class Replay:
    """Does what a search found to the program, as the hand passes would, and writes it down.

    Args:
        op: the scope that the search began with; it must have a name.
    """

    def __init__(self, module: ModuleOp, op: ScopeOp):
        self.module = module
        self.name = op.result.name_hint or ""
        self.made: dict[ScopeOp, None] = {op: None}
        self.passes: list[tuple[str, list[str]]] = []

    def lifted(self) -> Lift:
        """Canonical forms of everything made so far."""
        lift = Lift(self.module, lambda op: op in self.made)
        for op in self.made:
            lift.source(op.result)
        return lift

    def root(self) -> Scope:
        """The canonical form of what stands for the first scope now."""
        last = next(o for o in self.made if o.result.name_hint == self.name)
        return self.lifted().scope(last)

    def apply(self, applied: Applied) -> None:
        """Do one step."""
        step = applied.step
        if step.rule == MERGE_COPIES:
            self._merge_copies(step)
            return
        op = self._canonical(applied.old)
        self._replace(op, step, step.rule, step.parameters)

    def finish(self) -> None:
        """Write every scope canonically: guards that the last steps made needless go."""
        for scope in [self.lifted().source(op.result) for op in self.made]:
            assert isinstance(scope, Scope)
            self._canonical(scope)

    def match(self, scope: Scope, match: Match) -> None:
        """Write a scope in its library kernel's form."""
        op = self._canonical(scope)
        same = matches(scope, (match.kernel,))
        number = same.index(match)
        words = (("kernel", match.kernel.name), ("number", number))
        self._replace(op, instantiate(match), "match", words)

    def _canonical(self, scope: Scope) -> ScopeOp:
        """The op of a scope, its iterators in canonical order and named so."""
        lift = self.lifted()
        op = next(o for o in self.made if o.parent is not None and lift.source(o.result) is scope)
        raw, body = body_of_op(op, lift), body_of(scope)
        plain = op.names == (*_names(op.traversal, "i"), *_names(op.summation, "k"))
        if plain and raw is not None and body is not None and _same(raw, body):
            return op
        return self._replace(op, Step("normalise", scope), "normalise", ())

    def _merge_copies(self, step: Step) -> None:
        lift = self.lifted()
        op = next((o for o in self.made if lift.source(o.result) is step.new), None)
        if op is not None:
            self._replace(op, step, MERGE_COPIES, ())

    def _replace(self, op: ScopeOp, step: Step, rule: str, parameters: Parameters) -> ScopeOp:
        at = scope_names(self.module)[op]
        readers = {use.operation for use in op.result.uses}
        values: dict[Source, SSAValue] = {
            s: v for s, v in self.lifted().values.items() if s is not step.new
        }
        before = set(scope_ops(self.module))
        new = replace_op(self.module, op, step, values)
        del self.made[op]
        for reader in readers:
            if isinstance(reader, ScopeOp) and reader.parent is None:
                self.made.pop(reader, None)
        for other in scope_ops(self.module):
            if other not in before:
                self.made[other] = None
        text = pass_text(rule, (("at", at), *parameters))
        self.passes.append((text, [_line(o) for o in new]))
        return new[-1]


def _names(extents: Sequence[int], letter: str) -> list[str]:
    return [f"{letter}{k}" for k in range(len(extents))]


def _same(raw, body) -> bool:  # pyright: ignore
    return raw.sums == body.sums and {f.token for f in raw.factors} == {
        f.token for f in body.factors
    }


def _line(op: ScopeOp) -> str:
    """The op's text, attributes left out."""
    copy = op.clone()
    copy.attributes.clear()
    copy.result.name_hint = op.result.name_hint
    text = " ".join(str(copy).split())
    copy.drop_all_references()
    return text


@dataclass(frozen=True)
class AlgebraDerive(ModulePass):
    """Search programs beyond predefined operators for every contraction, by derivation rules.

    Rewrites a scope where the best program found is modelled to be faster by the factor `gain` (one
    below 1 lets in what is modelled slower, to be measured). The result is scopes again, those that
    a library kernel computes written in its form. `budget` is in seconds for each distinct scope.
    Costs are modelled for `target`. The rules applied are in `isoform.rules`, the passes that
    replay them in `isoform.derivation`; `trace` names a file for the readable derivations.

    Before, a transposed convolution (%one being ones of one place):

        %y = algebra.scope (n: 16, f: 256, h: 4, w: 4) sum (c: 448, r: 4, s: 4)
               %x[n, c, (h + 1 - r) floordiv 2, (w + 1 - s) floordiv 2] * %k[c, f, r, s] * ...

    After, a matrix product and a selective sum:

        %y.0 = algebra.scope (i0: 16, i1: 2, i2: 2, i3: 256, i4: 4, i5: 4) sum (k0: 448)
               %k[k0, i3, i4, i5] * %x[i0, k0, i1, i2]
        %y = algebra.scope (i0: 16, i1: 256, i2: 4, i3: 4) sum (k0: 4, k1: 4)
               %y.0[i0, (i2 - k0 + 1) floordiv 2, ..., i1, k0, k1] * ...
    """

    name = "algebra-derive"
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
    """Rewrite what gains, in place; every derivation applied."""
    settings = Settings(options.depth, options.states, options.budget)
    target = target_named(options.target)
    searched: dict[tuple[Scope, tuple[str, ...]], tuple[Searcher, Result]] = {}
    found: list[Derivation] = []
    for op in scope_ops(module):
        known = weights_only(main_of(module).body.block.ops)
        lift = Lift(module, family(op), known, positional=True)
        root = lift.scope(op) if op.result not in known else None
        if root is None or not is_contraction(root):
            continue
        key = (root, tuple(lift.known()))
        if key not in searched:
            searcher = Searcher(Prices(lift.known(), target), settings)
            searched[key] = searcher, searcher.search((root,))
        searcher, result = searched[key]
        derivation = _rewrite(module, op, searcher, result, options.gain)
        if derivation is not None:
            found.append(derivation)
    return found


def _rewrite(
    module: ModuleOp, op: ScopeOp, searcher: Searcher, result: Result, gain: float
) -> Derivation | None:
    chosen = result.best[0] if result.best else None
    if chosen is None or not math.isfinite(chosen.priced.seconds):
        return None
    before = min(result.root.priced.seconds, native_seconds(op, searcher.prices))
    if chosen.priced.seconds * gain > before:
        return None
    done = apply_found(module, op, searcher, chosen)
    return None if done is None else Derivation(done.name, result, done.found, before, done.passes)


@dataclass(frozen=True)
class Done:
    """What was done to one op: as it was traced again, and the passes that do it by hand."""

    name: str
    root: Scope
    found: Found
    passes: list[tuple[str, list[str]]]

    @property
    def pipeline(self) -> str:
        return ",".join(text for text, _ in self.passes)


def apply_found(module: ModuleOp, op: ScopeOp, searcher: Searcher, chosen: Found) -> Done | None:
    """Do to an op what a search found for one alike; None if it cannot be traced again."""
    return apply_rules(module, op, searcher, chosen.state.rules(), chosen.priced.seconds)


def apply_rules(
    module: ModuleOp, op: ScopeOp, searcher: Searcher, rules: Sequence[str], seconds: float
) -> Done | None:
    """Do to an op what these rules give, at that price; None if they give no such program."""
    known = weights_only(main_of(module).body.block.ops)
    if op.result.name_hint is None:
        op.result.name_hint = fresh_name(names_in(module), "derived")
    name = op.result.name_hint
    named = Lift(module, family(op), known)
    root = named.scope(op)
    constants = [named.source(value).token for value in op.inputs if value in known]
    again = Searcher(Prices(constants, searcher.prices.target), searcher.settings)
    traced = again.retrace((root,), rules, seconds)
    if traced is None:
        return None
    replay = Replay(module, op)
    for applied in traced.state.steps():
        replay.apply(applied)
    replay.finish()
    for scope, match in traced.priced.choices:
        replay.match(scope, match)
    done = Done(name, root, traced, replay.passes)
    for other in scope_ops(module):
        if other in replay.made and other.result.name_hint == name:
            other.attributes[DERIVATION] = StringAttr(done.pipeline)
    return done


def native_seconds(op: ScopeOp, prices: Prices) -> float:
    """What a transposed convolution costs as the lowering takes it; infinite for other ops."""
    found = match_conv(op)
    if found is None or not found.transposed:
        return math.inf
    values = (found.data.source, found.weights.source, op.result)
    moved = sum(byte_size(tensor_type(v)) for v in values)
    return prices.native("conv", scope_work(op).flops, moved)


__all__ = [
    "DERIVATION",
    "AlgebraDerive",
    "Derivation",
    "Done",
    "Replay",
    "apply_found",
    "apply_rules",
    "derive",
    "native_seconds",
]
