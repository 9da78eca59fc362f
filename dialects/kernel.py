"""The kernel dialect: whole-tensor ops in the order of execution, each naming what will run.

A kernel op holds its meaning: an isolated region of `algebra.scope` ops over its operands. What the
name adds is how it is run: `kernel.gemm` and `kernel.conv` begin with a contraction that their
template matches (lowering/algebra_to_kernel/match.py reads the parameters off it), further scopes
are the epilogue; `kernel.attention` is two products and what stands between them; `kernel.loops` is
a generated loop nest; `kernel.call` runs a named op that no scope expresses. The physical layout of
a value (order of dims, zero halo) is its type's encoding.

    %y = kernel.conv (%a = %x, %b = %w, %c = %bias) {
      %0 = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 3, r: 3, s: 3)
             %a[n, c, h + r - 1, w + s - 1] * %b[f, c, r, s] : tensor<1x8x6x6xf32>
      %1 = algebra.scope (n: 1, f: 8, h: 6, w: 6) max(%0[n, f, h, w] + %c[f], 0.0) : ...
      kernel.yield %1 : tensor<1x8x6x6xf32>
    } : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    ParametrizedAttribute,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .algebra import OnesOp, ScopeOp
from .arithmetic import Arithmetic
from .index import row_major_strides
from .scope_text import defined_operand
from .types import Array, Tensor, element_count, tensor_type


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """Physical layout of a tensor: dims from outermost to innermost, and what surrounds the values.

    `#kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 1]>` is channels last, one zero row
    before and after each spatial dim. `room [0, 16, 0, 0], [0, 48, 0, 0]` says that the buffer is
    shared: 16 channels of other values stand before these, 48 behind (see `kernel.join`). Halo and
    room are part of the buffer, never of the value.
    """

    name = "kernel.layout"
    order: ArrayAttr[IntAttr]
    low: ArrayAttr[IntAttr]
    high: ArrayAttr[IntAttr]
    before: ArrayAttr[IntAttr]
    after: ArrayAttr[IntAttr]

    @staticmethod
    def of(
        order: Sequence[int],
        low: Sequence[int] | None = None,
        high: Sequence[int] | None = None,
        before: Sequence[int] | None = None,
        after: Sequence[int] | None = None,
    ) -> LayoutAttr:
        zeros = [0] * len(order)
        parts = [order, *(zeros if part is None else part for part in (low, high, before, after))]
        return LayoutAttr(*(ArrayAttr(IntAttr(n) for n in part) for part in parts))

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(n.data for n in self.order)

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """(before, after) per logical dim."""
        return tuple((a.data, b.data) for a, b in zip(self.low, self.high, strict=True))

    @property
    def room(self) -> tuple[tuple[int, int], ...]:
        """(before, after) per logical dim: what other values take of the buffer."""
        return tuple((a.data, b.data) for a, b in zip(self.before, self.after, strict=True))

    def verify(self) -> None:
        if sorted(self.dims) != list(range(len(self.dims))):
            raise VerifyException(f"kernel.layout: {list(self.dims)} is no order of dims")
        if any(len(part) != len(self.dims) for part in (self.low, self.high)):
            raise VerifyException("kernel.layout: one halo width per dim is needed")
        if any(len(part) != len(self.dims) for part in (self.before, self.after)):
            raise VerifyException("kernel.layout: one width of room per dim is needed")
        if any(n < 0 for widths in (*self.halo, *self.room) for n in widths):
            raise VerifyException("kernel.layout: widths are at least 0")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(list(self.dims)))
            for word, widths in (("halo", self.halo), ("room", self.room)):
                if any(a or b for a, b in widths):
                    low, high = zip(*widths, strict=True)
                    printer.print_string(f", {word} {list(low)}, {list(high)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def numbers() -> list[int]:
            return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)

        with parser.in_angle_brackets():
            order = numbers()
            widths = {"halo": [[0] * len(order)] * 2, "room": [[0] * len(order)] * 2}
            while parser.parse_optional_punctuation(",") is not None:
                word = parser.parse_identifier()
                if word not in widths:
                    parser.raise_error(f"a layout has 'halo' and 'room', found '{word}'")
                first = numbers()
                parser.parse_punctuation(",")
                widths[word] = [first, numbers()]
        parts = (order, *widths["halo"], *widths["room"])
        return [ArrayAttr(IntAttr(n) for n in part) for part in parts]


def verify_layout(where: str, value: SSAValue) -> None:
    """Check that a value's layout, if it has one, orders just its dims. Raises VerifyException."""
    type_ = tensor_type(value)
    if len(layout_of(type_).dims) != len(type_.get_shape()):
        raise VerifyException(f"{where}: the layout of {type_} has another rank")


def logical(type_: Attribute) -> Tensor:
    """The tensor type without its layout."""
    assert isinstance(type_, TensorType)
    return TensorType(type_.element_type, type_.get_shape())


def with_layout(type_: Tensor, layout: LayoutAttr | None) -> Tensor:
    """The tensor type with a layout; None is row-major."""
    encoding = NoneAttr() if layout is None else layout
    return TensorType(type_.element_type, type_.get_shape(), encoding)


