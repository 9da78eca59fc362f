"""Which numbers the symbols of two programs take: regions, their sizes to try, dims at sizes."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import sympy
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.dims_attr import DimsAttr
from ...dialects.extent_math import (
    Bounds,
    Expression,
    FloorDivision,
    ShapeGuard,
    Sizes,
    bounds_of,
    make_guard,
    solved,
    symbol,
    value_at,
)
from ...dialects.extent_text import read_extent
from ...dialects.extents import ShapeEnv
from ...dialects.program import Program
from ...dialects.shape_guards import check_guards, shape_env, symbols_of
from .size_reach import DimNumbers

# Sizes are drawn from these ranges in turn, above the least of a region: what holds of large sizes
# should not depend on how large.
RANGES = ((1, 8), (9, 28), (29, 60))
# Two sizes that have nothing in common, and of which multiples in an index are seen.
PROBES = ((11, 13, 17, 19, 23, 29, 31, 37), (101, 103, 107, 109, 113, 127, 131, 137))
# Remainders of sizes; more are not told apart.
MAX_RESIDUES = 16
_TRIES = 400
# A symbol of at most so many numbers has each of them tried.
FEW = 12


@dataclass(frozen=True)
class Region:
    """Sizes: some symbols are fixed, each other one is at least a number.

    Attributes:
        residues: of symbols that are divided: their remainder by their period.
    """

    fixed: Mapping[str, int]
    least: Mapping[str, int]
    residues: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_fixed(self, name: str, number: int) -> Region:
        """The part in which a symbol is a number."""
        least = {other: n for other, n in self.least.items() if other != name}
        return Region({**self.fixed, name: number}, least)

    def text(self, periods: Mapping[str, int]) -> str:
        """For example `batch = 1, seq >= 4, seq mod 2 = 1`."""
        parts = [f"{name} = {n}" for name, n in self.fixed.items()]
        parts += [f"{name} >= {n}" for name, n in self.least.items()]
        parts += [f"{name} mod {periods[name]} = {r}" for name, r in self.residues.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class SymbolTable:
    """The symbols of two programs.

    Attributes:
        names: in order.
        guards: what holds of them wherever the programs stand.
        dims: every dim of every value, as an expression.
        properties: whatever else of the programs depends on the symbols.
    """

    names: tuple[str, ...]
    guards: tuple[ShapeGuard, ...]
    dims: frozenset[Expression]
    properties: frozenset[Expression]
    bounds: Mapping[str, Bounds]

    @classmethod
    def of(cls, programs: Sequence[Program]) -> SymbolTable:
        """Of programs whose inputs have the same dims.

        Raises:
            UserError: a guard is about a symbol that no input has.
        """
        names = dict.fromkeys(name for p in programs for name in symbols_of(p.main))
        guards: dict[ShapeGuard, None] = {}
        ranges: dict[str, Bounds] = {}
        for program in programs:
            check_guards(program.main)
            env = shape_env(program.main)
            guards |= dict.fromkeys(env.guards)
            for name in names:
                low, high = env.bounds(symbol(name))
                least, most = ranges.get(name, (0, math.inf))
                ranges[name] = max(low, least), min(high, most)
        dims = frozenset(d for p in programs for d in _dims(p.main))
        properties = frozenset(d for p in programs for d in _properties(p.main))
        return cls(tuple(names), tuple(guards), dims, properties, ranges)

    @property
    def least(self) -> dict[str, int]:
        """The least number of each symbol."""
        return {name: int(self.bounds[name][0]) for name in self.names}

    @cached_property
    def _static(self) -> frozenset[int]:
        return frozenset(int(d) for d in self.dims if d.is_Integer)

    @cached_property
    def periods(self) -> dict[str, int]:
        """Of symbols in divisions by numbers, the least common multiple of those."""
        found: dict[str, int] = {}
        for part in self._divisions():
            divisor = part.args[1]
            for s in part.free_symbols if divisor.is_Integer else ():
                found[s.name] = math.lcm(found.get(s.name, 1), int(divisor))
        return found

    @property
    def undecided(self) -> str:
        """Why nothing can be said of all sizes, or "" if it can."""
        if any(not part.args[1].is_Integer for part in self._divisions()):
            return "a size is divided by a size"
        if math.prod(self.periods.values()) > MAX_RESIDUES:
            return f"sizes are divided by numbers with more than {MAX_RESIDUES} remainders"
        return ""

    def _divisions(self) -> Iterator[Expression]:
        for expr in (*self.dims, *self.properties, *(g.expr for g in self.guards)):
            yield from expr.atoms(FloorDivision)

    def is_few(self, name: str, least: int) -> bool:
        """Whether a symbol has so few numbers that each is tried."""
        return self.bounds[name][1] - least < FEW

    def parts(self, region: Region) -> list[Region]:
        """A region by the remainders of its symbols."""
        divided = [name for name in region.least if self.periods.get(name, 1) > 1]
        rests = product(*(range(self.periods[name]) for name in divided))
        return [replace(region, residues=dict(zip(divided, rest, strict=True))) for rest in rests]

    def probe(self, region: Region, number: int, rng: random.Random) -> dict[str, int] | None:
        """As `draw`, with primes where the guards allow them."""
        pools: dict[str, Sequence[int]] = {}
        for name, least in region.least.items():
            most = self.bounds[name][1]
            kept = [n for n in PROBES[number] if least <= n <= most and n not in self._static]
            pools[name] = kept or self._pool(name, region, number)
        return self._drawn(region, pools, rng)

    def draw(self, region: Region, number: int, rng: random.Random) -> dict[str, int] | None:
        """Sizes inside a region that every guard allows; None if none was found.

        Args:
            number: of the draw: sizes of different magnitudes follow each other.
        """
        pools = {name: self._pool(name, region, number) for name in region.least}
        return self._drawn(region, pools, rng)

    def _drawn(
        self, region: Region, pools: Mapping[str, Sequence[int]], rng: random.Random
    ) -> dict[str, int] | None:
        if not all(pools.values()):
            return None
        for _ in range(_TRIES):
            sizes = dict(region.fixed)
            inside = all(self._choose(name, pools[name], sizes, rng) for name in pools)
            if inside and all(g.holds(sizes) for g in self.guards):
                return sizes
        return None

    def _pool(self, name: str, region: Region, number: int) -> list[int]:
        """Numbers for a symbol, unlike any static dim if there are such."""
        least, most = region.least[name], self.bounds[name][1]
        low, high = (least + n for n in RANGES[number])
        if low > most:
            low, high = least, least + FEW
        period, rest = self.periods.get(name, 1), region.residues.get(name)
        found = range(low, int(min(max(high, low + 2 * period), most)) + 1)
        kept = [n for n in found if rest is None or n % period == rest]
        return [n for n in kept if n not in self._static] or kept

    def _choose(
        self, name: str, pool: Sequence[int], sizes: dict[str, int], rng: random.Random
    ) -> bool:
        """Add a symbol's number: what an equality asks for, or one that no other symbol has."""
        for guard in self.guards:
            if guard.relation == "==" and set(guard.symbols) - sizes.keys() == {name}:
                if not solved(guard.expr, 0, sizes):
                    return False
                if name in sizes:
                    return True
        free = [n for n in pool if n not in sizes.values()]
        sizes[name] = rng.choice(free or pool)
        return True

    def dims_at(self, sizes: Sizes) -> dict[int, list[Expression]]:
        """The dims that are each number at these sizes."""
        found: dict[int, list[Expression]] = {}
        for dim in self.dims:
            found.setdefault(value_at(dim, sizes), []).append(dim)
        return found

    def least_for(
        self, region: Region, needs: Iterable[tuple[Expression, int]]
    ) -> dict[str, int] | None:
        """The least sizes in a region from which on each dim is larger than its number."""
        found = dict(region.least)
        for dim, number in needs:
            dim = dim.subs({symbol(n): value for n, value in region.fixed.items()})
            names = [s.name for s in dim.free_symbols]
            if not names:  # it has this size at each draw
                continue
            while self._low(dim, found, region.residues) <= number:
                if max(found[name] for name in names) > number + 64:
                    return None
                for name in names:
                    found[name] += 1
        return found

    def _low(self, dim: Expression, least: Mapping[str, int], residues: Mapping[str, int]) -> float:
        """A bound of a dim, with each symbol that has a remainder as `period * q + remainder`."""
        for name, rest in residues.items():
            dim = dim.subs(symbol(name), self.periods[name] * symbol(name) + rest)
        known = {
            symbol(name): (
                -(-(n - residues.get(name, 0)) // self._period(name, residues)),
                math.inf,
            )
            for name, n in least.items()
        }
        return bounds_of(sympy.expand(dim), known)[0]

    def _period(self, name: str, residues: Mapping[str, int]) -> int:
        return self.periods[name] if name in residues else 1

    def broken(self, sizes: Sizes) -> ShapeGuard | None:
        """The first guard on some of these sizes alone that does not hold."""
        known = (g for g in self.guards if sizes.keys() >= set(g.symbols))
        return next((g for g in known if not g.holds(sizes)), None)

    def is_empty(self, region: Region) -> bool:
        """Whether the guards on one symbol alone leave it no number with its remainder.

        They are compared over several periods: such a guard is linear but for its divisions.
        """
        for name, rest in region.residues.items():
            period = self.periods[name]
            first = region.least[name] + (rest - region.least[name]) % period
            if all(self.broken({name: first + k * period}) for k in range(FEW)):
                return True
        return False

    def open_guards(self, least: Mapping[str, int]) -> list[ShapeGuard]:
        """The guards that do not follow from the least number of each symbol."""
        known = {make_guard(symbol(name) - n, ">="): "" for name, n in least.items()}
        env = ShapeEnv(guards=known, frozen=True)
        return [guard for guard in self.guards if not env.follows(guard)]


def numbers_of(dims: Mapping[int, Sequence[Expression]], fixed: Collection[str]) -> DimNumbers:
    """The numbers that dims are, by whether they vary with symbols that are not fixed."""
    static: set[int] = set()
    varying: set[int] = set()
    for number, exprs in dims.items():
        names = {s.name for e in exprs for s in e.free_symbols}
        (varying if names - set(fixed) else static).add(number)
    return DimNumbers(frozenset(static), frozenset(varying))


def _dims(main: FuncOp) -> Iterator[Expression]:
    """Every dim of every value of a function, as an expression."""
    for op in main.walk():
        values: list[SSAValue] = [*op.results]
        values += [arg for region in op.regions for block in region.blocks for arg in block.args]
        for type_ in (v.type for v in values if isinstance(v.type, TensorType)):
            if isinstance(type_.encoding, DimsAttr):
                yield from _expressions(type_.encoding)
            else:
                yield from (sympy.Integer(n) for n in type_.get_shape())


def _properties(main: FuncOp) -> Iterator[Expression]:
    """The sizes in the properties of a function's ops."""
    for op in main.walk():
        for attribute in op.properties.values():
            if isinstance(attribute, DimsAttr):
                yield from _expressions(attribute)


def _expressions(dims: DimsAttr) -> Iterator[Expression]:
    for d in dims.dims:
        yield read_extent(d.data) if isinstance(d.data, str) else sympy.Integer(d.data)
