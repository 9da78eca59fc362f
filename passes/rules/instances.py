"""Rules on given shapes: are both sides well-formed, and do they compute the same values?

An instance binds tensor variables to shapes and attribute variables to values. Instances are found
from a rule's text alone: a first one among small shapes, others by moves that keep the left side
well-formed: extents scaled together, attributes changed, dims added in front.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count, islice, permutations, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...dialects.errors import UserError
from ..equivalence.residues import Lanes
from .conditions import holds
from .exact import FIELD, Attributes, Shape, constant, draw, infer, plan
from .rule import CONSTANTS, Node, Out, Rule, Term, nodes_of, variables_of
from .terms import attribute_names, interpreted, resolved_attributes

Bindings: TypeAlias = "dict[str, Any]"

# Partial instances looked at where the nearest do not fit.
_FAR = 300_000
# Where the search for a first instance looks: square matrices, images, kernels, vectors, scalars.
_SHAPES: tuple[Shape, ...] = (
    (2, 2),
    (1, 2, 3, 3),
    (2, 2, 3, 3),
    (2, 1, 3, 3),
    (2, 2, 1, 1),
    (2, 1, 1, 1),
    (2,),
    (),
    (2, 2, 2),
    (4, 2),
    (2, 4),
    (1, 4, 3, 3),
    (4, 2, 3, 3),
)
# For rules with slices: of these there are parts that begin and end elsewhere, in steps.
_LARGER_SHAPES: tuple[Shape, ...] = ((7, 5), (7,), (3, 5, 4), (4, 6), (1, 2, 5, 4))
# For rules with broadcasts: what is repeated along a dim that it has, and what that makes.
_REPEATED: tuple[Shape, ...] = ((1, 2), (2, 1), (1, 1, 2), (2, 1, 2), (1, 2, 2), (4, 2, 2))
_BROADCAST_SHAPES = (
    (2, 2),
    (2, 2, 2),
    (1, 2, 3, 3),
    (2, 2, 3, 3),
    (2, 2, 1, 1),
    (4, 2, 2),
    (2, 2, 2, 2),
    (2, 2, 3, 2, 3),
    (2, 2, 6, 3),
)
# For rules that split a dim, transpose and join again: of two unlike digits.
_SHUFFLED: Mapping[str, tuple[Any, ...]] = {
    "shape": ((2, 3, 2), (2, 6), (1, 2, 3, 3, 3), (1, 6, 3, 3)),
    "perm": ((0, 2, 1), (0, 2, 1, 3, 4)),
}
_SHUFFLED_SHAPES: tuple[Shape, ...] = ((2, 6), (1, 6, 3, 3), (6, 2), (2, 6, 1, 1))
# For rules that reshape what a broadcast repeats: what is repeated, and joined again.
_COPIED: Mapping[str, tuple[Any, ...]] = {
    "shape": ((2, 2, 2), (2, 4), (4, 2), (2, 2, 2, 2), (4, 2, 2)),
    "dims": ((0, 2), (0, 1), (1, 2), (0, 2, 3), (1, 2, 3)),
}
_COPIED_IMAGES: Mapping[str, tuple[Any, ...]] = {
    "shape": ((2, 2, 3, 2, 3), (2, 2, 6, 3), (1, 2, 2, 3, 3), (1, 4, 3, 3)),
    "dims": ((0, 1, 2, 4), (0, 1, 3, 4), (0, 2, 3, 4)),
}
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "strides": ((1, 1), (2, 2), (1, 2), (3, 3)),
    "dilations": ((1, 1), (2, 2), (1, 3)),
    "pads": ((1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (2, 2, 2, 2), (2, 2, 0, 0)),
    "kernel": ((3, 3), (1, 1), (3, 1), (2, 2)),
    "groups": (1, 2, 3, 4),
    "axis": (1, 0, 2, 3),
    "perm": (
        *((1, 0), (0, 2, 1), (0, 3, 1, 2), (0, 1, 3, 2)),
        *((0, 2, 3, 1), (0, 1), (2, 0, 1), (3, 1, 0, 2)),
    ),
    "sizes": ((2, 2), (1, 1), (1, 3), (3, 1)),
    "shape": ((2, 2), (1, 2, 3, 3), (2, 2, 3, 3), (2, 2, 1, 1)),
    "dims": (
        *((), (1,), (0,), (0, 1), (1, 2), (0, 2), (0, 2, 3), (0, 1, 2), (0, 1, 3)),
        *((0, 1, 2, 3), (0, 1, 2, 4)),
    ),
    "axes": ((1,), (0,), (2, 3), (2,), (0, 1)),
    "keep_dims": (True, False),
    "starts": (
        *((0, 0), (1, 0), (0, 1), (2, 1), (1, 2), (6, 3), (0,), (2,), (1, 0, 1)),
        *((0, 0, 1, 0), (0, 1, 0, 1), (0, 0, 0, 0)),
    ),
    "extents": (
        *((2, 2), (1, 1), (3, 2), (2, 3), (7, 2), (7, 5), (4, 1), (3,), (2, 1, 2)),
        *((1, 2, 2, 2), (1, 1, 2, 2), (1, 2, 1, 3)),
    ),
    "steps": ((1, 1), (2, 1), (1, 2), (3, 2), (1,), (2,), (1, 2, 1), (1, 1, 1, 1), (1, 1, 2, 1)),
    "size": (2,),
    "channels": (2,),
    "output_padding": ((0, 0), (1, 1), (0, 1)),
    "margins": (
        (0, 0, 1, 1, 0, 0, 1, 1),
        (0, 0, 0, 1, 0, 0, 2, 0),
        (0, 1, 1, 0, 0, 1, 0, 1),
        (0, 1, 0, 1),
        (0, 0, 0, 2),
        (1, 0, 1, 0),
        (0, 1, 0, 0, 0, 0, 0, 0),
    ),
    "transpose_a": (False, True),
    "transpose_b": (False, True),
    "count_include_pad": (True, False),
    "ceil_mode": (False, True),
}
# Whole numbers that follow the extents of operands.
_SCALED = ("groups", "sizes", "extents", "shape", "size", "channels")
_OF_SLICES = ("starts", "extents", "steps")
_OF_BROADCASTS = ("shape", "dims")
_IMAGE_RANK = 4
_MAX_ELEMENTS = 20_000
_MAX_TURNED = 6
_TRIES = 40


@dataclass(frozen=True)
class Outcome:
    """The result of a rule on one instance."""

    left: tuple[Shape, ...] | None  # shapes of the results; None where an op refuses
    right: tuple[Shape, ...] | None  # likewise
    equal: bool  # whether the values are

    @property
    def applies(self) -> bool:
        return self.left is not None


def attributes_of(node: Node, bindings: Bindings) -> Attributes | None:
    """A node's attributes as values; None where one cannot be computed."""
    try:
        return resolved_attributes(node.attributes, bindings)
    except UserError:
        return None


