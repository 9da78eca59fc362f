"""The kernel dialect: whole-tensor ops in execution order, each naming its implementation.

A kernel op contains its meaning: an isolated region of `algebra.scope` ops over its operands. The
op's name says how it runs. `kernel.gemm` and `kernel.conv` begin with a contraction, described by
an attribute (contraction_attr.py); further scopes are the epilogue. `kernel.attention` is two
products and the ops between them. `kernel.loops` is a generated loop nest. `kernel.call` runs a
named op that no scope expresses. The physical layout of a value (order of dims, zero halo) is its
type's encoding (layout.py).

    %y = kernel.conv (%a = %x, %b = %w, %c = %bias) {
      %0 = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 3, r: 3, s: 3)
             %a[n, c, h + r - 1, w + s - 1] * %b[f, c, r, s] : tensor<1x8x6x6xf32>
      %1 = algebra.scope (n: 1, f: 8, h: 6, w: 6) max(%0[n, f, h, w] + %c[f], 0.0) : ...
      kernel.yield %1 : tensor<1x8x6x6xf32>
    } contraction <m [h, w], n [f], k [c, r, s], dims "nc01 * fc01 -> nf01", strides [1, 1],
      dilations [1, 1], pads [1, 1]> : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
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
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .algebra import OnesOp, ScopeOp
from .arithmetic import Arithmetic
from .contraction_attr import ContractionAttr, ConvParameters
from .index import Index, iterators, stays_inside
from .layout import (
    LayoutAttr,
    address_of,
    element_at,
    layout_of,
    logical,
    verify_layout,
    with_layout,
)
from .layout import (
    physical as physical,
)
from .scope_text import defined_operand
from .types import Array, Tensor, tensor_type


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a kernel's region with the tensor it computes."""

    name = "kernel.yield"
    value = operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict $value `:` type($value)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value])


# Marks a kernel whose elementwise arithmetic may be reassociated (passes/fast_math.py).
FAST_MATH = "isoform.fast_math"


