"""Random chains of ONNX nodes over all dtypes, computed step by step in numpy and ml_dtypes.

Nothing here imports isoform. Every operation is one that has a single right answer in each dtype
(no function of the math library): results are compared to the bit. A half float is rounded after
each node, an integer wraps at its own width. Steps whose answer ONNX leaves open (a cast of what an
integer cannot hold, a division of integers by zero) are not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

BF16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BF16)
FLOATS = (*HALVES, np.dtype(np.float32), np.dtype(np.float64))
INTEGERS = tuple(np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
BOOL = np.dtype(np.bool_)
NUMBERS = {np.dtype(np.float16): TensorProto.FLOAT16, BF16: TensorProto.BFLOAT16}

_BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
}
_UNARY = {"Neg": np.negative, "Abs": np.abs, "Relu": lambda x: np.maximum(x, x.dtype.type(0))}
_FLOAT_UNARY = {
    "Sqrt": np.sqrt,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Reciprocal": lambda x: x.dtype.type(1) / x,
    "Sign": np.sign,
}


def number(dtype: np.dtype) -> int:
    """The ONNX number of a dtype."""
    return NUMBERS.get(dtype) or helper.np_dtype_to_tensor_dtype(dtype)


@dataclass
class Chain:
    """A model, what it is fed, and every value that it computes."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    has_half: bool


def random_chain(
    seed: int, length: int = 12, count: int = 24, constant: bool = False, outputs: int = 3
) -> Chain:
    """A chain of `length` nodes on vectors of `count` elements, drawn from the seed.

    Args:
        constant: whether the data are initialisers; a float input is then added to each output.
    """
    draw = _Draw(np.random.default_rng(seed), count)
    for dtype in (FLOATS[2], FLOATS[draw.rng.integers(4)], INTEGERS[draw.rng.integers(4)]):
        draw.data(dtype)
    with np.errstate(all="ignore"):
        while len(draw.nodes) < length:
            draw.step()
    names = list(draw.values)[-outputs:]
    return draw.chain(names, constant)


class _Draw:
    """Values by name, and the nodes that made them."""

    def __init__(self, rng: np.random.Generator, count: int):
        self.rng, self.count = rng, count
        self.values: dict[str, np.ndarray] = {}
        self.given: dict[str, np.ndarray] = {}
        self.nodes: list[onnx.NodeProto] = []

    def data(self, dtype: np.dtype) -> None:
        """Data of several sizes."""
        if dtype.kind == "i":
            info = np.iinfo(dtype)
            array = self.rng.integers(info.min, info.max, self.count, dtype, endpoint=True)
            small = self.rng.integers(-9, 10, self.count)
            array = np.where(self.rng.random(self.count) < 0.5, array, small).astype(dtype)
        else:
            scale = 10.0 ** self.rng.integers(-6, 7, self.count)
            array = (self.rng.normal(size=self.count) * scale).astype(np.float32)
            with np.errstate(over="ignore"):
                array = array.astype(dtype)
        name = f"x{len(self.given)}"
        self.given[name] = self.values[name] = array

    def step(self) -> None:
        """One more node, where what is drawn has one right answer."""
        names = list(self.values)
        name = names[int(self.rng.integers(max(0, len(names) - 4), len(names)))]
        x = self.values[name]
        kind = self.rng.random()
        if kind < 0.45:
            self._cast(name, x)
        elif x.dtype == BOOL:
            self._where(name, x)
        elif kind < 0.7:
            self._unary(name, x)
        else:
            self._binary(name, x)

    def _add(self, op: str, inputs: list[str], value: np.ndarray, **attributes: object) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.values[name] = value

    def _cast(self, name: str, x: np.ndarray) -> None:
        targets = [*FLOATS, *HALVES, *INTEGERS, BOOL]
        target = targets[int(self.rng.integers(len(targets)))]
        if target == x.dtype or {target, x.dtype} == {BF16, BOOL}:
            return
        if target.kind == "i" and x.dtype in FLOATS:
            info, wide = np.iinfo(target), x.astype(np.float64)
            if not (np.abs(wide) < min(float(info.max), -float(info.min)) / 2).all():
                return
        # From float64 a half float comes by float32, as onnxruntime and processors have it.
        source = x.astype(np.float32) if target in HALVES and x.dtype != BOOL else x
        self._add("Cast", [name], source.astype(target), to=number(target))

    def _unary(self, name: str, x: np.ndarray) -> None:
        table = dict(_UNARY) | (_FLOAT_UNARY if x.dtype in FLOATS else {})
        if x.dtype in INTEGERS:
            del table["Relu"]
        op = list(table)[int(self.rng.integers(len(table)))]
        self._add(op, [name], table[op](x).astype(x.dtype))

    def _binary(self, name: str, x: np.ndarray) -> None:
        same = [n for n, v in self.values.items() if v.dtype == x.dtype]
        other = same[int(self.rng.integers(len(same)))]
        y = self.values[other]
        if self.rng.random() < 0.2:
            self._add("Greater", [name, other], x > y)
            return
        op = list(_BINARY)[int(self.rng.integers(len(_BINARY)))]
        if op == "Div" and x.dtype in INTEGERS:
            return
        self._add(op, [name, other], _BINARY[op](x, y).astype(x.dtype))

    def _where(self, name: str, x: np.ndarray) -> None:
        kinds = sorted({v.dtype for v in self.values.values() if v.dtype != BOOL}, key=str)
        dtype = kinds[int(self.rng.integers(len(kinds)))]
        same = [n for n, v in self.values.items() if v.dtype == dtype]
        a, b = (same[int(self.rng.integers(len(same)))] for _ in range(2))
        self._add("Where", [name, a, b], np.where(x, self.values[a], self.values[b]))

    def chain(self, names: list[str], constant: bool) -> Chain:
        shape = [self.count]
        info = helper.make_tensor_value_info
        nodes, inputs, expected = list(self.nodes), dict(self.given), {}
        stored: list[onnx.TensorProto] = []
        for name in names:
            value, out = self.values[name], name
            if constant:  # what is read at run time comes last, and changes nothing
                out = f"{name}_{'kept' if value.dtype != BOOL else 'flag'}"
                nodes.append(helper.make_node("Where", ["yes", name, name], [out]))
            expected[out] = value
        if constant:
            stored = [
                helper.make_tensor(n, number(a.dtype), shape, a.tobytes(), raw=True)
                for n, a in inputs.items()
            ]
            inputs = {"yes": np.ones(self.count, BOOL)}
        graph = helper.make_graph(
            nodes,
            "chain",
            [info(n, number(a.dtype), shape) for n, a in inputs.items()],
            [info(n, number(a.dtype), shape) for n, a in expected.items()],
            stored,
        )
        opset = [helper.make_opsetid("", 18)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=9)
        half = any(a.dtype in HALVES for a in self.values.values())
        return Chain(model, inputs, expected, half)


def unequal(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> str:
    """The first element that is not the same number, in words; empty where all are."""
    for name, want in expected.items():
        got = np.asarray(found[name])
        if got.dtype == np.float64 and want.dtype != np.float64:
            got = got.astype(want.dtype)
        wide = np.float64 if want.dtype in FLOATS else want.dtype
        a, b = want.astype(wide), got.astype(wide)
        wrong = ~((a == b) | ((a != a) & (b != b)))
        if wrong.any():
            k = int(np.argmax(wrong))
            return f"'{name}' ({want.dtype}) at {k}: expected {want[k]!r}, found {got[k]!r}"
    return ""