def shapes_of(terms: Sequence[Term], bindings: Bindings) -> tuple[Shape, ...] | None:
    """Shapes of the terms; None if the terms are not well-formed."""

    def results(node: Node, operands: list[Shape]) -> tuple[Shape, ...] | None:
        given = attributes_of(node, bindings)
        if given is None:
            return None
        if node.op in CONSTANTS:
            found = constant(node.op, given)
            return None if found is None else (found.shape[1:],)
        return infer(node.op, given, tuple(operands))

    found = interpreted(terms, bindings.__getitem__, results)
    return None if found is None else tuple(found)


def values_of(
    terms: Sequence[Term], bindings: Bindings, draws: int, seed: int
) -> list[Lanes] | None:
    """Exact values of well-formed terms on random variables; None if they are too large."""

    def variable(name: str) -> Lanes:
        return draw(bindings[name], draws, seed, name)

    def results(node: Node, operands: list[Lanes]) -> Sequence[Lanes] | None:
        given = attributes_of(node, bindings)
        assert given is not None
        if node.op in CONSTANTS:
            found = constant(node.op, given)
            return None if found is None else (found,)
        compiled = plan(node.op, given, tuple(o.shape[1:] for o in operands))
        if compiled is None or any(prod(s) > _MAX_ELEMENTS for s in compiled.shapes):
            return None
        return compiled.run(operands)

    return interpreted(terms, variable, results)


