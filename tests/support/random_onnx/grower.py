"""Grow a model node by node, every node run by onnxruntime as it is added."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.random_onnx.case import SLACK, Array, Value, epsilon, is_float
from support.random_onnx.runtime import make_model, session_of

OPSETS = (13, 17, 18, 20, 21, 22)
FLOATS = tuple(np.dtype(t) for t in (np.float32, np.float64, np.float16))
INTEGERS = tuple(np.dtype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16"))
WIDE = tuple(np.dtype(t) for t in ("uint32", "uint64"))
BOOL = np.dtype(bool)
# Results are kept below this many elements and this magnitude.
MOST_ELEMENTS = 6000
LARGEST = 3e3
# Ops that onnxruntime computes by way of float64, also on integers: past 2^53 it rounds.
BY_FLOATS = ("Pow", "ReduceL2", "ReduceProd")
# Ops that compute positions in their operand: onnxruntime does it in float32.
AT_POSITIONS = ("GridSample", "Resize")

Filter = Callable[[Value], bool]


class Grower:
    """A model so far, and draws from one random generator."""

    def __init__(self, seed: int, attempt: int = 0):
        self.rng = random.Random(seed + (attempt << 40))
        self.numpy = np.random.default_rng((seed, 0x4F, attempt))
        self.opset = self.rng.choice(OPSETS)
        self.special = 0.0  # share of input elements that are infinite, NaN or zero
        self.values: list[Value] = []  # what other nodes may read
        self.made: dict[str, Value] = {}  # every result of a node
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[Value] = []
        self.initializers: list[Value] = []
        self._names = 0

    # --- draws ---

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, fits: Filter | None = None) -> Value | None:
        """An existing value, recent ones more often; None if none fits."""
        found = [v for v in self.values if fits is None or fits(v)]
        if not found:
            return None
        recent = found[-6:]
        return self.rng.choice(recent if self.chance(0.7) else found)

    def extent(self) -> int:
        return self.rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 16, 17))

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 2, 2, 3, 3, 4, 4)) if rank is None else rank
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if np.prod(shape) <= MOST_ELEMENTS // 3:
                return shape

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with the given one."""
        kept = [1 if self.chance(0.25) else n for n in shape]
        return tuple(kept[self.rng.randint(0, len(kept)) if self.chance(0.4) else 0 :])

    def data(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Data as weights and inputs have them: normal floats, small integers."""
        if dtype == BOOL:
            return np.asarray(self.numpy.integers(0, 2, shape) > 0)
        if not is_float(dtype):
            low = 0 if dtype.kind == "u" else -6
            return np.asarray(self.numpy.integers(low, 7, shape)).astype(dtype)
        return np.asarray(self.numpy.normal(size=shape)).astype(dtype)

    def odd_data(self, shape: Sequence[int], dtype: np.dtype) -> Array:
        """Data of the model's first inputs: sometimes infinite, NaN or zero."""
        drawn = self.data(shape, dtype)
        if not self.special or not is_float(dtype):
            return drawn
        odd = self.numpy.random(shape) < self.special
        special = self.numpy.choice([np.inf, -np.inf, np.nan, 0.0], shape)
        return np.where(odd, special, drawn).astype(dtype)

    # --- sources ---

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _noisy(self, array: Array, units: float = 1.0) -> tuple[Array, Array]:
        """Two copies moved by a few (times `units`) last places, in opposite directions.

        Next to large elements small ones are moved by more: kernels sum in float32 in any order,
        and approximate functions to an absolute error.
        """
        if not is_float(array.dtype) or not array.size:
            return array, array
        wide = array.astype(np.float64)
        with np.errstate(all="ignore"):
            scale = np.abs(wide) + 0.1 * np.abs(wide[np.isfinite(wide)]).max(initial=0.0)
            step = self.numpy.choice((-4.0, -1.0, 1.0, 4.0), array.shape) * epsilon(array.dtype)
            step = step * units
            return (
                (wide + scale * step).astype(array.dtype),
                (wide - scale * step).astype(array.dtype),
            )

    def input(self, array: Array) -> Value:
        value = Value(self._name("x"), array, (array, array), is_input=True)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def weight(self, array: Array, keep: bool = False) -> Value:
        """An initialiser. Where `keep`, other nodes may read it too."""
        array = np.asarray(array)
        value = Value(self._name("w"), array, (array, array))
        self.initializers.append(value)
        if keep:
            self.values.append(value)
        return value

    def ints(self, numbers: Sequence[int] | int) -> Value:
        return self.weight(np.asarray(numbers, np.int64))

    def source(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        """A fresh weight or input."""
        array = self.data(shape, dtype)
        return self.input(array) if self.chance(0.25) else self.weight(array)

    # --- nodes ---

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: int = 1,
        *,
        keep: bool = True,
        domain: str = "",
        **attributes: Any,
    ) -> list[Value] | None:
        """Append a node if onnxruntime runs it and its results are tame; its results, else None."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        names = [self._name("v") for _ in range(outputs)]
        node = helper.make_node(
            op_type,
            [v.name if v is not None else "" for v in inputs],
            names,
            name=self._name(op_type),
            domain=domain,
            **{k: v for k, v in attributes.items() if v is not None and v != []},
        )
        return self._keep([node], names, [v for v in inputs if v is not None], keep)

    def through(self, value: Value, op_type: str, *steps: dict[str, Any]) -> list[Value] | None:
        """A chain of one op whose values in between need not be read by anybody else."""
        nodes, name = [], value.name
        for attributes in steps:
            new = self._name("v")
            nodes.append(
                helper.make_node(op_type, [name], [new], self._name(op_type), **attributes)
            )
            name = new
        return self._keep(nodes, [name], [value], True)

    def _keep(
        self, nodes: Sequence[onnx.NodeProto], names: Sequence[str], read: list[Value], keep: bool
    ) -> list[Value] | None:
        given = list({v.name: v for v in read}.values())
        outer = set().union(*(outer_names(node) for node in nodes)) - {v.name for v in given}
        given += [v for v in (*self.values, *self.initializers) if v.name in outer]
        given = list({v.name: v for v in given}.values())
        found = self._run(nodes, names, given) if self._valid(nodes) else None
        if found is None:
            return None
        op_type = nodes[-1].op_type
        units = 1.0 if op_type not in AT_POSITIONS else float(max(given[0].shape, default=1))
        results = []
        for name, (array, one, other, *far) in zip(names, zip(*found, strict=True), strict=True):
            if not self._tame(array, one, other) or _jumps(array, one, other, far):
                return None
            if op_type in BY_FLOATS and array.dtype.kind == "i" and np.any(_is_large(array)):
                return None
            twins = self._noisy(one, units)[0], self._noisy(other, units)[1]
            grain = max((v.grain for v in given), default=0.0)
            results.append(Value(name, array, twins, grain=grain))
        self.nodes.extend(nodes)
        self.made.update((v.name, v) for v in results)
        if keep:
            self.values.extend(results)
        return results

    def _valid(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        """Whether the specification has them at this opset: onnxruntime is more lenient.

        What reads values from outside is not a node by itself, and is old in every opset drawn.
        """
        context = onnx.checker.C.CheckerContext()
        context.ir_version, context.opset_imports = 10, {"": self.opset}
        try:
            for node in nodes:
                if not outer_names(node):
                    onnx.checker.check_node(node, context)
        except onnx.checker.ValidationError:
            return False
        return True

    def _tame(self, array: Array, one: Array, other: Array) -> bool:
        """Not too large; integers do not hang on rounding; floats are finite or meant to be odd."""
        if array.size > MOST_ELEMENTS or (array.size == 0 and not self.chance(0.1)):
            return False
        if not is_float(array.dtype):
            return bool(np.array_equal(array, one) and np.array_equal(array, other))
        wide = array.astype(np.float64)
        if not np.all(np.isfinite(wide)):
            return bool(self.special)
        return bool(np.abs(wide).max(initial=0.0) < LARGEST)

    def _run(
        self, nodes: Sequence[onnx.NodeProto], names: Sequence[str], given: Sequence[Value]
    ) -> list[list[Array]] | None:
        """Results on the values, on both twins, and on operands as far off as results may be.

        None where onnxruntime refuses.
        """
        graph = helper.make_graph(
            list(nodes),
            "node",
            [
                helper.make_tensor_value_info(
                    v.name, helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape)
                )
                for v in given
            ],
            [onnx.ValueInfoProto(name=name) for name in names],
        )
        session = session_of(make_model(graph, self.opset))
        if session is None:
            return None
        found = []
        fed = {v.name: (v.array, *v.twins, *far_off(v)) for v in given}
        for run in range(5):
            try:
                found.append(session.run(None, {name: arrays[run] for name, arrays in fed.items()}))
            except Exception:  # noqa: BLE001 - whatever onnxruntime refuses is not drawn
                return None
        if not all(isinstance(a, np.ndarray) for run in found for a in run):
            return None
        return found


def far_off(value: Value) -> tuple[Array, Array]:
    """Two values as far from the exact one as another right result may be."""
    if not value.is_float:
        return value.array, value.array
    exact = value.array.astype(np.float64)
    with np.errstate(all="ignore"):
        steps = [SLACK * (twin.astype(np.float64) - exact) for twin in value.twins]
        first, second = (np.where(np.isfinite(s), exact + s, exact) for s in steps)
    return first.astype(value.dtype), second.astype(value.dtype)


def _jumps(array: Array, one: Array, other: Array, far: Sequence[Array]) -> bool:
    """Whether the op jumps within what its operands may be off: a tie of rounding, a comparison.

    There the twins say too little: they may both be on the right side.
    """
    if not is_float(array.dtype):
        return not all(np.array_equal(array, f) for f in far)
    exact, *near = (a.astype(np.float64) for a in (array, one, other))
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(n - exact) for n in near], axis=0, initial=0.0)
        scale = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
        bound = 16 * SLACK * (spread + epsilon(array.dtype) * (np.abs(exact) + scale))
        moved = [np.abs(f.astype(np.float64) - exact) > bound for f in far]
    return bool(np.any(moved))


def _is_large(array: Array) -> Array:
    """Where integers are at the end of their type, or not all floats have them."""
    info = np.iinfo(array.dtype)
    wide = array.astype(np.float64)
    return (array == info.min) | (array == info.max) | (np.abs(wide) >= 2.0**53)


def outer_names(node: onnx.NodeProto) -> set[str]:
    """Names that subgraphs of a node read from outside."""
    names: set[str] = set()
    for attribute in node.attribute:
        graph = attribute.g
        inside = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        for inner in graph.node:
            names |= set(inner.input) - inside
            inside |= set(inner.output)
        names |= {v.name for v in graph.output} - inside
    return names - {""}


def initializer(value: Value) -> TensorProto:
    """The tensor of a weight."""
    array = value.array
    if array.dtype == ml_dtypes.bfloat16:
        return helper.make_tensor(
            value.name, TensorProto.BFLOAT16, array.shape, array.tobytes(), raw=True
        )
    return numpy_helper.from_array(array, value.name)