def layout_of(type_: Tensor) -> LayoutAttr:
    """The layout of a type; without an encoding, row-major and no halo."""
    if isinstance(type_.encoding, LayoutAttr):
        return type_.encoding
    return _row_major(len(type_.shape.data))


@cache
def _row_major(rank: int) -> LayoutAttr:
    """Built once for each rank: attributes verify what they hold, and every access asks for it."""
    return LayoutAttr.of(range(rank))


def physical(type_: Tensor) -> tuple[tuple[int, ...], int, int]:
    """(element stride per logical dim, offset of the first element, elements of the buffer)."""
    layout, shape = layout_of(type_), type_.get_shape()
    around = [
        (a + before, b + after)
        for (a, b), (before, after) in zip(layout.halo, layout.room, strict=True)
    ]
    padded = [n + a + b for n, (a, b) in zip(shape, around, strict=True)]
    in_order = row_major_strides([padded[d] for d in layout.dims])
    strides = [0] * len(shape)
    for stride, dim in zip(in_order, layout.dims, strict=True):
        strides[dim] = stride
    offset = sum(s * a for s, (a, _) in zip(strides, around, strict=True))
    count = 1
    for n in padded:
        count *= n
    return tuple(strides), offset, count


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a kernel's region with the tensor it computes."""

    name = "kernel.yield"
    value = operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict $value `:` type($value)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value])


# On a kernel whose elementwise arithmetic may be reassociated (passes/fast_math.py).
FAST_MATH = "isoform.fast_math"


class KernelOp(IRDLOperation):
    """What all generated kernels share: operands, region, one result, schedule, arena offset.

    Block arguments have the operands' logical types: scopes know nothing of layouts.
    """

    inputs = var_operand_def(TensorType)
    schedule = opt_prop_def(DictionaryAttr)
    offset = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        body: Region,
        result_type: Tensor,
        schedule: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs],
            properties={"schedule": DictionaryAttr(schedule)} if schedule else {},
            regions=[body],
            result_types=[result_type],
        )

    @property
    def type(self) -> Tensor:
        return tensor_type(self.result)

    @property
    def scopes(self) -> list[ScopeOp]:
        """The scopes of the region, in order; the last one is the result."""
        return [op for op in self.body.block.ops if isinstance(op, ScopeOp)]

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> list[Array]:
        """The meaning, as dialects/reference.py wants it of an op."""
        from .reference import run_block

        values: dict[SSAValue, Array] = dict(zip(self.body.block.args, operands, strict=True))
        return run_block(self.body.block.ops, values, weights, arithmetic)

    def verify_(self) -> None:
        block = self.body.block
        for value in (*self.inputs, self.result):
            verify_layout(self.name, value)
        for k, (arg, value) in enumerate(zip(block.args, self.inputs, strict=False)):
            if arg.type != logical(value.type):
                raise VerifyException(
                    f"{self.name}: region argument {k} is {arg.type}, "
                    f"expected {logical(value.type)}"
                )
        if len(block.args) != len(self.inputs):
            raise VerifyException(f"{self.name}: the region needs one argument per operand")
        for op in block.ops:
            if not isinstance(op, ScopeOp | OnesOp | YieldOp):
                raise VerifyException(f"{self.name}: a kernel may not hold {op.name}")
        last = block.last_op
        if not isinstance(last, YieldOp) or last.value.type != logical(self.result.type):
            raise VerifyException(
                f"{self.name}: the region must yield a value of the result's type"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")

        for k, (arg, value) in enumerate(zip(self.body.block.args, self.inputs, strict=True)):
            printer.print_string(", " if k else "")
            printer.print_ssa_value(arg)
            printer.print_string(" = ")
            printer.print_ssa_value(value)
        printer.print_string(")")
        for name in ("schedule", "offset"):
            attribute = self.properties.get(name)
            if attribute is not None:
                printer.print_string(f" {name} ")
                printer.print_attribute(attribute)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        values: list[SSAValue] = []

        def pair() -> Parser.Argument:
            span = parser.parse_unresolved_operand().span
            parser.parse_punctuation("=")
            values.append(defined_operand(parser))
            return parser.Argument(span, logical(values[-1].type))

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, pair)
        properties: dict[str, Attribute] = {}
        for name in ("schedule", "offset"):
            if parser.parse_optional_keyword(name) is not None:
                properties[name] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        parser.parse_punctuation(":")
        op = cls.create(
            operands=values,
            properties=properties,
            regions=[body],
            result_types=[parser.parse_type()],
        )
        op.attributes |= {} if attributes is None else attributes.data
        return op


@irdl_op_definition
class LoopsOp(KernelOp):
    """A generated loop nest over one or several fused scopes."""

    name = "kernel.loops"


@irdl_op_definition
class GemmOp(KernelOp):
    """A matrix product (first scope) and its epilogue, by a generated or library gemm."""

    name = "kernel.gemm"


@irdl_op_definition
class ConvOp(KernelOp):
    """A convolution (first scope) with constant weights, and its epilogue."""

    name = "kernel.conv"


