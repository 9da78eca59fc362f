"""Pooling windows over x: [n, c, *spatial]; global pools are `graph.reduce_*`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ..index import Index, iterators
from ..scope_builder import ScopeBuilder, Source, lowest
from ..types import Tensor, dims_of, is_bool, is_float, is_unsigned, tensor
from .base import GraphOp, ints_def
from .contraction import spatial_names


class PoolOp(GraphOp):
    """The base of pools. `pads` are begins then ends; `ceil_mode` rounds the output size up."""

    x = operand_def(TensorType)
    kernel = ints_def()
    strides = ints_def()
    pads = ints_def()
    dilations = ints_def()
    ceil_mode = prop_def(BoolAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"ceil_mode": False}

    def infer(self) -> Tensor:
        x = self.operand_type(0)
        spatial = len(dims_of(x)) - 2
        if spatial < 1:
            raise self.fail("an operand of rank at least 3 is needed", found=x)
        if is_unsigned(x.element_type) or is_bool(x.element_type):
            raise self.fail_element("operands must be floats or signed integers", x)
        self._check_window(spatial)
        n, c, *size = dims_of(x)
        return tensor(
            [n, c, *(self._out(size[k], k, spatial) for k in range(spatial))], x.element_type
        )

    def _check_window(self, spatial: int) -> None:
        for name, count in (("kernel", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
            if len(self.ints(name)) != count * spatial:
                raise self.fail(
                    f"'{name}' needs {count * spatial} numbers", found=list(self.ints(name))
                )
            if name != "pads" and any(n < 1 for n in self.ints(name)):
                raise self.fail(f"'{name}' is at least 1", found=list(self.ints(name)))

    def _out(self, size: int, k: int, spatial: int) -> int:
        pads, stride = self.ints("pads"), self.ints("strides")[k]
        reach = (self.ints("kernel")[k] - 1) * self.ints("dilations")[k] + 1
        room = size + pads[k] + pads[k + spatial] - reach
        if room < 0:
            raise self.fail(f"the window is larger than the padded image in dim {k}")
        if not self.value("ceil_mode"):
            return room // stride + 1
        out = -(-room // stride) + 1
        # The last window must start inside the image or its begin pad (ONNX, PyTorch).
        return out - 1 if (out - 1) * stride >= size + pads[k] else out

    def window(self, spatial: int) -> tuple[list[Index], list[Index]]:
        """Leading iterators `n, c` and the read positions of the window's taps."""
        n, c, *position = iterators(spatial + 2)
        tap = iterators(spatial, spatial + 2)
        stride, dilation, pad = self.ints("strides"), self.ints("dilations"), self.ints("pads")
        at = [position[k] * stride[k] + tap[k] * dilation[k] - pad[k] for k in range(spatial)]
        return [n, c], at

    def names(self, spatial: int) -> list[str]:
        return ["n", "c", *spatial_names(spatial), *spatial_names(spatial, ("q", "r", "s"))]


@irdl_op_definition
class MaxPoolOp(PoolOp):
    """Maximum over a window; outside counts as the least value. ONNX MaxPool (first output)."""

    name = "graph.max_pool"

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        (x,) = operands
        lead, at = self.window(len(x.shape) - 2)
        expr = x.at([*lead, *at], lowest(x.element))
        return build.scope(
            self.type, expr, self.ints("kernel"), "max", self.names(len(x.shape) - 2)
        )


@irdl_op_definition
class AvgPoolOp(PoolOp):
    """Mean over a window, by the window's size or by the number of taps inside the image.

    With `count_include_pad`, taps in the pads count, taps beyond them (ceil_mode) do not.
    ONNX AveragePool.
    """

    name = "graph.avg_pool"
    count_include_pad = prop_def(BoolAttr)
    DEFAULTS: ClassVar = {"ceil_mode": False, "count_include_pad": False}

    def infer(self) -> Tensor:
        if not is_float(self.operand_type(0).element_type):
            raise self.fail("averages are taken of floats", found=self.operand_type(0))
        return super().infer()

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        x = build.widened(operands[0])
        spatial = len(x.shape) - 2
        lead, at = self.window(spatial)
        out = tensor(dims_of(self.type), x.element)
        total = build.scope(out, x[[*lead, *at]], self.ints("kernel"), names=self.names(spatial))
        count = self._count(build, x)
        here = iterators(spatial + 2)
        expr = total[here] / count[here[2:]]
        return build.narrowed(self.type, expr, x, self.names(spatial)[: spatial + 2])

    def _count(self, build: ScopeBuilder, x: Source) -> Source:
        """The number of taps that count at each output position; it depends on no data."""
        spatial, pads = len(x.shape) - 2, self.ints("pads")
        position, tap = iterators(spatial), iterators(spatial, spatial)
        included = self.value("count_include_pad")
        base = [0 if included else pads[k] for k in range(spatial)]
        size = [
            x.shape[k + 2] + (pads[k] + pads[k + spatial] if included else 0)
            for k in range(spatial)
        ]
        at = [
            position[k] * self.ints("strides")[k] + tap[k] * self.ints("dilations")[k] - base[k]
            for k in range(spatial)
        ]
        inside = build.ones(size, x.element)
        out = tensor(dims_of(self.type)[2:], x.element)
        return build.scope(out, inside[at], self.ints("kernel"), names=self.names(spatial)[2:])


POOLING_OPS = (MaxPoolOp, AvgPoolOp)
