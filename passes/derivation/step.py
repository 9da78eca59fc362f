"""What one application of a rule gives, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.canonical_types import Scope
from ...dialects.floats import Floats
from .body import Images, SumOfProducts

# Options of the pass that does the step by hand; iterators by their names in generated text.
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
    """

    name: str
    propose: Propose
    condition: str
    source: str
    floats: Floats
    eager: bool = False
    limit: int | None = field(default=None)


def named(numbers: Iterable[int], letter: str) -> tuple[str, ...]:
    """Iterators by their names in generated text: `k0`, `k2`."""
    return tuple(f"{letter}{k}" for k in numbers)


def pass_text(rule: str, parameters: Parameters) -> str:
    """A step as an element of an `isoform-opt` pipeline."""
    options = " ".join(f"{name}={_option(value)}" for name, value in parameters)
    return f"algebra-{rule}{{{options}}}" if options else f"algebra-{rule}"


def _option(value: int | str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return ",".join(f'"{v}"' for v in value)
    return str(value) if isinstance(value, int) else f'"{value}"'
