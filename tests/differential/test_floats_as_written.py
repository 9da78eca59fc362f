"""Elementwise programs are computed in the order written: bit for bit the floats of numpy.

Each of the ops here is one exactly rounded operation in IEEE 754, so numpy is the specification.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import isoform
from isoform.dialects import reference
from isoform.dialects.types import Array

ROWS, COLUMNS = 6, 21
SHAPES = ((), (COLUMNS,), (ROWS, 1), (ROWS, COLUMNS))
# Half floats are computed in float32 and rounded: at their widths that is one rounding.
DTYPES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}
UNARY: dict[str, Callable[..., Array]] = {"Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt}
BINARY: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
}
COMPARE: dict[str, Callable[..., Array]] = {
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}


def constants(dtype: str) -> list[float]:
    """What rounding idioms, masks and specials are made of."""
    info = ml_dtypes.finfo(dtype)
    bits = info.nmant
    magic = 1.5 * 2.0**bits
    return [
        *(magic, -magic, 2.0**bits + 1, 2.0 ** (bits - 3), 2.0 ** (bits // 2 + 1) + 1),
        *(
            float(info.max),
            float(info.min),
            float(info.smallest_normal),
            float(info.smallest_normal) / 4,
        ),
        *(float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1.0, -1.0, 2.0, 0.5),
        *(1 / 3, 0.1, 3.0, 1e-3, 7.0),
    ]


class Programs:
    """Grow a random ONNX program and its values side by side."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng, self.dtype = random.Random(seed), dtype
        self.numbers = constants(dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.data: list[onnx.TensorProto] = []
        self.values: dict[str, Array] = {}
        draw = np.random.default_rng(seed)
        self.inputs = {
            f"x{k}": self.drawn(draw, shape)
            for k, shape in enumerate(((ROWS, COLUMNS), (COLUMNS,)))
        }
        self.values |= self.inputs

    def drawn(self, draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Numbers of a few magnitudes, and specials here and there."""
        scale = np.asarray(self.rng.choices((1.0, 1e-3, 1e4), k=int(np.prod(shape)))).reshape(shape)
        drawn = (draw.standard_normal(shape) * scale).astype(self.dtype)
        picks = draw.random(shape) < 0.1
        some = np.asarray(self.rng.choices(self.numbers, k=drawn.size)).reshape(shape)
        return np.where(picks, some.astype(self.dtype), drawn)

    def node(self, op: str, value: Array, *names: str, **attributes: object) -> str:
        """Add a node; its value is known."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [name], name=name, **attributes))
        self.values[name] = np.asarray(value)
        return name

    def initializer(self, data: Array, name: str) -> None:
        """Add a constant to the model."""
        kind = DTYPES[self.dtype]
        self.data.append(helper.make_tensor(name, kind, data.shape, data.tobytes(), raw=True))

    def number(self) -> str:
        """A constant, alone or a tensor of several."""
        shape = self.rng.choice(SHAPES)
        numbers = self.rng.choices(self.numbers, k=int(np.prod(shape)))
        if self.rng.random() < 0.6:
            numbers = numbers[:1] * len(numbers)
        data = np.asarray(numbers, self.dtype).reshape(shape)
        name = f"c{len(self.data)}"
        self.initializer(data, name)
        self.values[name] = data
        return name

    def operand(self) -> str:
        """A float: mostly a late one, so that chains grow; sometimes a constant."""
        if self.rng.random() < 0.3:
            return self.number()
        floats = [n for n, v in self.values.items() if n[0] != "c" and self.fits(v)]
        return self.rng.choice(floats[-4:] if self.rng.random() < 0.6 else floats)

    def fits(self, value: Array) -> bool:
        """Whether it is a float that broadcasts with the others: not one left transposed."""
        return value.dtype == self.dtype and value.shape[-2:] in SHAPES

    def step(self) -> str:
        """One more op. The sign of a zero that max or min gives is open: adding 0.0 settles it."""
        kind, a, b = self.rng.random(), self.operand(), self.operand()
        x, y = self.values[a], self.values[b]
        if kind < 0.6:
            op = self.rng.choice(list(BINARY))
            made = self.node(op, BINARY[op](x, y), a, b)
            if op not in ("Max", "Min"):
                return made
            zero = f"c{len(self.data)}"
            self.initializer(np.zeros((), self.dtype), zero)
            return self.node("Add", self.values[made] + np.zeros((), self.dtype), made, zero)
        if kind < 0.75:
            op = self.rng.choice(list(UNARY))
            return self.node(op, UNARY[op](x), a)
        if kind < 0.85:
            op = self.rng.choice(list(COMPARE))
            mask = self.node(op, COMPARE[op](x, y), a, b)
            return self.node("Where", np.where(self.values[mask], x, y), mask, a, b)
        if kind < 0.93 and x.ndim == 2:
            turned = self.node("Transpose", x.T, a, perm=[1, 0])
            op = self.rng.choice(("Add", "Mul"))
            c = self.number()
            while self.values[c].ndim:
                c = self.number()
            found = self.node(op, BINARY[op](x.T, self.values[c]), turned, c)
            return self.node("Transpose", self.values[found].T, found, perm=[1, 0])
        return self.node("Reciprocal", np.ones((), self.dtype) / x, a)

    def model(self, steps: int) -> onnx.ModelProto:
        """The program of so many steps: its last floats are outputs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            last = [self.step() for _ in range(steps)][-3:]
        self.outputs = list(dict.fromkeys(last))
        kind = DTYPES[self.dtype]
        inputs = [helper.make_tensor_value_info(n, kind, v.shape) for n, v in self.inputs.items()]
        outputs = [
            helper.make_tensor_value_info(n, kind, self.values[n].shape) for n in self.outputs
        ]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.data)
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def bits(value: Array) -> Array:
    """The bits, one for all NaN."""
    settled = np.where(np.isnan(value), np.asarray(np.nan, value.dtype), value)
    return settled.view(f"u{value.dtype.itemsize}")


def check(seed: int, dtype: str, folder: Path) -> None:
    """Compile and run one program."""
    programs = Programs(seed, dtype)
    model = programs.model(random.Random(seed).randrange(2, 16))
    onnx.save(model, folder / "model.onnx")
    session = isoform.compile(isoform.load(folder / "model.onnx"), threads=1, effort="quick")
    found = session(**programs.inputs)
    for name in programs.outputs:
        wanted = programs.values[name]
        wrong = bits(found[name]) != bits(wanted)
        assert not wrong.any(), (seed, name, found[name][wrong][:3], wanted[wrong][:3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_elementwise_programs_give_the_bits_of_numpy(dtype: str, tmp_path: Path) -> None:
    for seed in range(25):
        check(seed, dtype, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_random_elementwise_programs_give_the_bits_of_numpy(
    dtype: str, tmp_path: Path
) -> None:
    for seed in range(1000, 1500):
        check(seed, dtype, tmp_path)


def test_where_no_tap_of_a_transposed_convolution_lands_infinity_makes_no_nan() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 16, 4, 5)).astype(np.float32)
    w = rng.standard_normal((16, 8, 1, 2)).astype(np.float32)
    x[0, 2, 0, 0] = np.inf
    build = isoform.GraphBuilder()
    ways = {"strides": [3, 3], "pads": [0] * 4, "dilations": [1, 1], "output_padding": [0, 0]}
    y = build.conv_transpose(build.input("x", x.shape), build.weight("w", w), **ways)
    build.output("y", y)
    program = build.build()
    found = isoform.compile(program, threads=1, effort="quick")(x=x)["y"]
    wanted = np.zeros(found.shape, np.float32)
    for r, s in np.ndindex(4, 5):
        wanted[0, :, 3 * r, 3 * s : 3 * s + 2] = np.einsum("c,cfk->fk", x[0, :, r, s], w[:, :, 0])
    for value in (found, reference.run(program, {"x": x})["y"]):
        assert np.array_equal(np.isnan(value), np.isnan(wanted))
        assert np.allclose(value, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