@irdl_op_definition
class AttentionOp(KernelOp):
    """Two matrix products and what stands between them, some rows at a time: no scores are stored.

    lowering/algebra_to_kernel/attention.py says what its scopes may be.
    """

    name = "kernel.attention"


@irdl_op_definition
class TiledProductOp(KernelOp):
    """Tiles transformed, a batch of products over them, tiles transformed back: some at a time.

    Neither the transformed tiles nor the products are stored as a whole. The scopes up to the first
    that multiplies what was made before by an operand are the first transform, those after it the
    second one (lowering/kernel_to_cpu/tiled_product.py).
    """

    name = "kernel.tiled_product"


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The same buffer under another shape, both row-major: a reshape, which runs no code."""

    name = "kernel.view"
    source = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result_type: Tensor):
        super().__init__(operands=[source], result_types=[result_type])

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> list[Array]:
        """The operand, reshaped."""
        return [operands[0].reshape(tensor_type(self.result).get_shape())]

    def verify_(self) -> None:
        source, result = tensor_type(self.source), tensor_type(self.result)
        same = element_count(source) == element_count(result)
        if not same or source.element_type != result.element_type:
            raise VerifyException(f"kernel.view: {source} and {result} are not the same elements")
        if logical(source) != source or logical(result) != result:
            raise VerifyException("kernel.view: both sides must be row-major, without a layout")


@irdl_op_definition
class JoinOp(IRDLOperation):
    """The concatenation of values that were written side by side in one buffer: runs no code.

    Every part's layout is the result's, with the other parts' extents along `axis` as room.
    """

    name = "kernel.join"
    parts = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    offset = opt_prop_def(IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$parts `axis` $axis (`offset` $offset^)? attr-dict `:` functional-type($parts, $result)"
    )

    def __init__(self, parts: Sequence[SSAValue], axis: int, result_type: Tensor):
        super().__init__(
            operands=[parts],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[result_type],
        )

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> list[Array]:
        """The operands, one after another."""
        import numpy as np

        return [np.concatenate(list(operands), axis=self.axis.value.data)]

    def verify_(self) -> None:
        axis, result = self.axis.value.data, tensor_type(self.result)
        for value in (*self.parts, self.result):
            verify_layout("kernel.join", value)
        ranks = {len(tensor_type(value).get_shape()) for value in (*self.parts, self.result)}
        if len(ranks) != 1 or not 0 <= axis < ranks.pop():
            raise VerifyException(f"kernel.join: dim {axis} is not one of every part's")
        start = 0
        for part in self.parts:
            type_ = tensor_type(part)
            if type_ != slot(result, axis, start, type_.get_shape()[axis]):
                raise VerifyException(
                    f"kernel.join: {type_} does not lie at {start} along dim {axis} of {result}"
                )
            start += type_.get_shape()[axis]
        if start != result.get_shape()[axis]:
            raise VerifyException(f"kernel.join: the parts do not make up dim {axis}")


def slot(whole: Tensor, axis: int, start: int, size: int) -> Tensor:
    """The type of the part [start, start + size) along `axis` of a value, inside its buffer."""
    layout = layout_of(whole)
    shape = list(whole.get_shape())
    before, after = ([width[side] for width in layout.room] for side in (0, 1))
    before[axis] += start
    after[axis] += shape[axis] - start - size
    shape[axis] = size
    low, high = ([width[side] for width in layout.halo] for side in (0, 1))
    inside = LayoutAttr.of(layout.dims, low, high, before, after)
    return with_layout(TensorType(whole.element_type, shape), inside)


@irdl_op_definition
class CallOp(IRDLOperation):
    """Run a named op that no scope expresses (`graph.gather`): natively where the target can."""

    name = "kernel.call"
    inputs = var_operand_def(TensorType)
    callee = prop_def(StringAttr)
    config = prop_def(DictionaryAttr)
    offsets = opt_prop_def(ArrayAttr[IntegerAttr])
    outputs = var_result_def(TensorType)
    assembly_format = (
        "$callee `(` $inputs `)` $config (`offsets` $offsets^)? attr-dict `:` "
        "functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        config: DictionaryAttr,
        result_types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[inputs],
            properties={"callee": StringAttr(callee), "config": config},
            result_types=[result_types],
        )

    def verify_(self) -> None:
        if self.offsets is not None and len(self.offsets) != len(self.outputs):
            raise VerifyException("kernel.call: one offset per result is needed")
        for value in (*self.inputs, *self.outputs):
            verify_layout("kernel.call", value)

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> Sequence[Array]:
        """The meaning of the op it names."""
        from .op_reference import evaluate_op, rebuild_extern

        return evaluate_op(rebuild_extern(self), operands, weights, arithmetic)


def argument_region(
    inputs: Sequence[SSAValue],
) -> Region:
    """An empty region with one argument per operand, of the logical types."""
    return Region(Block(arg_types=[logical(value.type) for value in inputs]))


KERNEL = Dialect(
    "kernel",
    [LoopsOp, GemmOp, ConvOp, AttentionOp, TiledProductOp, ViewOp, JoinOp, CallOp, YieldOp],
    [LayoutAttr],
)
