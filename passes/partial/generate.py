"""Enumerate mutants: programs of at most some operators over the inputs of a multilinear program.

Values are built in levels: level k holds the results of k operators on the inputs without
multiplying them (moves, concatenations, constant averaging weights). Each pair of values that
together contain every input once is multiplied by every operator that takes them. The last reshape
and transpose is not enumerated: `lookup.py` finds it, for each output of the program separately.

Pruning: equal values are one (their residues are hashed); a chain of moves is one copy; an
input that the program multiplies is used once; a product must contain all inputs, be large enough
for the right part of the outputs, and take at most `most_work` times the program's work; a mutant
is kept if at most `most_wrong` of each output's positions are wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32

from ...dialects.canonical_types import Extents, Leaf, Scope, Source, leaf
from ...dialects.index import Index
from ..derivation.lift import leaves_of
from ..equivalence.evaluator import Evaluator, TooLargeError
from ..equivalence.prove import OutOfTimeError
from ..equivalence.residues import Lanes, Residues, draw_primes
from ..search_result import StopReason
from ..work_clock import charge, now
from . import operators
from .lookup import ResultKeys, Sieve, fit, keys, occurrences, wrong_at
from .operators import ProductOperator
from .point_evaluation import At, points_of, product_at, read_at
from .region import Mask, field_mask
from .split_points import mask_by_split_points
from .values import Inputs, InputValue, drawn
from .views import Step, is_redundant, moves, swaps, view

# How wrong positions are found: every position is compared, or PET's few of each box.
MaskTest: TypeAlias = Literal["every", "split-points"]

Kinds: TypeAlias = Literal["both", "exact", "partial"]


# Positions of a product that are computed before all of it is.
_SAMPLED = 96
_SECONDS_A_PRODUCT = 1e-3
_SECONDS_A_RESULT = 2e-2


@dataclass(frozen=True)
class Options:
    """Limits and settings of a generation.

    Attributes:
        depth: operators of a mutant, including the product and the last view.
        most_wrong: largest share of an output's positions that may be wrong.
        most_work: multiplications of a mutant over those of the program, at most.
        seconds: of wall-clock time; mutants: products looked at; bytes: of values that are kept.
        gaps: zeros that a merge may put between blocks.
        strides, dilations, groups: of the convolutions to try.
        test: how wrong positions are found.
        kinds: which mutants a search takes: exact ones, the others, or both.
        forms: allowed forms of corrections (correct.py).
    """

    depth: int = 4
    most_wrong: float = 0.5
    most_work: float = 4.0
    seconds: float = 30.0
    mutants: int = 100_000
    bytes: int = 1 << 29
    gaps: tuple[int, ...] = (1, 2)
    strides: tuple[int, ...] = (1, 2)
    dilations: tuple[int, ...] = (1, 2)
    groups: tuple[int, ...] = (1, 2, 4)
    test: MaskTest = "every"
    kinds: Kinds = "both"
    forms: tuple[str, ...] = ("plain", "library", "pieces", "fused")
    seed: int = 0


@dataclass(frozen=True)
class Mutant:
    """A program whose outputs are found in one product, wrong where the masks are.

    Attributes:
        build: makes the product from given inputs (perhaps with other numbers of channels).
        operands: makes the operands and gives the operator.
        index: for each output, its positions in the product.
        text: the operators, in order; depth: their number, including the last view.
    """

    build: Callable[[Inputs], Scope]
    index: tuple[tuple[Index, ...], ...]
    masks: tuple[Mask, ...]
    text: tuple[str, ...]
    depth: int
    work: float
    operands: Callable[[Inputs], tuple[ProductOperator, Source, Source]] | None = None

    @property
    def name(self) -> str:
        """The operators as one text."""
        return " | ".join(self.text)

    @property
    def wrong(self) -> float:
        """The share of wrong positions over all outputs."""
        return sum(int(m.sum()) for m in self.masks) / sum(m.size for m in self.masks)

    @property
    def exact(self) -> bool:
        return not any(m.any() for m in self.masks)


@dataclass
class GenerationCounts:
    """Counters of a generation."""

    values: int = 0  # factors evaluated
    products: int = 0  # of two values
    kept: int = 0  # mutants
    stopped: StopReason = "finished"  # why it ended


class Generator:
    """Mutants of one program, whose outputs are the roots.

    Args:
        dims: the dims of each input that views may change; None for all.
    """

    def __init__(
        self,
        roots: Sequence[Scope],
        options: Options,
        dims: Mapping[Leaf, Sequence[int]] | None = None,
    ) -> None:
        self.dims = dict(dims or {})
        self.roots = tuple(roots)
        self.options = options
        self.inputs = tuple(dict.fromkeys(leaf for root in roots for leaf in leaves_of(root)))
        self.same: Inputs = {leaf: leaf for leaf in self.inputs}
        self.field = Residues(draw_primes(2, options.seed), options.seed)
        self.evaluator = Evaluator(self.field, check=self._check)
        self.work = sum(work_of(root) for root in self.roots)
        self.count = GenerationCounts()
        self.bytes = 0
        self.deadline = math.inf

    def run(self) -> Iterator[Mutant]:
        """Every mutant kept, in order of depth."""
        self.deadline = now() + self.options.seconds
        try:
            yield from self._run()
        except OutOfTimeError:
            self.count.stopped = "time"
        except TooLargeError:
            self.count.stopped = "memory"

    def _check(self) -> None:
        """Raise OutOfTimeError past the deadline."""
        if now() > self.deadline:
            raise OutOfTimeError

    @cached_property
    def targets(self) -> list[ResultKeys]:
        """Find the outputs in products. Raises OutOfTimeError."""
        found: list[ResultKeys] = []
        for root in self.roots:
            self._check()
            charge(_SECONDS_A_RESULT)
            found.append(ResultKeys(keys(self.evaluator.value(root), self.field)))
        return found

    @cached_property
    def sieves(self) -> list[Sieve]:
        right = 1.0 - self.options.most_wrong
        return [Sieve(target, right) for target in self.targets]

    def _run(self) -> Iterator[Mutant]:
        """Raises OutOfTimeError."""
        everything = frozenset(self.inputs)
        for depth, left, right in self._pairs_by_depth():
            self._check()
            if not left.holds or left.holds & right.holds:
                continue
            if left.holds | right.holds != everything:
                continue
            for product in self._products(left, right):
                self._check()
                self.count.products += 1
                charge(_SECONDS_A_PRODUCT)
                if self.count.products > self.options.mutants:
                    self.count.stopped = "steps"
                    return
                mutant = self._look(depth, left, right, product)
                if mutant is not None:
                    self.count.kept += 1
                    yield mutant

    # --- programs ---

    def _pairs_by_depth(self) -> Iterator[tuple[int, InputValue, InputValue]]:
        """Values with the depth of a product of them, fewest operators first.

        Those of the last level are made one after the other, and not kept.
        """
        first = [self._input(leaf, f"input {k}") for k, leaf in enumerate(self.inputs)]
        levels, seen = [first], {value.name() for value in first}
        self.count.values = len(first)
        if self.options.depth > 1:
            yield from ((2, left, right) for left in first for right in first)
        for total in range(1, self.options.depth - 1):
            kept: list[InputValue] = []
            last = total == self.options.depth - 2
            for value in self._next(levels):
                # It is multiplied by an input, so it must hold all others.
                if last and len(value.holds) < len(self.inputs) - 1:
                    continue
                if (name := value.name()) in seen:
                    continue
                seen.add(name)
                self.count.values += 1
                if not last and self._has_room(value):
                    kept.append(value)
                for other in first:
                    yield total + 2, value, other
                    yield total + 2, other, value
            levels.append(kept)
            for k in range(total - 1, 0, -1):
                pairs = itertools.product(levels[k], levels[total - k])
                yield from ((total + 2, left, right) for left, right in pairs)

    def _has_room(self, value: InputValue) -> bool:
        """Whether there is memory for one more value."""
        self.bytes += value.nbytes
        if self.bytes > self.options.bytes:
            self.count.stopped = "memory"
        return self.bytes <= self.options.bytes

    def _products(self, left: InputValue, right: InputValue) -> Iterator[ProductOperator]:
        options = self.options
        for product in operators.products(options.strides, options.dilations, options.groups):
            shape = product.shape(left.shape, right.shape)
            if shape is None:
                continue
            size = math.prod(shape)
            enough = all(size >= (1 - options.most_wrong) * t.keys.size for t in self.targets)
            if enough and size * _inner(product, right.shape) <= options.most_work * self.work:
                yield product

    # --- values ---

    def _input(self, leaf: Leaf, name: str) -> InputValue:
        def build(inputs: Inputs) -> Source:
            return inputs[leaf]

        return InputValue(self.evaluator.value(leaf), frozenset([leaf]), name, build, ())

    def _next(self, levels: Sequence[Sequence[InputValue]]) -> Iterator[InputValue]:
        for value in levels[-1]:
            if value.steps is not None:
                yield from self._moved(value, value.steps)
            if len(self.roots) > 1 and len(value.shape) >= 3:
                yield self._beside([value, value], 1)
        if len(levels) == 1:
            yield from self._constants()
            yield from self._many(levels[0])
        for k in range(len(levels)):
            yield from self._pairs(levels[k], levels[len(levels) - 1 - k])

    def _moved(self, value: InputValue, steps: tuple[Step, ...]) -> Iterator[InputValue]:
        """One more move; a chain of moves of an input is one copy of it."""
        (leaf,) = value.holds
        # Channels keep their place: a convolution sums over them in any order.
        free = self.dims.get(leaf, range(len(value.shape)))
        dims = [d for d in free if d != 1 or len(value.shape) < 4]
        for move in (*moves(value.shape, dims, self.options.gaps), *swaps(value.shape)):
            if is_redundant(value.shapes, steps, move):
                continue
            chain = (*steps, move)

            def build(inputs: Inputs, chain: tuple[Step, ...] = chain) -> Source:
                return view(inputs[leaf], chain)

            yield InputValue(value.made, value.holds, f"{value.text}, {move}", build, chain)

    def _constants(self) -> Iterator[InputValue]:
        """Averaging weights, if the only input is an image."""
        image = self.inputs[0]
        if len(self.inputs) > 1 or len(image.shape) != 4:
            return
        for size in (2, 3):
            for depthwise in (False, True):

                def build(inputs: Inputs, size: int = size, depthwise: bool = depthwise) -> Source:
                    x = inputs[image]
                    return operators.averaging_weights(x.shape[1], size, depthwise, x)

                name = f"averaging weights {size}" + (" depthwise" if depthwise else "")
                yield InputValue(self.evaluator.value(build(self.same)), frozenset(), name, build)

    def _pairs(
        self, lefts: Iterable[InputValue], rights: Sequence[InputValue]
    ) -> Iterator[InputValue]:
        """Two values side by side, along each of the first two dims."""
        for left in lefts:
            for right in rights:
                if left.holds and right.holds and not left.holds & right.holds:
                    yield from self._each_beside([left, right])

    def _many(self, inputs: Sequence[InputValue]) -> Iterator[InputValue]:
        """Three or more inputs side by side: one operator, as for two."""
        for count in range(3, len(inputs) + 1):
            for parts in itertools.combinations(inputs, count):
                yield from self._each_beside(parts)

    def _each_beside(self, parts: Sequence[InputValue]) -> Iterator[InputValue]:
        """Values side by side along each of the first two dims, as they are and in equal blocks."""
        for dim, blocks in itertools.product(range(2), (False, True)):
            if operators.joined([p.shape for p in parts], dim, blocks=blocks) is not None:
                yield self._beside(parts, dim, blocks)

    def _beside(self, parts: Sequence[InputValue], dim: int, blocks: bool = False) -> InputValue:
        def build(inputs: Inputs) -> Source:
            made = [p.build(inputs) for p in parts]
            return operators.side_by_side_scope(made, dim, blocks=blocks)

        leaves = [leaf(f"part {k}", p.shape, f32) for k, p in enumerate(parts)]
        given = {x.token: p.values for x, p in zip(leaves, parts, strict=True)}
        beside = operators.side_by_side_scope(leaves, dim, blocks=blocks)
        made = Evaluator(self.field, check=self._check, given=given).value(beside)
        text = " beside ".join(f"({p.text})" for p in parts) + f" along d{dim}"
        text += " in blocks" if blocks else ""
        return InputValue(made, frozenset[Leaf]().union(*(p.holds for p in parts)), text, build)

    # --- outputs ---

    def _passes(self, left: InputValue, right: InputValue, product: ProductOperator) -> bool:
        """Whether a sample of a product contains enough of each output."""
        shape, read = _sampled(product, left.shape, right.shape)
        factors = [v.sample(*at) for v, at in zip((left, right), read, strict=True)]
        sample, size = keys(product_at(self.field, factors), self.field), math.prod(shape)
        return all(sieve.passes(sample, size) for sieve in self.sieves)

    def _product(self, left: InputValue, right: InputValue, product: ProductOperator) -> Lanes:
        """All residues of a product. Raises TooLargeError."""
        a, b = leaf("left", left.shape, f32), leaf("right", right.shape, f32)
        given = {a.token: left.values, b.token: right.values}
        return Evaluator(self.field, check=self._check, given=given).value(product.build(a, b))

    def _look(
        self, depth: int, left: InputValue, right: InputValue, product: ProductOperator
    ) -> Mutant | None:
        """The mutant whose outputs are found in a product; None if too little of them is."""
        if not self._passes(left, right, product):
            return None
        values = keys(self._product(left, right, product), self.field)
        indices: list[tuple[Index, ...]] = []
        for target in self.targets:
            self._check()
            found = occurrences(target, values)
            if np.isnan(found[0]).mean() > self.options.most_wrong:
                return None
            self._check()
            index = fit(found)
            if index is None:
                return None
            indices.append(tuple(index))

        def operands(inputs: Inputs) -> tuple[ProductOperator, Source, Source]:
            return product, left.build(inputs), right.build(inputs)

        def build(inputs: Inputs) -> Scope:
            return product.build(left.build(inputs), right.build(inputs))

        if self.options.test == "every":
            pairs = zip(indices, self.targets, strict=True)
            masks = [wrong_at(index, values, target.keys) for index, target in pairs]
        else:
            masks = self._tested(build(self.same), indices)
        if any(mask.mean() > self.options.most_wrong for mask in masks):
            return None

        text = (left.text, right.text, str(product))
        work = values.size * _inner(product, right.shape) / self.work
        return Mutant(build, tuple(indices), tuple(masks), text, depth, work, operands)

    def _tested(self, made: Scope, indices: Sequence[tuple[Index, ...]]) -> list[Mask]:
        """The masks by PET's test."""
        evaluator = Evaluator(self.field)
        return [
            mask_by_split_points(root, operators.gathered(made, index, root.shape), evaluator).mask
            for root, index in zip(self.roots, indices, strict=True)
        ]

    def masks(self, mutant: Mutant) -> list[Mask]:
        """Where the outputs, built as scopes, are wrong: must equal the mutant's masks."""
        made = mutant.build(self.same)
        evaluator = Evaluator(self.field)
        return [
            field_mask(root, operators.gathered(made, index, root.shape), evaluator)
            for root, index in zip(self.roots, mutant.index, strict=True)
        ]


@lru_cache(maxsize=512)
def _sampled(product: ProductOperator, x: Extents, w: Extents) -> tuple[Extents, list[At]]:
    """The shape of a product, and the reads of both operands at a sample of its positions."""
    shape, (sums, *indices) = product.shape(x, w), product.reads(x, w)
    assert shape is not None
    points = points_of(drawn(shape, _SAMPLED), sums)
    return shape, [read_at(*given, points) for given in zip(indices, (x, w), strict=True)]


def work_of(root: Scope) -> float:
    """Multiplications of a scope of products."""
    return float(sum(math.prod(root.shape + term.sums) for term in root.expr.terms))


def _inner(product: ProductOperator, weights: Sequence[int]) -> int:
    """Multiplications for one element of a product's result."""
    if isinstance(product, operators.Conv):
        return math.prod(weights[1:])
    return weights[-2] if isinstance(product, operators.Matmul) else 1
