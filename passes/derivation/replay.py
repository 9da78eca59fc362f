"""Apply a search's result to a program, step by step, and record the passes that repeat it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope, Source
from ...lowering.algebra_to_kernel.table import Match, matches
from .apply_steps import merge_ops, replace_op
from .body import body_of
from .instantiate import instantiate
from .lift import Lift, body_of_op, scope_names, scope_ops
from .merges import TRAVERSAL_MERGE
from .search import MERGE_COPIES, RuleApplication
from .side_by_side import Merger
from .step import DerivationStep, Parameters, pass_text


class StaleResultError(Exception):
    """The program no longer contains the result's scopes in that form: it was rewritten since."""


class Replay:
    """Applies a search's result to the program, as `algebra-apply-rule` would, and records it.

    Args:
        ops: the scopes that the search began with; their names must be unique.
    """

    def __init__(self, module: ModuleOp, *ops: ScopeOp):
        self.module = module
        self.name = ops[0].result.name_hint or ""
        self.made: dict[ScopeOp, None] = dict.fromkeys(ops)
        self.passes: list[tuple[str, list[str]]] = []
        self.latest: list[ScopeOp] = []

    def lifted(self) -> Lift:
        """Canonical forms of everything made so far."""
        lift = Lift(self.module, lambda op: op in self.made)
        for op in self.made:
            lift.source(op.result)
        return lift

    def root(self) -> Scope:
        """The current canonical form of the first scope's replacement."""
        last = next(o for o in self.made if o.result.name_hint == self.name)
        return self.lifted().scope(last)

    def apply(self, applied: RuleApplication) -> None:
        """Apply one step.

        Raises:
            UserError: two scopes are to become one, and no position in the program suits both.
            StaleResultError: there is no such scope.
        """
        step = applied.step
        if applied.other is not None:
            self._merge(applied, *applied.other)
            return
        if step.rule == MERGE_COPIES:
            self._merge_copies(step)
            return
        op = self._canonical(applied.old)
        parameters = step.parameters
        if step.rule == TRAVERSAL_MERGE:
            parameters = (("read", self._read_by(applied)),)
        self._replace(op, step, step.rule, parameters)

    def _read_by(self, applied: RuleApplication) -> str:
        """The name of the scope that is merged into its reader."""
        body, (_, number) = body_of(applied.old), applied.step.parameters[0]
        assert body is not None and isinstance(number, int)
        lift, inner = self.lifted(), body.reads[number].source
        made = next((o for o in self.made if lift.source(o.result) is inner), None)
        if made is None:
            raise StaleResultError
        return scope_names(self.module)[made]

    def finish(self) -> None:
        """Rewrite every scope in canonical form, without guards that became redundant."""
        for scope in [self.lifted().source(op.result) for op in self.made]:
            assert isinstance(scope, Scope)
            self._canonical(scope)

    def match(self, scope: Scope, match: Match) -> None:
        """Write a scope in its library kernel's form. Raises Lost."""
        op = self._canonical(scope)
        same = matches(scope, (match.kernel,))
        number = same.index(match)
        words = (("kernel", match.kernel.name), ("number", number))
        self._replace(op, instantiate(match), "match", words)

    def _canonical(self, scope: Scope) -> ScopeOp:
        """The op of a scope, with canonically ordered and named iterators. Raises Lost."""
        lift = self.lifted()
        standing = (o for o in self.made if o.parent is not None)
        op = next((o for o in standing if lift.source(o.result) is scope), None)
        if op is None:
            raise StaleResultError
        raw, body = body_of_op(op, lift), body_of(scope)
        plain = op.names == (*_names(op.traversal, "i"), *_names(op.summation, "k"))
        if plain and raw is not None and body is not None and _same(raw, body):
            return op
        return self._replace(op, DerivationStep("normalise", scope), "normalise", ())

    def _merge(self, applied: RuleApplication, other: Scope, second: DerivationStep) -> None:
        """Compute two scopes as one."""
        self._canonical(applied.old)
        late = self._canonical(other)
        lift = self.lifted()
        early = next(o for o in self.made if lift.source(o.result) is applied.old)
        names = scope_names(self.module)
        words = (("first", names[early]), ("second", names[late]))
        values = {s: v for s, v in lift.values.items() if s is not applied.step.new}
        made = Merger(applied.step.new, applied.step, second)
        self._changing([early, late], lambda: merge_ops(self.module, early, late, made, values))
        self._note(applied.step.rule, words)

    def _merge_copies(self, step: DerivationStep) -> None:
        lift = self.lifted()
        op = next((o for o in self.made if lift.source(o.result) is step.new), None)
        if op is not None:
            self._replace(op, step, MERGE_COPIES, ())

    def _replace(
        self, op: ScopeOp, step: DerivationStep, rule: str, parameters: Parameters
    ) -> ScopeOp:
        at = scope_names(self.module)[op]
        values: dict[Source, SSAValue] = {
            s: v for s, v in self.lifted().values.items() if s is not step.new
        }
        new = self._changing([op], lambda: replace_op(self.module, op, step, values))
        self._note(rule, (("at", at), *parameters))
        return new[-1]

    def _changing(
        self, ops: Sequence[ScopeOp], change: Callable[[], list[ScopeOp]]
    ) -> list[ScopeOp]:
        """Replace these ops in the program, and record the new ops."""
        readers = {use.operation for op in ops for use in op.result.uses}
        before = set(scope_ops(self.module))
        new = self.latest = change()
        for op in ops:
            del self.made[op]
        for reader in readers:
            if isinstance(reader, ScopeOp) and reader.parent is None:
                self.made.pop(reader, None)
        for other in scope_ops(self.module):
            if other not in before:
                self.made[other] = None
        return new

    def _note(self, rule: str, parameters: Parameters) -> None:
        text = pass_text(rule, parameters)
        self.passes.append((text, [_line(o) for o in self.latest]))


def _names(extents: Sequence[int], letter: str) -> list[str]:
    return [f"{letter}{k}" for k in range(len(extents))]


def _same(raw, body) -> bool:  # pyright: ignore
    return raw.sums == body.sums and {f.token for f in raw.factors} == {
        f.token for f in body.factors
    }


def _line(op: ScopeOp) -> str:
    """The op's text without attributes."""
    copy = op.clone()
    copy.attributes.clear()
    copy.result.name_hint = op.result.name_hint
    text = " ".join(str(copy).split())
    copy.drop_all_references()
    return text
