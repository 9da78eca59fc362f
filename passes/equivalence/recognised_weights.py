"""Weights of one program that the other computes from its own weights and literals.

A tool that folds constants leaves only numbers, of one sum or of half a network. Where they equal a
value of the other program that depends on no input, in any layout, the weight stands for it.
Distances are counted in units: the unit at a position is the effect of changing each weight by up
to an ulp, or the number's own ulp if that is more. Beyond `most_ulps` of these, or beyond a part of
the largest value, it is another constant.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.canonical_scope import Source
from ...dialects.discrete import WeightsOnlyValues, discrete_constants
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.types import Array, element_of, is_float, shape_of
from ...dialects.weights_only import depends_on_weights_only, is_source
from .layout_search import Digits, layout, positions_of, through
from .roundings import most_ulps, unit
from .translate import Translator, whole

# A value is chosen if it is this near, relative to the largest, or within the units that count as
# rounding: nothing farther is recognised.
_NEAR = 1e-5
# How many random changes of the weights are tried.
_DRAWS = 6
_LEAST = 2


@dataclass(frozen=True)
class NearValue:
    """A value near a weight: its numbers in the weight's shape, and which of them differ."""

    source: Source
    numbers: Array
    far: Array


class ConstantValues:
    """The float values of a program that depend on weights and literals alone.

    Args:
        translator: for the program's ops; it gives the source of each weight.
    """

    def __init__(self, program: Program, translator: Translator):
        self.program = program
        self.translator = translator
        self.ops: list[Operation] = []
        known: set[SSAValue] = set()
        for op in program.main.body.block.ops:
            absent = isinstance(op, WeightOp) and op.key not in program.weights
            if not absent and (is_source(op) or depends_on_weights_only(op, known)):
                known.update(op.results)
                self.ops.append(op)
        self.by_size: dict[object, list[SSAValue]] = {}
        for result in (r for op in self.ops if not is_source(op) for r in op.results):
            if is_float(element_of(result)):
                key = math.prod(shape_of(result)), element_of(result)
                self.by_size.setdefault(key, []).append(result)

    @cached_property
    def sources(self) -> Mapping[SSAValue, Source]:
        """The values as sources."""
        self.translator.ops(self.ops, discrete_constants(self.ops, self.program.weights))
        return self.translator.values

    @cached_property
    def exact(self) -> WeightsOnlyValues:
        """The values in exact arithmetic."""
        return self._values(self.program.weights)

    @cached_property
    def moved(self) -> list[WeightsOnlyValues]:
        """The values with each weight changed by up to an ulp."""
        return [self._values(_Moved(self.program.weights, draw)) for draw in range(_DRAWS)]

    def _values(self, weights: Mapping[str, Array]) -> WeightsOnlyValues:
        made = WeightsOnlyValues(weights, Arithmetic.EXACT)
        made.update(discrete_constants(self.ops, self.program.weights))
        return made

    def find(self, array: Array, like: Source) -> tuple[Source, float] | None:
        """The value equal to a weight, in the weight's shape, and their distance in units.

        Args:
            like: a source with the weight's shape and element type.
        """
        allowed = most_ulps(array.dtype)
        near = max(_NEAR, allowed * unit(like.element))
        for value, digits, apart in self._near(array, like, near):
            most = float(apart.max()) if np.isfinite(apart).all() else math.inf
            if most <= allowed:
                return through(self.sources[value], digits, whole(like)), most
        return None

    def nearest(self, array: Array, like: Source, near: float) -> NearValue | None:
        """The first value near a weight, and where they differ by more than rounding.

        Args:
            near: relative to the largest number.
        """
        for value, digits, apart in self._near(array, like, near):
            laid = self.exact[value].reshape(-1)[positions_of(digits)].reshape(array.shape)
            far = ~(apart <= most_ulps(array.dtype))
            return NearValue(self.sources[value], laid, far.reshape(array.shape))
        return None

    def _near(
        self, array: Array, like: Source, near: float
    ) -> Iterator[tuple[SSAValue, Digits, Array]]:
        """Values near a weight, their layout in it, and the distance of each number in units."""
        among = self.by_size.get((array.size, like.element), [])
        if not among or array.size < _LEAST or not np.isfinite(array).all():
            return
        wanted = array.astype(np.float64)
        for value in among:
            try:
                exact = self.exact[value]
                digits = layout(wanted, exact, near) if np.isfinite(exact).all() else None
                if digits is not None:
                    yield value, digits, self._distances(array, value, positions_of(digits))
            except UserError:  # an op that cannot be evaluated
                continue

    def _distances(self, array: Array, value: SSAValue, order: Array) -> Array:
        """The distance of each number of a weight from a value in some dim order, in units."""
        exact = self.exact[value].reshape(-1)[order]
        found = array.reshape(-1)
        wrong = np.abs(found.astype(np.float64) - exact)
        if not wrong.any():
            return wrong
        unit = np.spacing(np.abs(found)).astype(np.float64)
        for moved in self.moved:
            unit = np.maximum(unit, np.abs(moved[value].reshape(-1)[order] - exact))
        with np.errstate(all="ignore"):
            return wrong / unit


class _Moved(dict[str, Array]):
    """Weights whose floats are changed by up to an ulp."""

    def __init__(self, weights: Mapping[str, Array], draw: int):
        super().__init__()
        self.weights = weights
        self.draw = draw

    def __contains__(self, name: object) -> bool:
        return name in self.weights

    def __missing__(self, name: str) -> Array:
        array = self.weights[name]
        if array.dtype.kind in "iub":
            return array
        rng = np.random.default_rng((self.draw, zlib.crc32(name.encode())))
        unit = np.spacing(np.abs(array)).astype(np.float64)
        return array.astype(np.float64) + rng.uniform(-1.0, 1.0, array.shape) * unit


__all__ = ["ConstantValues"]
