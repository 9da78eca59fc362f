"""The models of benchmarks/operators.py: one operator, or a few that users write together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = Any
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Nodes as ONNX text, one a line, whose last result is `y`; arrays by name."""

    nodes: str
    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]

    @property
    def feeds(self) -> Mapping[str, Array]:
        return self.inputs

    def model(self) -> onnx.ModelProto:
        """The model, of opset 18."""
        nodes = [onnx.parser.parse_node(line) for line in self.nodes.strip().split("\n")]
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.inputs.items()
        ]
        weights = [numpy_helper.from_array(a, n) for n, a in self.weights.items()]
        outputs = [onnx.ValueInfoProto(name="y")]
        graph = helper.make_graph(nodes, "operator", inputs, outputs, weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        return onnx.shape_inference.infer_shapes(made, data_prop=True)


class Draw:
    """Random arrays, the same in each run."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def floats(self, shape: Sequence[int]) -> Array:
        return (0.5 * self.rng.standard_normal(shape)).astype(np.float32)

    def places(self, high: int, *shape: int) -> Array:
        return self.rng.integers(0, high, shape)


def cases() -> dict[str, Case]:
    """All rows by name."""
    draw = Draw()
    found: dict[str, Case] = {}
    for family in (
        _convolutions,
        _transposed,
        _products,
        _rows,
        _reductions,
        _elementwise,
        _moves,
        _positions,
        _windows,
        _recurrent,
    ):
        found |= family(draw)
    return found


def of(draw: Draw, nodes: str, inputs: Mapping[str, Any], weights: Mapping[str, Any]) -> Case:
    """A case; a tuple of sizes is an array of floats."""

    def arrays(given: Mapping[str, Any]) -> dict[str, Array]:
        return {
            n: draw.floats(a) if isinstance(a, tuple) else np.asarray(a) for n, a in given.items()
        }

    return Case(nodes, arrays(inputs), arrays(weights))


def _convolution(
    draw: Draw, x: Shape, w: Shape, *, data: bool = False, **attributes: int | list[int]
) -> Case:
    """A convolution with bias and relu; filters may be data. `pads` may be one number."""
    rank = len(w) - 2
    lists = {k: v if isinstance(v, list) else [v] * rank for k, v in attributes.items()}
    group = lists.pop("group", [1])[0]
    pads = lists.pop("pads", [0] * rank)
    settings = ", ".join(f"{k} = {v}" for k, v in {**lists, "pads": pads * 2}.items())
    nodes = f"c = Conv <group = {group}, {settings}> (x, w, b)\ny = Relu (c)"
    filters = {"w": w}
    inputs = {"x": x, **(filters if data else {})}
    return of(draw, nodes, inputs, {"b": w[:1], **({} if data else filters)})


def _convolutions(draw: Draw) -> dict[str, Case]:
    def conv(x: Shape, w: Shape, **given: Any) -> Case:
        return _convolution(draw, x, w, **given)

    found = {
        "conv 3x3 64-64 @56": conv((1, 64, 56, 56), (64, 64, 3, 3), pads=1),
        "conv 3x3 s2 128-256 @28": conv((1, 128, 28, 28), (256, 128, 3, 3), pads=1, strides=2),
        "conv 3x3 67-93 @28, odd channels": conv((1, 67, 28, 28), (93, 67, 3, 3), pads=1),
        "conv 3x3 batch 8 64-64 @28": conv((8, 64, 28, 28), (64, 64, 3, 3), pads=1),
        "conv 5x5 48-64 @35": conv((1, 48, 35, 35), (64, 48, 5, 5), pads=2),
        "conv 7x7 s2 3-64 @224": conv((1, 3, 224, 224), (64, 3, 7, 7), pads=3, strides=2),
        "conv 16x16 s16 3-768 @224 (ViT)": conv((1, 3, 224, 224), (768, 3, 16, 16), strides=16),
        "conv 1x7 128-128 @17": conv((1, 128, 17, 17), (128, 128, 1, 7), pads=[0, 3]),
        "conv 3x3 dilation 2 256-256 @28": conv(
            (1, 256, 28, 28), (256, 256, 3, 3), pads=2, dilations=2
        ),
        "conv 3x3 32 groups 128 @56": conv((1, 128, 56, 56), (128, 4, 3, 3), pads=1, group=32),
        "conv 3x3 3-16 @32 (CIFAR)": conv((1, 3, 32, 32), (16, 3, 3, 3), pads=1),
        "conv 3x3 filters are data 64-64 @56": conv(
            (1, 64, 56, 56), (64, 64, 3, 3), pads=1, data=True
        ),
        "conv 3x3 s2 filters are data 32-64 @56": conv(
            (1, 32, 56, 56), (64, 32, 3, 3), pads=1, strides=2, data=True
        ),
        "conv 3x3 depthwise filters are data 64 @56": conv(
            (1, 64, 56, 56), (64, 1, 3, 3), pads=1, group=64, data=True
        ),
        "conv1d 3 256-256 @1500 (Whisper)": conv((1, 256, 1500), (256, 256, 3), pads=1),
        "conv1d 3 dilation 8 64-64 @4000": conv((1, 64, 4000), (64, 64, 3), pads=8, dilations=8),
        "conv1d 31 depthwise 256 @500": conv((1, 256, 500), (256, 1, 31), pads=15, group=256),
        "conv3d 3x3x3 32-64 @16x56x56": conv((1, 32, 16, 56, 56), (64, 32, 3, 3, 3), pads=1),
        "conv3d 1x3x3 depthwise 64 @8x56x56": conv(
            (1, 64, 8, 56, 56), (64, 1, 1, 3, 3), pads=[0, 1, 1], group=64
        ),
    }
    for c, f, n in ((256, 64, 56), (64, 256, 56), (512, 128, 28), (160, 960, 7), (3, 64, 56)):
        found[f"conv 1x1 {c}-{f} @{n}"] = conv((1, c, n, n), (f, c, 1, 1))
    found["conv 1x1 batch 8 64-64 @28"] = conv((8, 64, 28, 28), (64, 64, 1, 1))
    for taps, c, n, step in (
        (3, 144, 56, 1),
        (3, 96, 112, 2),
        (3, 32, 112, 1),
        (5, 480, 14, 1),
        (5, 576, 14, 2),
        (7, 96, 56, 1),
        (3, 960, 7, 1),
    ):
        found[f"depthwise {taps}x{taps} s{step} {c} @{n}"] = conv(
            (1, c, n, n), (c, 1, taps, taps), pads=taps // 2, strides=step, group=c
        )
    found["depthwise 3x3 dilation 2 256 @32"] = conv(
        (1, 256, 32, 32), (256, 1, 3, 3), pads=2, dilations=2, group=256
    )
    return found


def _transposed(draw: Draw) -> dict[str, Case]:
    def node(x: Shape, w: Shape, settings: str) -> Case:
        return of(draw, f"y = ConvTranspose <{settings}> (x, w)", {"x": x}, {"w": w})

    two, four = "strides = [2, 2]", "strides = [2, 2], pads = [1, 1, 1, 1]"
    return {
        "transposed 4x4 s2 128-64 @32": node((1, 128, 32, 32), (128, 64, 4, 4), four),
        "transposed 2x2 s2 256-128 @28 (UNet)": node((1, 256, 28, 28), (256, 128, 2, 2), two),
        "transposed 4x4 s2 64 groups @56": node(
            (1, 64, 56, 56), (64, 1, 4, 4), f"{four}, group = 64"
        ),
        "transposed 4x4 s2 8 groups 64 @28": node(
            (1, 64, 28, 28), (64, 8, 4, 4), f"{four}, group = 8"
        ),
    }


def _products(draw: Draw) -> dict[str, Case]:
    def product(a: Shape, b: Shape, *, data: bool = False, left: str = "", right: str = "") -> Case:
        lines = [f"s = Transpose <perm = {left}> (a)"] if left else []
        lines += [f"t = Transpose <perm = {right}> (b)"] if right else []
        lines.append(f"y = MatMul ({'s' if left else 'a'}, {'t' if right else 'b'})")
        inputs = {"a": a, **({"b": b} if data else {})}
        return of(draw, "\n".join(lines), inputs, {} if data else {"b": b})

    einsum = 'y = Einsum <equation = "{}"> (a, b)'
    attention = """t = Transpose <perm = [0, 1, 3, 2]> (k)
s = MatMul (q, t)
m = Mul (s, scale)
p = Softmax <axis = -1> (m)
y = MatMul (p, v)"""
    scale = {"scale": np.float32(0.125)}

    def attended(q: Shape, k: Shape) -> Case:
        return of(draw, attention, {"q": q, "k": k, "v": k}, scale)

    heads, swapped = (1, 12, 197, 64), "[0, 1, 3, 2]"
    return {
        "product 128x768x3072": product((128, 768), (768, 3072)),
        "product 1024^3, both data": product((1024, 1024), (1024, 1024), data=True),
        "product 1x4096x4096": product((1, 4096), (4096, 4096)),
        "product 4x4096x4096": product((4, 4096), (4096, 4096)),
        "product 8x1024x4096": product((8, 1024), (1024, 4096)),
        "product 37x129x515, odd": product((37, 129), (129, 515)),
        "product 4096x1024x1": product((4096, 1024), (1024, 1)),
        "product 4096x256x3": product((4096, 256), (256, 3)),
        "product 16x65536x16, both data": product((16, 65536), (65536, 16), data=True),
        "product of a transposed left 512x1024x1024": product(
            (1024, 512), (1024, 1024), left="[1, 0]"
        ),
        "product of a transposed right 128x768x768, data": product(
            (128, 768), (768, 768), data=True, right="[1, 0]"
        ),
        "products 12 of 197x64x197": product((12, 197, 64), (12, 64, 197), data=True),
        "products 4096 of 8x8x8": product((4096, 8, 8), (4096, 8, 8), data=True),
        "keys of a cache 32 of 1x64x2048": product(
            (1, 32, 1, 64), (1, 32, 2048, 64), data=True, right=swapped
        ),
        "values of a cache 32 of 1x2048x64": product(
            (1, 32, 1, 2048), (1, 32, 2048, 64), data=True
        ),
        "Einsum bhid,bhjd->bhij 12x197x64": of(
            draw, einsum.format("bhid,bhjd->bhij"), {"a": heads, "b": heads}, {}
        ),
        "Einsum bhwc,hkc->bhwk 12x14x14x64": of(
            draw, einsum.format("bhwc,hkc->bhwk"), {"a": (12, 14, 14, 64)}, {"b": (14, 14, 64)}
        ),
        "Einsum bij,bjk->ik 8x64x64": of(
            draw, einsum.format("bij,bjk->ik"), {"a": (8, 64, 64), "b": (8, 64, 64)}, {}
        ),
        "attention 12 heads 197x197x64": attended(heads, heads),
        "attention 32 heads 1x2048x64": attended((1, 32, 1, 64), (1, 32, 2048, 64)),
        "attention 8 heads 128x513x64": attended((1, 8, 128, 64), (1, 8, 513, 64)),
    }


def _rows(draw: Draw) -> dict[str, Case]:
    found = {
        f"{op} axis {axis} {list(shape)}": of(
            draw, f"y = {op} <axis = {axis}> (x)", {"x": shape}, {}
        )
        for op, axis, shape in (
            ("Softmax", -1, (12, 197, 197)),
            ("Softmax", -1, (1, 1000)),
            ("Softmax", 1, (1, 21, 128, 128)),
            ("LogSoftmax", -1, (64, 50257)),
        )
    }
    for rows, width in ((197, 768), (128, 1023), (3136, 96)):
        found[f"LayerNormalization [{rows}, {width}]"] = of(
            draw,
            "y = LayerNormalization <axis = -1> (x, s, b)",
            {"x": (1, rows, width)},
            {"s": (width,), "b": (width,)},
        )
    found["InstanceNormalization [1, 64, 128, 128]"] = of(
        draw,
        "y = InstanceNormalization (x, s, b)",
        {"x": (1, 64, 128, 128)},
        {"s": (64,), "b": (64,)},
    )
    found["RMS norm in parts [128, 4096]"] = of(
        draw,
        """q = Mul (x, x)
m = ReduceMean <keepdims = 1> (q, axes)
e = Add (m, epsilon)
r = Sqrt (e)
d = Div (x, r)
y = Mul (d, s)""",
        {"x": (1, 128, 4096)},
        {"axes": np.array([-1]), "epsilon": np.float32(1e-6), "s": (4096,)},
    )
    return found


def _reductions(draw: Draw) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for op, axis in itertools.product(("ReduceSum", "ReduceMax", "ReduceMean"), (0, 1, 2)):
        found[f"{op} axis {axis} [64, 128, 200]"] = of(
            draw,
            f"y = {op} <keepdims = 0> (x, axes)",
            {"x": (64, 128, 200)},
            {"axes": np.array([axis])},
        )
    found["ReduceSum of all 4194304"] = of(
        draw, "y = ReduceSum <keepdims = 0> (x)", {"x": (4194304,)}, {}
    )
    for axis, shape in (
        (-1, (64, 50257)),
        (1, (1, 21, 256, 256)),
        (0, (300, 100)),
        (1, (64, 1000)),
    ):
        found[f"ArgMax axis {axis} {list(shape)}"] = of(
            draw, f"y = ArgMax <axis = {axis}, keepdims = 0> (x)", {"x": shape}, {}
        )
    for axis, shape in ((1, (512, 2048)), (0, (4096, 64)), (1, (8, 500, 33))):
        found[f"CumSum axis {axis} {list(shape)}"] = of(
            draw, "y = CumSum (x, axis)", {"x": shape}, {"axis": np.array(axis)}
        )
    for k, shape in ((10, (64, 50257)), (100, (1, 8400))):
        found[f"TopK {k} {list(shape)}"] = of(
            draw, "y, i = TopK <axis = -1> (x, k)", {"x": shape}, {"k": np.array([k])}
        )
    return found


def _elementwise(draw: Draw) -> dict[str, Case]:
    image, wide = (1, 64, 160, 160), (1048576,)
    gelu = """d = Div (x, root)
e = Erf (d)
a = Add (e, one)
m = Mul (x, a)
y = Mul (m, half)"""
    numbers = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    integers = {"a": draw.places(100, *wide), "b": draw.places(100, *wide)}
    found = {
        f"{op} {list(shape)}": of(draw, f"y = {op} (x)", {"x": shape}, {})
        for op, shape in (("Relu", image), ("Tanh", wide), ("Sigmoid", image), ("Exp", wide))
    }
    return found | {
        "Sin [1048576]": of(draw, "y = Sin (x)", {"x": wide}, {}),
        "silu [1, 64, 160, 160]": of(draw, "s = Sigmoid (x)\ny = Mul (x, s)", {"x": image}, {}),
        "gelu [197, 3072]": of(draw, gelu, {"x": (1, 197, 3072)}, numbers),
        "HardSwish [1, 64, 160, 160]": of(draw, "y = HardSwish (x)", {"x": image}, {}),
        "Pow 2.2 [1048576]": of(
            draw, "y = Pow (x, p)", {"x": np.abs(draw.floats(wide))}, {"p": np.float32(2.2)}
        ),
        "Add of a row [4096, 768]": of(draw, "y = Add (x, b)", {"x": (4096, 768)}, {"b": (768,)}),
        "Mul of a column [768, 4096]": of(
            draw, "y = Mul (x, b)", {"x": (768, 4096)}, {"b": (768, 1)}
        ),
        "Add outer [1024, 1] [1, 1024]": of(
            draw, "y = Add (x, b)", {"x": (1024, 1), "b": (1, 1024)}, {}
        ),
        "Clip, Cast, Where [1048576]": of(
            draw,
            """c = Clip (x, low, high)
g = Greater (c, zero)
i = Cast <to = 7> (c)
f = Cast <to = 1> (i)
y = Where (g, f, c)""",
            {"x": wide},
            {"low": np.float32(-1), "high": np.float32(1), "zero": np.float32(0)},
        ),
        "int64 Less, Add, Mul, Where [1048576]": of(
            draw,
            "l = Less (a, b)\ns = Add (a, b)\nm = Mul (a, b)\ny = Where (l, s, m)",
            integers,
            {},
        ),
        "float16 Add, Relu [4194304]": of(
            draw,
            "s = Add (a, b)\ny = Relu (s)",
            {n: draw.floats((4194304,)).astype(np.float16) for n in "ab"},
            {},
        ),
    }


def _moves(draw: Draw) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for order in itertools.permutations(range(3)):
        if order != (0, 1, 2):
            found[f"Transpose {list(order)} [64, 200, 150]"] = of(
                draw, f"y = Transpose <perm = {list(order)}> (x)", {"x": (64, 200, 150)}, {}
            )
    for shape, order in (((1, 64, 160, 160), [0, 2, 3, 1]), ((1, 160, 160, 3), [0, 3, 1, 2])):
        found[f"Transpose {order} {list(shape)}"] = of(
            draw, f"y = Transpose <perm = {order}> (x)", {"x": shape}, {}
        )
    for axis in (0, 1, 2):
        found[f"Concat axis {axis} 2 of [64, 80, 100]"] = of(
            draw,
            f"y = Concat <axis = {axis}> (a, b)",
            {"a": (64, 80, 100), "b": (64, 80, 100)},
            {},
        )
        found[f"Split axis {axis} [64, 80, 100]"] = of(
            draw,
            f"y, z = Split <axis = {axis}, num_outputs = 2> (x)",
            {"x": (64, 80, 100)},
            {},
        )
    found["Expand [1, 8, 1, 128, 64] 4 times (GQA)"] = of(
        draw,
        "y = Expand (x, s)",
        {"x": (1, 8, 1, 128, 64)},
        {"s": np.array([1, 8, 4, 128, 64])},
    )
    found["DepthToSpace 2 [1, 256, 64, 64]"] = of(
        draw, 'y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)', {"x": (1, 256, 64, 64)}, {}
    )
    found["windows of Swin [1, 56, 56, 96]"] = of(
        draw,
        "r = Reshape (x, s)\nt = Transpose <perm = [0, 1, 3, 2, 4, 5]> (r)\ny = Reshape (t, u)",
        {"x": (1, 56, 56, 96)},
        {"s": np.array([1, 8, 7, 8, 7, 96]), "u": np.array([64, 49, 96])},
    )
    for mode in ("constant", "reflect", "edge"):
        found[f"Pad {mode} 3 [1, 32, 128, 128]"] = of(
            draw,
            f'y = Pad <mode = "{mode}"> (x, p)',
            {"x": (1, 32, 128, 128)},
            {"p": np.array([0, 0, 3, 3, 0, 0, 3, 3])},
        )
    return found


def _positions(draw: Draw) -> dict[str, Case]:
    return {
        "Gather of 128 words [30522, 768]": of(
            draw, "y = Gather (w, i)", {"i": draw.places(30000, 1, 128)}, {"w": (30522, 768)}
        ),
        "Gather axis 1 [64, 4096] 1024": of(
            draw,
            "y = Gather <axis = 1> (x, i)",
            {"x": (64, 4096), "i": draw.places(4096, 1024)},
            {},
        ),
        "Gather of int64 [4096, 64] 512": of(
            draw,
            "y = Gather (x, i)",
            {"x": draw.places(99, 4096, 64), "i": draw.places(4096, 512)},
            {},
        ),
        "GatherElements axis 1 [1024, 1024]": of(
            draw,
            "y = GatherElements <axis = 1> (x, i)",
            {"x": (1024, 1024), "i": draw.places(1024, 1024, 1024)},
            {},
        ),
        "GatherND [256, 256, 64] 4096": of(
            draw, "y = GatherND (x, i)", {"x": (256, 256, 64), "i": draw.places(256, 4096, 2)}, {}
        ),
        "ScatterND add 4096 rows [10000, 64]": of(
            draw,
            'y = ScatterND <reduction = "add"> (x, i, u)',
            {"x": (10000, 64), "i": draw.places(9999, 4096, 1), "u": (4096, 64)},
            {},
        ),
        "OneHot 1000 [256]": of(
            draw,
            "y = OneHot (i, d, v)",
            {"i": draw.places(1000, 256)},
            {"d": np.array(1000), "v": np.array([0, 1], np.float32)},
        ),
    }


def _windows(draw: Draw) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for op, taps, step, c, n in (
        ("MaxPool", 3, 2, 64, 112),
        ("MaxPool", 2, 2, 64, 56),
        ("MaxPool", 5, 1, 256, 20),
        ("AveragePool", 3, 1, 192, 35),
        ("AveragePool", 2, 2, 128, 28),
    ):
        around = taps // 2 if taps % 2 else 0
        settings = f"kernel_shape = [{taps}, {taps}], strides = [{step}, {step}]"
        found[f"{op} {taps}x{taps} s{step} {c} @{n}"] = of(
            draw, f"y = {op} <{settings}, pads = {[around] * 4}> (x)", {"x": (1, c, n, n)}, {}
        )
    found["GlobalAveragePool 2048 @7"] = of(
        draw, "y = GlobalAveragePool (x)", {"x": (1, 2048, 7, 7)}, {}
    )
    nearest = (
        'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    )
    for name, settings, c, n, by in (
        ("nearest", nearest, 256, 20, 2),
        ("linear", 'mode = "linear"', 64, 32, 4),
        ("cubic", 'mode = "cubic"', 3, 128, 2),
    ):
        scales = np.array([1, 1, by, by], np.float32)
        found[f"Resize {name} {by} {c} @{n}"] = of(
            draw, f"y = Resize <{settings}> (x, , s)", {"x": (1, c, n, n)}, {"s": scales}
        )
    grid = draw.rng.uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32)
    found["GridSample 32 @64"] = of(
        draw, 'y = GridSample <mode = "bilinear"> (x, g)', {"x": (1, 32, 64, 64), "g": grid}, {}
    )
    return found


def _recurrent(draw: Draw) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        size = gates * 256
        shapes = {"w": (1, size, 256), "r": (1, size, 256), "b": (1, 2 * size)}
        found[f"{op} 32 steps 256-256"] = of(
            draw,
            f"y = {op} <hidden_size = 256> (x, w, r, b)",
            {"x": (32, 1, 256)},
            # Small weights: a state that is chaotic shows each rounding after some steps.
            {n: 0.1 * draw.floats(s) for n, s in shapes.items()},
        )
    return found