def outcome(rule: Rule, bindings: Bindings, seed: int = 0, draws: int = 3) -> Outcome:
    """Apply the rule on the instance without checking its conditions."""
    left = shapes_of(rule.left, bindings)
    right = shapes_of(rule.right, bindings) if left is not None else None
    if left is None or left != right:
        return Outcome(left, right, False)
    values = values_of((*rule.left, *rule.right), bindings, draws, seed)
    if values is None:
        return Outcome(None, None, False)
    half = len(rule.left)
    pairs = zip(values[:half], values[half:], strict=True)
    equal = all(bool(FIELD.equal(a, b).all()) for a, b in pairs)
    return Outcome(left, right, equal)


# --- finding instances --------------------------------------------------------------------------


def first_instances(rule: Rule, limit: int = 10_000) -> Iterator[Bindings]:
    """Small instances on which the left side is well-formed and the conditions hold.

    Args:
        limit: partial instances looked at; those with the first of `_VALUES` come first.
    """
    names, attributes = variables_of(rule.left), attribute_names(rule.left)
    pools = [_pool(a, rule) for a in attributes.values()]
    tried = count()
    for values in _first_values_first(pools):
        given = dict(zip(attributes, values, strict=True))
        for shapes in _shapes_for(rule.left, names, given, {}, tried):
            bindings = {**given, **shapes}
            if shapes_of(rule.left, bindings) is not None and holds(rule.where, bindings):
                yield bindings
        if next(tried) > limit:
            return


def _pool(attribute: str, rule: Rule) -> Sequence[Any]:
    """Values of an attribute of a rule; beside convolutions first those of images."""
    values, ops = _VALUES.get(attribute, (1, 0, 2, 3)), {node.op for node in nodes_of(rule.left)}
    if _shuffles(ops) and attribute in _SHUFFLED:
        return _SHUFFLED[attribute]
    if attribute in _COPIED and _copies(rule):
        return (_COPIED_IMAGES if any("conv" in op for op in ops) else _COPIED)[attribute]
    if attribute == "shape" and "broadcast" in ops:
        values = _BROADCAST_SHAPES
    if not any("conv" in op for op in ops):
        return values
    if attribute in (*_OF_SLICES, "perm"):
        return sorted(values, key=lambda value: len(value) != _IMAGE_RANK)
    if attribute in _OF_BROADCASTS:
        return sorted(values, key=lambda value: len(value) < _IMAGE_RANK)
    return values


def _shuffles(ops: Collection[str]) -> bool:
    return {"transpose", "reshape"} <= {*ops}


def _copies(rule: Rule) -> bool:
    """Whether a left side reshapes a broadcast."""
    reshaped = [node.operands[0] for node in nodes_of(rule.left) if node.op == "reshape"]
    return any(isinstance(term, Node) and term.op == "broadcast" for term in reshaped)


def nearest_instances(rule: Rule, count: int) -> list[Bindings]:
    """The first so many instances; looks farther where none of the nearest fits."""
    near = list(islice(first_instances(rule), count))
    return near or list(islice(first_instances(rule, _FAR), count))


