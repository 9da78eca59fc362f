"""Values of canonical scopes in float64 on drawn inputs, to choose pairs worth a proof.

They prove nothing. Equal values agree on every input except for rounding, so no proof is tried for
a pair that differs here. Infinite literals are a large number here: they are compared, never added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from ...dialects.canonical_scope import Leaf, Scope, Source
from ...dialects.control import weights_inside
from ...dialects.errors import UserError
from ...dialects.op_reference import evaluate_op
from ...dialects.types import Array, element_of, is_bool, is_float, is_unsigned
from .evaluator import Evaluator, TooLargeError, dependency_order, sources_of
from .float_lane import HUGE, DrawnFloats
from .residues import Lanes
from .static_gather import DataOf

# Limits for the elements of all kept values, and for one scope's points: beyond, values are
# unknown.
MAX_KEPT = 1 << 27
_EXACT = 2.0**53  # smaller integers are exact


@dataclass
class Sampler:
    """Values of sources of both programs on one draw of the inputs.

    Attributes:
        inputs, data: by token, the drawn inputs, and the available weights and literals.
        calls: by token, ops that no scope expresses, which of their results a leaf is, and the data
            of weights inside.
        check: called regularly; raises to stop.
    """

    inputs: Mapping[str, Callable[[], Array]]
    data: dict[str, Callable[[], Array]]
    check: Callable[[], None] = lambda: None
    seed: int = 0
    calls: dict[str, tuple[Operation, int, DataOf]] = field(
        default_factory=dict[str, tuple[Operation, int, DataOf]]
    )
    kept: int = 0  # elements of all kept values
    evaluator: Evaluator = field(init=False)
    unknown: set[str] = field(default_factory=set[str])  # tokens of values beyond the limits

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(DrawnFloats((2,), self.seed), check=self.check)

    def value(self, source: Source) -> Array | None:
        """The array of a source; None if it is unknown."""
        known = self.evaluator.memo
        for node in dependency_order(source, frozenset(known)):
            if node.token in known:
                continue
            below = _below(node)
            if self.unknown.intersection(below) or not self._compute(node):
                self.unknown.add(node.token)
        return None if source.token in self.unknown else known[source.token][0]

    def called(self, made: Leaf, op: Operation, number: int, data: DataOf) -> None:
        """Add the result of an op that no scope expresses; one of constants alone is a constant."""
        self.calls[made.token] = op, number, data
        random = " random " in made.identity
        if not random and all(self._is_constant(s) for s in made.operands):
            self.data[made.token] = lambda: self._call(made)[0]

    def _is_constant(self, source: Source) -> bool:
        leaves = [node for node in dependency_order(source) if isinstance(node, Leaf)]
        return all(s.token in self.data or s.data is not None for s in leaves)

    def _compute(self, node: Source) -> bool:
        size = 0 if node.token in self.data else math.prod(node.shape)
        if self.kept + size > MAX_KEPT:
            return False
        try:
            self.check()
            made = self._leaf(node) if isinstance(node, Leaf) else None
            if made is None:
                with np.errstate(all="ignore"):
                    made = self.evaluator.compute(node)
        except (UserError, TooLargeError, MemoryError, ValueError, TypeError, LookupError):
            return False
        if np.isnan(made).any():
            return False
        if isinstance(node.element, IntegerType) and not is_bool(node.element):
            if np.abs(made).max(initial=0.0) >= _EXACT:
                return False
            made = _wrapped(made, node.element)
        self.evaluator.memo[node.token] = made
        self.kept += size
        return True

    def _leaf(self, node: Leaf) -> Lanes | None:
        given = self.inputs.get(node.token) or self.data.get(node.token)
        if given is not None:
            array = np.asarray(given())
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                array = np.nan_to_num(array, nan=math.nan, posinf=HUGE, neginf=-HUGE)
            return array[None]
        return self._call(node) if node.token in self.calls else None

    def _call(self, node: Leaf) -> Lanes:
        """The result of an op. Raises UserError if an operand is unknown."""
        op, number, data = self.calls[node.token]
        operands: list[Array] = []
        for operand, source in zip(op.operands, node.operands, strict=True):
            array = self.value(source)
            if array is None:
                raise UserError("an operand is not known")
            element = element_of(operand)
            whole = not is_float(element)
            kind = np.bool_ if is_bool(element) else np.int64 if whole else np.float64
            operands.append(np.rint(array).astype(kind) if whole else array)
        weights = weights_inside(op, data)
        return np.asarray(evaluate_op(op, operands, weights)[number], np.float64)[None]


def _wrapped(values: Lanes, element: IntegerType) -> Lanes:
    """Wrap integers to the range of a type."""
    size = 2.0**element.width.data
    low = 0.0 if is_unsigned(element) else -size / 2
    return values if size > _EXACT else (values - low) % size + low


def _below(node: Source) -> set[str]:
    if isinstance(node, Leaf):
        return {s.token for s in node.operands}
    assert isinstance(node, Scope)
    return {s.token for s in sources_of(node.expr)}


__all__ = ["Sampler"]