class KernelOp(IRDLOperation):
    """The base of generated kernels: operands, region, one result, schedule, arena offset.

    Block arguments have the operands' logical types: scopes do not depend on layouts.

    `rows` holds pairs: a dim of the result, and the index of the operand, a tensor<i64>, that gives
    the number of its rows that need be written: nobody reads further ones, or they stand in the
    result's buffer before the op runs, as the caller vouches. `kept` holds such pairs, too: so many
    first rows stand there before.
    """

    # The properties in the text before the region.
    PRINTED: ClassVar[tuple[str, ...]] = ("schedule", "rows", "kept", "offset")
    inputs = var_operand_def(TensorType)
    schedule = opt_prop_def(DictionaryAttr)
    rows = opt_prop_def(DenseArrayBase)
    kept = opt_prop_def(DenseArrayBase)
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
        return _scopes(self.body)

    @property
    def rows_read(self) -> list[tuple[int, int]]:
        """Pairs of a dim whose first rows alone are read, and the operand with their number."""
        return _pairs(self.rows)

    @property
    def rows_kept(self) -> list[tuple[int, int]]:
        """Pairs of a dim whose first rows are there before, and the operand with their number."""
        return _pairs(self.kept)

    def outer(self, argument: SSAValue) -> SSAValue:
        """The operand of a region argument."""
        return self.inputs[list(self.body.block.args).index(argument)]  # pyright: ignore

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> list[Array]:
        """The op's meaning, in the form that dialects/reference.py needs."""
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
        self._verify_rows()

    def _verify_rows(self) -> None:
        for name, given in (("rows", self.rows), ("kept", self.kept)):
            if given is not None and len(given) % 2:
                raise VerifyException(f"{self.name}: `{name}` holds pairs of a dim and an operand")
        for dim, index in (*self.rows_read, *self.rows_kept):
            if not 0 <= dim < len(self.type.get_shape()):
                raise VerifyException(f"{self.name}: the result has no dim {dim}")
            self._verify_count(index, f"rows of dim {dim}")

    def _verify_count(self, index: int, counted: str) -> None:
        """Raise unless operand `index` is a tensor<i64>, which can count what `counted` names."""
        if not 0 <= index < len(self.inputs):
            raise VerifyException(f"{self.name}: there is no operand {index}")
        found = self.inputs[index].type
        if found != TensorType(i64, []):
            raise VerifyException(
                f"{self.name}: operand {index} says how many {counted} are read: "
                f"it is {found}, expected tensor<i64>"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")

        for k, (arg, value) in enumerate(zip(self.body.block.args, self.inputs, strict=True)):
            printer.print_string(", " if k else "")
            printer.print_ssa_value(arg)
            printer.print_string(" = ")
            printer.print_ssa_value(value)
        printer.print_string(")")
        for name in self.PRINTED:
            attribute = self.properties.get(name)
            if attribute is not None:
                printer.print_string(f" {name} ")
                printer.print_attribute(attribute)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        self.print_contraction(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def print_contraction(self, printer: Printer) -> None:
        """Print what follows the region."""

    @classmethod
    def parse_contraction(cls, parser: Parser, body: Region) -> dict[str, Attribute]:
        """Parse what follows the region, as properties."""
        return {}

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
        for name in cls.PRINTED:
            if parser.parse_optional_keyword(name) is not None:
                properties[name] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        properties |= cls.parse_contraction(parser, body)
        parser.parse_punctuation(":")
        op = cls.create(
            operands=values,
            properties=properties,
            regions=[body],
            result_types=[parser.parse_type()],
        )
        op.attributes |= {} if attributes is None else attributes.data
        return op


def _pairs(numbers: DenseArrayBase | None) -> list[tuple[int, int]]:
    """Each two numbers of an array."""
    found = [] if numbers is None else list(map(int, numbers.get_values()))  # pyright: ignore
    return list(zip(found[::2], found[1::2], strict=True))


@irdl_op_definition
class LoopsOp(KernelOp):
    """A generated loop nest over one or several fused scopes."""

    name = "kernel.loops"


class ContractionKernelOp(KernelOp):
    """A kernel whose first scope is a contraction; the attribute is computed from the region.

    Text without the attribute is read as if it had the one that the region gives.
    """

    FIRST_SCOPE_FAULT: ClassVar[str]
    contraction = opt_prop_def(ContractionAttr)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        body: Region,
        result_type: Tensor,
        schedule: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(inputs, body, result_type, schedule)
        self.properties |= _properties(self.expected(body))

    @classmethod
    def contraction_of(cls, scope: ScopeOp) -> ContractionAttr | None:
        """The attribute for this scope; None if the op cannot compute it."""
        raise NotImplementedError

    @classmethod
    def expected(cls, body: Region) -> ContractionAttr | None:
        """The attribute that a region gives; None if the op cannot compute its first scope."""
        scopes = _scopes(body)
        return cls.contraction_of(scopes[0]) if scopes else None

    def verify_(self) -> None:
        super().verify_()
        expected = self.expected(self.body)
        if expected is None:
            raise VerifyException(f"{self.name}: the first scope is {self.FIRST_SCOPE_FAULT}")
        if self.contraction != expected:
            names = self.scopes[0].names
            given = "none" if self.contraction is None else f"<{_named(self.contraction, names)}>"
            raise VerifyException(
                f"{self.name}: the contraction is {given}, "
                f"but that of the first scope is <{_named(expected, names)}>"
            )

    def print_contraction(self, printer: Printer) -> None:
        if self.contraction is not None:
            names = self.scopes[0].names if self.scopes else ()
            printer.print_string(f" contraction <{_named(self.contraction, names)}>")

    @classmethod
    def parse_contraction(cls, parser: Parser, body: Region) -> dict[str, Attribute]:
        if parser.parse_optional_keyword("contraction") is None:
            return _properties(cls.expected(body))
        scopes = _scopes(body)
        names = scopes[0].names if scopes else ()
        return _properties(ContractionAttr.parse_named(parser, names))


def _properties(contraction: ContractionAttr | None) -> dict[str, Attribute]:
    return {} if contraction is None else {"contraction": contraction}


def _scopes(body: Region) -> list[ScopeOp]:
    return [op for op in body.block.ops if isinstance(op, ScopeOp)]


def _named(contraction: ContractionAttr, names: Sequence[str]) -> str:
    return contraction.text(lambda k: names[k] if 0 <= k < len(names) else str(k))


@irdl_op_definition
class GemmOp(ContractionKernelOp):
    """A matrix product (first scope) and its epilogue, by a generated or library gemm."""

    name = "kernel.gemm"
    FIRST_SCOPE_FAULT: ClassVar[str] = "not a sum of products of two reads"

    @classmethod
    def contraction_of(cls, scope: ScopeOp) -> ContractionAttr | None:
        found = ContractionAttr.of(scope)
        return None if found is None else found.as_product()


@irdl_op_definition
class ConvOp(ContractionKernelOp):
    """A convolution (first scope) with constant weights, and its epilogue."""

    name = "kernel.conv"
    FIRST_SCOPE_FAULT: ClassVar[str] = "not a convolution"

    @classmethod
    def contraction_of(cls, scope: ScopeOp) -> ContractionAttr | None:
        found = ContractionAttr.of(scope)
        return None if found is None or found.convolution is None else found

    @property
    def parameters(self) -> ConvParameters:
        """The parameters of the first scope, from the attribute."""
        found = ConvParameters.of(self.scopes[0], self.contraction)
        assert found is not None
        return found


@irdl_op_definition
class AttentionOp(KernelOp):
    """Two matrix products and the ops between them, a few rows at a time: no scores are stored.

    lowering/algebra_to_kernel/attention.py defines which scopes are allowed. `keys` is the index
    of the operand, a tensor<i64>, that gives the number of keys read: the softmax takes -inf as the
    scores of the others, and V counts as zeros there.
    """

    name = "kernel.attention"
    PRINTED: ClassVar[tuple[str, ...]] = (*KernelOp.PRINTED, "keys")
    keys = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        super().verify_()
        if self.keys is not None:
            self._verify_count(self.keys.value.data, "keys")


@irdl_op_definition
class TiledProductOp(KernelOp):
    """Tiles are transformed, multiplied in a batch of products, and transformed back, some at a
    time.

    Neither the transformed tiles nor the products are stored as a whole. The scopes up to the first
    one that multiplies an earlier result by an operand are the first transform; those after it are
    the second one (lowering/kernel_to_cpu/products/transformed_product.py).
    """

    name = "kernel.tiled_product"


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The same buffer under another type, which runs no code: a reshape, or a part of a tensor.

    The layouts of both types say where in the buffer each element lies. Here %k holds
    columns 96 to 191 of %y:

        %k = kernel.view %y : tensor<74x288xf32>
               to tensor<74x96xf32, #kernel.layout<[0, 1], room [0, 96], [0, 96]>>
    """

    name = "kernel.view"
    source = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result_type: Tensor):
        super().__init__(operands=[source], result_types=[result_type])

    def index(self) -> tuple[Index, ...]:
        """The index of each of the result's elements in the source."""
        type_ = tensor_type(self.result)
        shape = type_.get_shape()
        address = address_of(iterators(len(shape)), type_)
        return element_at(address, tensor_type(self.source), shape)

    def evaluate_reference(
        self, operands: Sequence[Array], weights: Mapping[str, Any], arithmetic: Arithmetic
    ) -> list[Array]:
        """The operand's elements under the result's shape."""
        import numpy as np

        shape = tensor_type(self.result).get_shape()
        if self._is_plain:
            return [operands[0].reshape(shape)]
        places = tuple(e.evaluate(np.indices(shape, sparse=True)) for e in self.index())
        return [np.broadcast_to(operands[0][places], shape)]

    @property
    def _is_plain(self) -> bool:
        return all(logical(v.type) == v.type for v in (self.source, self.result))

    def verify_(self) -> None:
        source, result = tensor_type(self.source), tensor_type(self.result)
        for value in (self.source, self.result):
            verify_layout(self.name, value)
        same = physical(source)[2] == physical(result)[2]
        if not same or source.element_type != result.element_type:
            raise VerifyException(f"kernel.view: {source} and {result} are not the same elements")
        shape = result.get_shape()
        if not self._is_plain and not stays_inside(self.index(), source.get_shape(), shape):
            raise VerifyException(f"kernel.view: {result} is not inside {source}")


@irdl_op_definition
class JoinOp(IRDLOperation):
    """The concatenation of values that were written side by side in one buffer: runs no code.

    Every part has the result's layout, with the other parts' extents along `axis` as room.
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
    """Run a named op that no scope expresses (`graph.gather`), natively if the target can."""

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
        """The meaning of the named op."""
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
    [LayoutAttr, ContractionAttr],
)