def _first_values_first(pools: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """All combinations, ordered by distance from the first values."""

    def positions(left: Sequence[Sequence[Any]], steps: int) -> Iterator[tuple[Any, ...]]:
        if not left:
            yield from [()] if steps == 0 else []
            return
        for k, value in enumerate(left[0][: steps + 1]):
            yield from ((value, *rest) for rest in positions(left[1:], steps - k))

    for steps in range(1 + sum(len(pool) - 1 for pool in pools)):
        yield from positions(pools, steps)


def _shapes_for(
    terms: Sequence[Term],
    names: Sequence[str],
    given: Bindings,
    known: Bindings,
    tried: Iterator[int],
) -> Iterator[Bindings]:
    """Shapes of the variables, one after the other. Complete subterms must be well-formed."""
    left = [name for name in names if name not in known]
    if not left:
        yield known
        return
    complete = [
        node
        for node in nodes_of(tuple(terms))
        if left[0] in variables_of((node,)) and set(variables_of((node,))) <= {*known, left[0]}
    ]
    ops = {node.op for node in nodes_of(tuple(terms))}
    larger = _LARGER_SHAPES if "slice" in ops else _SHUFFLED_SHAPES if _shuffles(ops) else ()
    for shape in (*larger, *_SHAPES, *(_REPEATED if "broadcast" in ops else ())):
        next(tried)
        bound = {**known, left[0]: shape}
        if all(shapes_of((_whole(node),), {**given, **bound}) is not None for node in complete):
            yield from _shapes_for(terms, names, given, bound, tried)


def _whole(node: Node) -> Term:
    return Out(node, 0) if node.op == "split" else node


Position: TypeAlias = "tuple[str, int]"  # a variable (or attribute variable) and a position in it
Tie: TypeAlias = "tuple[tuple[Position, ...], bool]"
"""Numbers that change together; whether one is added to each, or all are scaled."""


class InstanceSampler:
    """Random instances of a left side around a first one.

    Args:
        lifts: also add dims in front of every variable that has two or more, or remove one.
    """

    def __init__(
        self, rule: Rule, base: Bindings, rng: np.random.Generator, lifts: bool = True
    ) -> None:
        self.rule, self.rng = rule, rng
        self.names = variables_of(rule.left)
        self.attributes = attribute_names(rule.left)
        self.parts = [n for n, a in self.attributes.items() if a in ("starts", "extents", "steps")]
        self.bases = [base]
        if lifts:
            self.bases += [b for b in self._lifted(base) if self._fits(b)]
        self.ties = [self._ties(base) for base in self.bases]
        self.plain = len(self.bases)
        for k in range(self.plain):
            turned = [t for t in self._turned(self.bases[k]) if self._fits(t[0])]
            for moved, order in turned[:_MAX_TURNED]:
                self.bases.append(moved)
                self.ties.append([self._turned_tie(tie, order) for tie in self.ties[k]])

    def _fits(self, bindings: Bindings) -> bool:
        return shapes_of(self.rule.left, bindings) is not None

    def _lifted(self, base: Bindings) -> Iterator[Bindings]:
        """The base with one or two more dims in front, or one fewer."""
        ranks = {len(base[name]) for name in self.names if base[name]}
        for more in (-1, 1, 2):
            if len(ranks) != 1 or not 1 <= min(ranks) + more <= 4:
                continue
            moved = dict(base)
            for name in self.names:
                shape = base[name]
                moved[name] = shape[-more:] if more < 0 else (2, 1)[:more] + shape if shape else ()
            for name, attribute in self.attributes.items():
                if attribute == "axis":
                    moved[name] = base[name] + more
                elif attribute == "shape" and len(base[name]) == min(ranks):
                    moved[name] = (2, 1)[:more] + base[name] if more > 0 else base[name][-more:]
            yield moved

    def _turned(self, base: Bindings) -> Iterator[tuple[Bindings, tuple[int, ...]]]:
        """The base with its dims permuted: what applied to one axis now applies to another."""
        axes = [name for name, attribute in self.attributes.items() if attribute == "axis"]
        ranks = {len(base[name]) for name in self.names if base[name]}
        if not axes or len(ranks) != 1:
            return
        rank = min(ranks)
        for order in permutations(range(rank)):
            if order != tuple(range(rank)):
                moved = dict(base)
                for name in self.names:
                    moved[name] = tuple(base[name][k] for k in order) if base[name] else ()
                for subset in ({*axes}, *({axis} for axis in axes if len(axes) > 1)):
                    turn = {a: order.index(base[a]) for a in subset if base[a] < rank}
                    yield {**moved, **turn}, order

    def _turned_tie(self, tie: Tie, order: tuple[int, ...]) -> Tie:
        """The same numbers for permuted dims."""
        positions = tuple(
            (name, k if name in self.attributes else order.index(k)) for name, k in tie[0]
        )
        return positions, tie[1]

    def _numbers(self, bindings: Bindings) -> list[Position]:
        """Every extent, and every attribute number that scales with extents."""
        found = [(name, k) for name in self.names for k in range(len(bindings[name]))]
        for name, attribute in self.attributes.items():
            if attribute in _SCALED:
                value = bindings[name]
                found += [(name, k) for k in range(len(value) if isinstance(value, tuple) else 1)]
        return found

    def _ties(self, base: Bindings) -> list[Tie]:
        """Sets of numbers that can change together while the left side stays well-formed."""
        scaled = [(positions, False) for positions in self._scaled_together(base)]
        return scaled + [(positions, True) for positions in self._grown_together(base)]

    def _grown_together(self, base: Bindings) -> list[tuple[Position, ...]]:
        """One part of a split, and what it is a part of: parts of unequal sizes come of these."""
        parts = [(n, k) for n, a in self.attributes.items() if a == "sizes" for k in range(2)]
        extents = [(name, k) for name in self.names for k in range(len(base[name]))]
        columns = list(self._columns(base))
        rest = [*((e,) for e in extents), *combinations(extents, 2), *columns]
        found = list[tuple[Position, ...]]()
        for some in (*((p,) for p in parts), *combinations(parts, 2)):
            for positions in ((*some, *more) for more in ((), *rest)):
                if any(set(known) <= set(positions) for known in found):
                    continue
                if self._fits(_changed(base, positions, lambda n: n + 1)):
                    found.append(positions)
        return found

    def _scaled_together(self, base: Bindings) -> list[tuple[Position, ...]]:
        """Minimal sets of numbers whose common scaling keeps the left side well-formed."""
        found = [tied for tied in self._columns(base) if self._fits(_scaled(base, tied, 2))]
        single = set[Position]()
        numbers = self._numbers(base)
        for many in (1, 2, 3, 4):
            rest = numbers if many < 3 else [n for n in numbers if n not in single]
            if many == 4 and len(rest) > 14:
                break
            for positions in combinations(rest, many):
                if positions in found or any(set(t) < set(positions) for t in found):
                    continue
                if self._fits(_scaled(base, positions, 2)):
                    found.append(positions)
                    single |= set(positions) if many == 1 else set()
        # Groups must divide what both sides have: with them, all that is free grows as well.
        free = tuple(sorted(single))
        given = [position for position in numbers if position[0] in self.attributes]
        extents = [p for p in numbers if p not in given and p not in single]
        joint = [(a, b, *free) for a in given for b in extents]
        return found + [t for t in joint if self._fits(_scaled(base, t, 2))]

    def _columns(self, base: Bindings) -> Iterator[tuple[Position, ...]]:
        """The same dim, counted from the end, of every variable that has it."""
        for k in range(1, 1 + max((len(base[name]) for name in self.names), default=0)):
            yield tuple((n, len(base[n]) - k) for n in self.names if len(base[n]) >= k)

    def systematic(self, thorough: bool = False) -> Iterator[Bindings]:
        """The first instances, each with every set of numbers that go together grown alone.

        And, but for those turned, every one of attributes that go with extents (groups) with every
        other set, and every two values of the other attributes; `thorough`, those of axes as well.
        """
        for number, (base, ties) in enumerate(zip(self.bases, self.ties, strict=True)):
            yield base
            turned = number >= self.plain
            grown = [
                _moved(base, tie, much) for tie in ties for much in ((2,) if turned else (2, 3))
            ]
            for tie in () if turned else ties:
                if any(name in self.attributes for name, _ in tie[0]):
                    grown += [
                        _moved(_moved(base, tie, a), other, b)
                        for other in ties
                        for a, b in ((2, 2), (4, 2), (4, 4))
                    ]
            grown += [] if turned else self._attribute_pairs(base, thorough)
            yield from (made for made in grown if self._is_small(made) and self._fits(made))

    def alone(self) -> Iterator[Bindings]:
        """The first instances with extents one larger, one at a time, and counts twice as large.

        A count (groups) grows with the fewest extents that allow it, and then each extent again.
        """
        for base in self.bases[: self.plain]:
            extents = [(name, k) for name in self.names for k in range(len(base[name]))]
            counts = [n for n, a in self.attributes.items() if a in _SCALED and base[n] != 1]
            many = [s for n in counts if isinstance(base[n], int) for s in self._with(base, n)]
            for some in ((), *many):
                grown = _scaled(base, some, 2)
                yield grown
                moved = (_changed(grown, [position], lambda n: n + 1) for position in extents)
                yield from (m for m in moved if self._is_small(m) and self._fits(m))

    def _with(self, base: Bindings, count: str) -> Iterator[tuple[Position, ...]]:
        """The minimal sets of a count and extents that can be scaled together."""
        extents = [(name, k) for name in self.names for k in range(len(base[name]))]
        for most in range(1, 4):
            sets = [((count, 0), *some) for some in combinations(extents, most)]
            fit = [positions for positions in sets if self._fits(_scaled(base, positions, 2))]
            if fit:
                yield from fit
                return

    def _attribute_pairs(self, base: Bindings, axes: bool) -> list[Bindings]:
        """The base with two of the attributes that are not counts at other values."""
        left_out = _SCALED if axes else (*_SCALED, "axis")
        names = [n for n, a in self.attributes.items() if a not in left_out]
        return [
            {**base, a: x, b: y}
            for a, b in combinations(names, 2)
            for x, y in product(*(self._values(n) for n in (a, b)))
        ]

    def _values(self, name: str) -> Sequence[Any]:
        return _pool(self.attributes[name], self.rule)

    def _is_small(self, bindings: Bindings) -> bool:
        return all(np.prod(bindings[name], dtype=np.int64) <= 400 for name in self.names)

    def draw(self) -> Bindings:
        """One instance on which the left side is well-formed."""
        which = int(self.rng.integers(len(self.bases))) if self.rng.random() < 0.5 else 0
        found, ties = self.bases[which], self.ties[which]
        if self.parts and self.rng.random() < 0.5:
            found = self._other_parts(found)
        for _ in range(int(self.rng.integers(1, 6))):
            moved = self._move(found, ties)
            if self._is_small(moved) and self._fits(moved):
                found = moved
        return found

    def _other_parts(self, base: Bindings) -> Bindings:
        """The base with other parts taken: one change at a time would not fit the rest."""
        pools = {
            name: [v for v in self._values(name) if len(v) == len(base[name])]
            for name in self.parts
        }
        for _ in range(_TRIES):
            drawn = {n: v[int(self.rng.integers(len(v)))] for n, v in pools.items() if v}
            if self._fits({**base, **drawn}):
                return {**base, **drawn}
        return base

    def _move(self, found: Bindings, ties: list[Tie]) -> Bindings:
        if self.attributes and (not ties or self.rng.random() < 0.4):
            names = sorted(self.attributes)
            name = names[int(self.rng.integers(len(names)))]
            pool = self._values(name)
            return {**found, name: pool[int(self.rng.integers(len(pool)))]}
        if not ties:
            return found
        positions, added = ties[int(self.rng.integers(len(ties)))]
        if added or self.rng.random() < 0.3:
            step = 1 if self.rng.random() < 0.7 else -1
            return _changed(found, positions, lambda n: max(1, n + step))
        factor = int(self.rng.integers(2, 4))
        return _scaled(found, positions, factor)


_SPATIAL = {"strides": 1, "dilations": 1, "kernel": 1, "output_padding": 1, "pads": 2}
"""Attributes with an entry for each spatial dim, and how many."""


def with_spatial_dims(rule: Rule, bindings: Bindings, count: int) -> Bindings | None:
    """An instance on images, made one on signals (`count` 1) or volumes (3); None for others.

    The last spatial dim goes, or stands twice: in images, kernels, and the attributes of windows.
    """
    attributes = attribute_names(rule.left)
    if not any(name in _SPATIAL for name in attributes.values()):
        return None
    moved = dict(bindings)
    for name in variables_of(rule.left):
        shape = bindings[name]
        if len(shape) == 4:
            moved[name] = shape[:3] if count == 1 else (*shape, shape[-1])
    for name, attribute in attributes.items():
        value = bindings[name]
        if attribute in _SPATIAL:
            each = [value[k : k + 2] for k in range(0, 2 * _SPATIAL[attribute], 2)]
            moved[name] = sum((v[:1] if count == 1 else (*v, v[-1]) for v in each), ())
        elif attribute == "margins":
            halves = (value[: len(value) // 2], value[len(value) // 2 :])
            moved[name] = sum((v[:-1] if count == 1 else (*v, v[-1]) for v in halves), ())
        elif isinstance(value, tuple) and attribute in ("shape", "axes", *_OF_SLICES):
            moved[name] = value[:-1] if count == 1 else (*value, value[-1] + (attribute == "axes"))
    return moved


def _moved(bindings: Bindings, tie: Tie, much: int) -> Bindings:
    """The numbers of a tie scaled by `much`, or with `much` - 1 added to each."""
    positions, added = tie
    if added:
        return _changed(bindings, positions, lambda n: n + much - 1)
    return _scaled(bindings, positions, much)


def _scaled(bindings: Bindings, positions: Sequence[Position], factor: int) -> Bindings:
    return _changed(bindings, positions, lambda n: n * factor)


def _changed(bindings: Bindings, positions: Sequence[Position], change: Any) -> Bindings:
    moved = dict(bindings)
    for name, k in positions:
        value = moved[name]
        if isinstance(value, tuple):
            if k < len(value):
                moved[name] = (*value[:k], change(value[k]), *value[k + 1 :])
        else:
            moved[name] = change(value)
    return moved
