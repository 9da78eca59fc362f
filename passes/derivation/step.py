"""What one application of a rule gives, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.floats import Floats
from .body import Images, SumOfProducts

# Options of `algebra-apply-rule` that do the step; iterators by their names in generated text.
Parameters: TypeAlias = "tuple[tuple[str, int | str | tuple[str, ...]], ...]"


@dataclass(frozen=True)
class DerivationStep:
    """A scope that can stand for another one.

    old[x] = new[image(x)] at every x of old's shape; no image means that x and the shape are kept.
    `zero_beyond` promises new[image(x)] = 0 at every x outside of old's shape: without it, readers
    that can leave old's shape need a guard.
    """

    rule: str
    new: Scope
    parameters: Parameters = ()
    image: Images | None = None
    zero_beyond: bool = False


@dataclass(frozen=True)
class ProposalOptions:
    """What a search asks of the rules' proposals.

    Attributes:
        digit: windows are split into digits of at most this many places, beside those that a
            neighbour's coefficient suggests.
        bases: most coordinate changes proposed for one scope.
        sums: a scope with more sums than this is not split over subsets of them.
        block: iterators that move along one index together are cut into blocks of this many places,
            and sheared; 0 for neither.
    """

    digit: int = 3
    bases: int = 40
    sums: int = 6
    block: int = 0


Propose: TypeAlias = Callable[[SumOfProducts, ProposalOptions], Iterable[DerivationStep]]


def nothing(body: SumOfProducts, options: ProposalOptions) -> Iterable[DerivationStep]:
    """Propose no step."""
    return ()


def at_once(make: Callable[[SumOfProducts], DerivationStep | None]) -> Propose:
    """Propose the one step that a function gives, if it gives one."""

    def propose(body: SumOfProducts, options: ProposalOptions) -> Iterable[DerivationStep]:
        step = make(body)
        return () if step is None else (step,)

    return propose


# --- by hand ------------------------------------------------------------------------------------

OptionKind: TypeAlias = Literal["sums", "sum", "traversal", "indices", "number", "scope", "kernel"]


@dataclass(frozen=True)
class RuleOption:
    """An option of `algebra-apply-rule`.

    Attributes:
        what: what it says, for people.
        default: None where it must be given.
    """

    name: str
    kind: OptionKind
    what: str
    default: int | None = None


@dataclass(frozen=True)
class OnBody:
    """A rule for one sum of products: `make(body, *values of options)`, None where it does not
    apply.

    Attributes:
        options: a "scope" among them is one that is looked into, and no value.
        canonical: the body is that of the canonical form, so guards have the numbers of that.
        allows: what its readers must be like, asked of the op and the values.
    """

    make: Callable[..., DerivationStep | None]
    options: tuple[RuleOption, ...] = ()
    canonical: bool = False
    allows: Callable[..., bool] = lambda *_: True


@dataclass(frozen=True)
class OnScope:
    """A rule for one whole scope, whatever its expression is.

    Attributes:
        inside: which other scopes are looked into, for the one it changes; None where the rule
            does not apply.
    """

    make: Callable[[Scope], DerivationStep | None]
    inside: Callable[[ScopeOp], Callable[[ScopeOp], bool] | None]


@dataclass(frozen=True)
class OnPair:
    """A rule that computes two sums of products as one."""

    make: Callable[[SumOfProducts, SumOfProducts], Any]
    options: tuple[RuleOption, ...]


@dataclass(frozen=True)
class DerivationRule:
    """A derivation rule as data.

    Attributes:
        name: what traces and passes call it.
        propose: every way a search wants to apply it to a scope; each already checked.
        condition: the side condition, and why it suffices.
        source: where it comes from.
        floats: what it does to floats, of the products and of what is not read for being 0.
        eager: applied at once wherever it applies: it never makes anything worse.
        limit: most applications on one path, None for no limit.
        by_hand: how `algebra-apply-rule` applies it; None for the first step that it proposes.
    """

    name: str
    propose: Propose
    condition: str
    source: str
    floats: Floats
    by_hand: OnBody | OnScope | OnPair | None = None
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
