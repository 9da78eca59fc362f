"""Steps, the results of applying rules, and rules themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.floats import Floats
from .body import Images, SumOfProducts

# Options of `algebra-apply-rule` from which the step can be made again; iterators by their
# generated names.
Parameters: TypeAlias = "tuple[tuple[str, int | str | tuple[str, ...]], ...]"


@dataclass(frozen=True)
class DerivationStep:
    """A scope that can replace another one.

    old[x] = new[image(x)] at every x of old's shape; without an image, x and the shape are kept.
    `zero_beyond` promises new[image(x)] = 0 at every x outside old's shape: without it, readers
    that can leave old's shape need a guard.
    """

    rule: str
    new: Scope
    parameters: Parameters = ()
    image: Images | None = None
    zero_beyond: bool = False


@dataclass(frozen=True)
class ProposalOptions:
    """Settings of a search for the rules' proposals.

    Attributes:
        digit: an iterator of a window is split into digits (i floordiv n, i mod n) of at most this
            many values n, and of as many as the coefficient of an iterator in the same index.
        bases: most coordinate changes proposed for one scope.
        sums: a scope with more sums than this is not split over subsets of them.
        block: iterators that occur in one index expression are cut into blocks of this many
            positions, and sheared; 0 for neither.
    """

    digit: int = 3
    bases: int = 40
    sums: int = 6
    block: int = 0


Propose: TypeAlias = Callable[[SumOfProducts, ProposalOptions], Iterable[DerivationStep]]


def propose_nothing(body: SumOfProducts, options: ProposalOptions) -> Iterable[DerivationStep]:
    """Propose no step."""
    return ()


def applicable(steps: Iterable[DerivationStep | None]) -> Iterator[DerivationStep]:
    """The steps, None left out."""
    return (step for step in steps if step is not None)


def single_step(make: Callable[[SumOfProducts], DerivationStep | None]) -> Propose:
    """Propose the one step that a function gives, if it gives one."""

    def propose(body: SumOfProducts, options: ProposalOptions) -> Iterable[DerivationStep]:
        return applicable([make(body)])

    return propose


# --- for a user -----------------------------------------------------------------------------------

OptionKind: TypeAlias = Literal[
    "sums", "sum", "traversals", "traversal", "indices", "number", "scope", "kernel"
]
"""What the value names: iterators, index expressions, a number, a scope, or a library kernel."""


@dataclass(frozen=True)
class RuleOption:
    """An option of `algebra-apply-rule`.

    Attributes:
        what: its meaning, for users.
        default: None if it must be given.
    """

    name: str
    kind: OptionKind
    what: str
    default: int | None = None


@dataclass(frozen=True)
class OnBody:
    """A rule for one sum of products: `make(body, *values of options)`, None if it does not
    apply.

    Attributes:
        options: a "scope" among them is opened (its formula replaces reads of it) before the rule
            sees the body; it is no argument of `make`.
        canonical: the body is that of the canonical form, so guards have its numbers.
        allows: a condition on the readers of the scope, called with its op and the values.
    """

    make: Callable[..., DerivationStep | None]
    options: tuple[RuleOption, ...] = ()
    canonical: bool = False
    allows: Callable[..., bool] = lambda *_: True


@dataclass(frozen=True)
class OnScope:
    """A rule for one whole scope, whatever its expression.

    Attributes:
        inside: given the scope that the rule changes, a test of which other scopes are opened; None
            if the rule does not apply.
    """

    make: Callable[[Scope], DerivationStep | None]
    inside: Callable[[ScopeOp], Callable[[ScopeOp], bool] | None]


@dataclass(frozen=True)
class OnPair:
    """A rule that computes two sums of products as one."""

    make: Callable[[SumOfProducts, SumOfProducts], Any]  # None if it does not apply
    options: tuple[RuleOption, ...]


@dataclass(frozen=True)
class DerivationRule:
    """A derivation rule as data.

    Attributes:
        name: in traces and passes.
        propose: every application to a scope that a search should try; each already checked.
        condition: the side condition, and why it suffices.
        source: where it comes from.
        floats: what it does to floats: products in another order, or left out where a read is 0.
        eager: applied before the search goes on, wherever it can be: it never makes anything worse.
        limit: most applications on one path, None for no limit.
        for_user: how `algebra-apply-rule` applies it; None for its first proposed step.
    """

    name: str
    propose: Propose
    condition: str
    source: str
    floats: Floats
    for_user: OnBody | OnScope | OnPair | None = None
    eager: bool = False
    limit: int | None = None


def named(numbers: Iterable[int], letter: str) -> tuple[str, ...]:
    """Iterators by their names in generated text: `k0`, `k2`."""
    return tuple(f"{letter}{k}" for k in numbers)


def pass_text(rule: str, parameters: Parameters) -> str:
    """A step as an element of an `isoform-opt` pipeline."""
    options = [f"rule={rule}", *(f"{name}={_option(value)}" for name, value in parameters)]
    return f"algebra-apply-rule{{{' '.join(options)}}}"


def _option(value: int | str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return ",".join(f'"{v}"' for v in value)
    return str(value) if isinstance(value, int) else f'"{value}"'
