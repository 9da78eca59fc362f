"""ONNX values during import: tensors in the IR, data known at import time, or both.

Shape computations are in `data` and leave no op behind. A value becomes IR only when an op of the
program reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.dims import is_symbolic
from ...dialects.errors import UserError
from ...dialects.types import Array, element_of, from_numpy, is_float, shape_of

# Data up to these sizes are read and computed with at import time: shapes, axes, pads, scales.
# Larger data are weights, which stay in the IR.
KNOWN_INTEGERS = 1 << 20
KNOWN_FLOATS = 16
# Known data up to this size go into the IR text, larger ones into the weight store.
LITERAL = 16


class NotNative(Exception):
    """Raised by a converter: this use of an op has no composition; it is expanded or opaque."""


class NotConstant(UserError):
    """An operand must be known at compile time, but depends on the program's inputs.

    Cause: the operand of a reshape, a slice, a TopK or the like is computed from data, so
    shapes are unknown until the program runs.

    Example: Reshape whose second operand is an input of the model.

    Fix: make that value an initialiser, or fold it with the exporter's constant folding.
    """

    def __init__(self, value: str, what: str, where: str):
        super().__init__(
            f"{what} '{value}' must be a constant: shapes would depend on data", where=where
        )
        self.value = value


class NeedsNumbers(UserError):
    """Data decide sizes beside dims that are symbols: the model is imported for each shape."""


def as_float(single: Array) -> float | None:
    """The number of an array of one; None if it is an integer that no float64 is (beyond 2^53)."""
    number = single.ravel()[0]
    if single.dtype.kind in "iu" and int(float(number)) != int(number):
        return None
    return float(number)


# The most sizes that become a tensor as they are, whatever they will be.
_SIZES = 8


class OnnxValue:
    """One ONNX value. `element` is None for types that exist only as known data (strings).

    A `traced` value keeps the expression it was made from: nothing is computed with it.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        element: Attribute | None,
        *,
        ssa: SSAValue | None = None,
        load: Callable[[], Array] | None = None,
        weight: bool = False,
        traced: bool = False,
    ):
        self.name = name
        self.shape = shape
        self.element = element
        self._ssa = ssa
        self._load = load
        self._weight = weight
        self._traced = traced
        self._array: Array | None = None

    @classmethod
    def of_ssa(cls, name: str, ssa: SSAValue) -> OnnxValue:
        return cls(name, shape_of(ssa), element_of(ssa), ssa=ssa)

    @classmethod
    def of_array(cls, name: str, array: Array) -> OnnxValue:
        """Data computed at import time."""
        if array.dtype == object and all(isinstance(v, int) for v in array.ravel()):
            array = array.astype(np.int64)  # of a shape computation with symbols elsewhere
        try:
            element = i64 if is_symbolic(array) else from_numpy(array.dtype)
        except (UserError, TypeError):
            element = None
        value = cls(name, array.shape, element, load=lambda: array)
        value._array = array
        return value

    @property
    def computed(self) -> SSAValue | None:
        """The value in the IR, if it is there already."""
        return self._ssa

    @property
    def has_data(self) -> bool:
        """Whether it is data of the file or computed at import, of any size."""
        return self._load is not None

    def renamed(self, name: str) -> OnnxValue:
        """The same value under another name (Identity); weights keep their first name."""
        if self._ssa is not None or self._weight:
            return self
        return OnnxValue(name, self.shape, self.element, load=self._load)

    def apart(self) -> OnnxValue:
        """The same data for another program, where it is not in the IR yet."""
        return OnnxValue(
            self.name,
            self.shape,
            self.element,
            load=self._load,
            weight=self._weight,
            traced=self._traced,
        )

    @property
    def is_known(self) -> bool:
        """Whether the data may be computed with now."""
        if self._load is None or self._traced:
            return False
        limit = KNOWN_FLOATS if self.element is None or is_float(self.element) else KNOWN_INTEGERS
        return math.prod(self.shape) <= limit

    @property
    def is_readable(self) -> bool:
        """Whether the data are available, including floats: for ops whose shapes depend on them."""
        held = self._load is not None and not self._traced
        return held and math.prod(self.shape) <= KNOWN_INTEGERS

    def array(self) -> Array:
        """The data of a known value, read once."""
        assert self._load is not None
        if self._array is None:
            self._array = self._load()
        return self._array

    def fix(self) -> None:
        """Make numbers of symbolic data: those are guards of the program. Weights are numbers."""
        if not self._weight and is_symbolic(self.array()):
            numbers = np.asarray([int(v) for v in self.array().ravel()], np.int64)
            self._array = numbers.reshape(self.array().shape)

    def ssa(self, build: GraphBuilder, fresh: Callable[[str], str], where: str) -> SSAValue:
        """The value in the IR, added on first use; `fresh` makes weight names unique.

        Raises:
            UserError: the element type does not exist in isoform.
        """
        if self._ssa is None:
            self._ssa = self._materialise(build, fresh, where)
        return self._ssa

    def _materialise(
        self, build: GraphBuilder, fresh: Callable[[str], str], where: str
    ) -> SSAValue:
        if self.element is None:
            dtype = None if self._load is None else self.array().dtype
            kind = "string" if dtype is None or dtype.kind in "OUS" else str(dtype)
            raise UserError(f"operand '{self.name}' has unsupported type {kind}", where=where)
        assert self._load is not None
        if not self._weight and self.array().size <= _SIZES and is_symbolic(self.array()):
            return _numbers(build, self.array())
        self.fix()
        if not self._weight and math.prod(self.shape) <= LITERAL:
            return build.constant(np.asarray(self.array()), self.element)
        return build.weight(fresh(self.name), self._load, self.shape, self.element)


def _numbers(build: GraphBuilder, array: Array) -> SSAValue:
    """Sizes as a tensor: positions that begin at each, one of each."""
    parts = [build.iota(start=[n], size=[1], step=[1]) for n in array.ravel().tolist()]
    line = parts[0] if len(parts) == 1 else build.concat(*parts, axis=0)
    return build.reshape(line, shape=list(array.shape))
