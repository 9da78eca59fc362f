"""Replace a scope by a derived one: every reader is rewritten, with guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...dialects.canonical_scope import collect, normal
from ...dialects.canonical_types import Extents, Factor, Read, Scope, Source, Term, scope
from ...dialects.index import iterators
from .body import Link, build, guards_of
from .step import DerivationStep

Change: TypeAlias = Callable[[Read, Extents], "list[Link] | None"]
Roots: TypeAlias = tuple[Scope, ...]


def rewritten(old: Scope, change: Change) -> Scope:
    """The scope with its reads replaced by products; `change` gives None for unchanged reads.

    Reads inside functions are unchanged.
    """
    parts: list[tuple[Term, list[Factor]]] = []
    changed = False
    for term in old.expr.terms:
        factors: list[Factor] = []
        for f in term.factors:
            plain = isinstance(f, Read) and f.outside == 0.0
            new = change(f, old.shape + term.sums) if plain and isinstance(f, Read) else None
            changed = changed or new is not None
            factors += [f] if new is None else new
        parts.append((term, factors))
    if not changed:
        return old
    terms = [
        made
        for term, factors in parts
        for made in normal((term.coefficient, term.sums, tuple(factors)), old.shape)
    ]
    return scope(old.shape, old.element, collect(terms))


def read_of(
    old: Scope, step: DerivationStep, read: Read, extents: Extents, guards: bool
) -> list[Link]:
    """The replacement of a read of the old scope."""
    index = read.index
    if step.image is not None:
        index = tuple(e.substitute(read.index) for e in step.image)
    made: list[Link] = [Read(step.new, index)]
    moved = step.image is not None or step.new.shape != old.shape
    if guards and moved and not step.zero_beyond:
        made += guards_of(read.index, old.shape, extents)
    return made


class Replacer:
    """Replaces scopes in programs; memoised, since states share most scopes.

    Args:
        guards: False omits the guards that make replacing sound. Only for tests, which show
            that the checks notice.
    """

    def __init__(self, guards: bool = True):
        self.guards = guards
        self._memo: dict[tuple[Scope, Scope, DerivationStep], Scope] = {}

    def replace(self, roots: Sequence[Scope], old: Scope, step: DerivationStep) -> Roots:
        """The program with `old` computed as the step says."""
        done: dict[Source, Scope] = {}
        return tuple(self._scope(root, old, step, done, True) for root in roots)

    def _scope(
        self, node: Scope, old: Scope, step: DerivationStep, done: dict[Source, Scope], root: bool
    ) -> Scope:
        if node is old:
            return self._at_root(old, step) if root else node
        if node in done:
            return done[node]
        memo = (node, old, step)
        if memo not in self._memo:
            self._memo[memo] = self._rewrite(node, old, step, done)
        done[node] = self._memo[memo]
        return done[node]

    def _rewrite(
        self, node: Scope, old: Scope, step: DerivationStep, done: dict[Source, Scope]
    ) -> Scope:
        def change(read: Read, extents: Extents) -> list[Link] | None:
            if read.source is old:
                return read_of(old, step, read, extents, self.guards)
            if isinstance(read.source, Scope):
                new = self._scope(read.source, old, step, done, False)
                if new is not read.source:
                    return [Read(new, read.index)]
            return None

        return rewritten(node, change)

    def _at_root(self, old: Scope, step: DerivationStep) -> Scope:
        if step.image is None and step.new.shape == old.shape:
            return step.new
        here = Read(old, tuple(iterators(len(old.shape))))
        links = read_of(old, step, here, old.shape, self.guards)
        return build(old.shape, (), links, old.element)


def scopes_of(roots: Sequence[Source]) -> list[Scope]:
    """Every scope of a program, readers before what they read, each once."""
    order: dict[Scope, None] = {}

    def visit(node: Source) -> None:
        if not isinstance(node, Scope) or node in order:
            return
        for term in node.expr.terms:
            for f in term.factors:
                if isinstance(f, Read):
                    visit(f.source)
        order[node] = None

    for root in roots:
        visit(root)
    return list(order)[::-1]
