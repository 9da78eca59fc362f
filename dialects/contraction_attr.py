"""The contraction that the first scope of a kernel computes, as an attribute of the kernel.

    #kernel.contraction<m [2, 3], n [1], k [4, 5, 6], dims "nc01 * fc01 -> nf01", strides [1, 1],
                        dilations [1, 1], pads [1, 1]>

Groups list iterators of the scope (contraction.py); a kernel's text uses their names. `dims` gives
the role of each dim of a convolution's data, filters and result: n images, c channels, f features,
_ of extent 1, a number for a spatial dim. `operands [1, 0]` means that read 1 is the first operand,
and `guards` numbers the reads that are guards. A matrix product has groups and operands only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, i32
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .algebra import OnesOp, ScopeOp
from .canonical_types import Guard
from .contraction import GROUPS, Contraction, Extents, Operand, with_guards
from .convolution import ConvolutionDims, Role, Roles, convolution_of
from .scalars import Call, Cast, Expr, Read, factors
from .scope_body import body_to_expr
from .types import element_of, is_byte, shape_of

Ints = ArrayAttr[IntAttr]
_LISTS = ("strides", "dilations", "pads")
# Contractions are memoised for this many forms.
MAX_KNOWN = 1 << 14


def contraction_in(scope: ScopeOp) -> Contraction[int] | None:
    """The scope as a sum of products of two reads, or None; `read` numbers its operands."""
    if not scope.is_sum:
        return None
    own = scope.reads()
    reads = factors(_narrow(body_to_expr(scope.body.block, own), element_of(scope.result)))
    if reads is None:
        return None
    operands = [Operand(own.index(r), tuple(r.index), shape_of(r.source)) for r in reads]
    pair = [o for o in operands if not isinstance(scope.inputs[o.read].owner, OnesOp)]
    if len(pair) != 2:
        return None
    extents = scope.extents
    for operand in operands:
        outside = own[operand.read].outside
        if outside != 0.0 and not operand.stays_inside(extents):
            return None
    guards = [
        Guard(index, size)
        for operand in operands
        if operand not in pair
        for index, size in zip(operand.index, operand.shape, strict=True)
    ]
    parts = with_guards(pair[0], pair[1], guards)
    return None if parts is None else Contraction(extents, len(scope.traversal), *parts)


def _narrow(expr: Expr, result: Attribute) -> Expr:
    """A product of bytes that are widened to the result's 32 bits, as one of bytes.

    Kernels widen them while they multiply.
    """
    if result != i32:
        return expr
    match expr:
        case Cast(element, Read(source)) if element == i32 and is_byte(element_of(source)):
            return expr.arg
        case Call("mul", args):
            return Call("mul", tuple(_narrow(arg, result) for arg in args))
        case _:
            return expr


@irdl_attr_definition
class ContractionAttr(ParametrizedAttribute):
    """Iterator groups, operand order, and convolution parameters if it is one."""

    name = "kernel.contraction"
    operands: Ints
    guards: Ints
    groups_of_iterators: ArrayAttr[Ints]
    dims: StringAttr
    windows: ArrayAttr[Ints]
    groups: IntAttr
    transposed: IntAttr

    @staticmethod
    def of(scope: ScopeOp) -> ContractionAttr | None:
        """The contraction of a scope; None if it has none, or an iterator is in no group.

        Memoised by the scope's form. A convolution's first operand is the data.
        """
        if not scope.is_sum:
            return None
        form = _form(scope)
        if form not in _KNOWN:
            if len(_KNOWN) >= MAX_KNOWN:
                _KNOWN.clear()
            _KNOWN[form] = _of(scope)
        return _KNOWN[form]

    @property
    def convolution(self) -> ConvolutionDims | None:
        """The convolution parameters, if it is a convolution."""
        if not self.dims.data:
            return None
        data, _, filters, _, result = map(_parsed, self.dims.data.split(" "))
        strides, dilations, pads = map(_ints, self.windows)
        groups, transposed = self.groups.data, bool(self.transposed.data)
        return ConvolutionDims(data, filters, result, strides, dilations, pads, groups, transposed)

    def group(self, name: str) -> tuple[int, ...]:
        """The iterators of a group: batch, m, n or k."""
        return _ints(self.groups_of_iterators.data[GROUPS.index(name)])

    @property
    def reads(self) -> tuple[int, ...]:
        """The numbers of the first and second operand among the scope's reads."""
        return _ints(self.operands)

    def as_product(self) -> ContractionAttr:
        """The attribute of a matrix product."""
        return _attr(self.reads, _ints(self.guards), [self.group(name) for name in GROUPS], None)

    def verify(self) -> None:
        if len(self.operands) != 2 or len(self.groups_of_iterators) != len(GROUPS):
            raise VerifyException("kernel.contraction: two operands and four groups are needed")

    # --- text ---

    def text(self, name: Callable[[int], str] = str) -> str:
        """The text between the angle brackets; `name` prints an iterator."""
        parts = [
            f"{group} [{', '.join(map(name, its))}]"
            for group in GROUPS
            if (its := self.group(group))
        ]
        if self.reads != (0, 1):
            parts.append(f"operands {list(self.reads)}")
        if self.guards.data:
            parts.append(f"guards {list(_ints(self.guards))}")
        if self.dims.data:
            parts.append(f'dims "{self.dims.data}"')
            windows = zip(_LISTS, self.windows, strict=True)
            parts += [f"{word} {list(_ints(part))}" for word, part in windows]
        if self.groups.data != 1:
            parts.append(f"groups {self.groups.data}")
        return ", ".join([*parts, *(["transposed"] if self.transposed.data else [])])

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text()}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return cls.parse_named(parser, ()).parameters

    @classmethod
    def parse_named(cls, parser: AttrParser, names: Sequence[str]) -> ContractionAttr:
        """Parse the text in angle brackets; iterators are numbers or one of these names."""
        reader = _Reader(parser, names)
        with parser.in_angle_brackets():
            while reader.part() and parser.parse_optional_punctuation(",") is not None:
                pass
        return reader.made()


_KNOWN: dict[Hashable, ContractionAttr | None] = {}


def _form(scope: ScopeOp) -> Hashable:
    """A key of everything a contraction depends on: equal for clones and repeated layers."""
    block, numbers = scope.body.block, dict[SSAValue, int]()
    for value in (*block.args, *(result for op in block.ops for result in op.results)):
        numbers[value] = len(numbers)
    body = tuple((op.name, *(numbers[v] for v in op.operands)) for op in block.ops)
    types = tuple(value.type for value in (*scope.inputs, scope.result))
    ones = tuple(isinstance(value.owner, OnesOp) for value in scope.inputs)
    return body, types, ones, scope.maps, scope.sums, scope.outside


def _of(scope: ScopeOp) -> ContractionAttr | None:
    found = contraction_in(scope)
    if found is None or found.loose:
        return None
    for side in (found, found.swapped()):
        convolution = convolution_of(side)
        if convolution is not None:
            return _attribute_of(scope, side, convolution)
    return _attribute_of(scope, found, None)


def _attribute_of(
    scope: ScopeOp, found: Contraction[int], convolution: ConvolutionDims | None
) -> ContractionAttr:
    reads = (found.first.read, found.second.read)
    guards = [k for k in range(len(scope.inputs)) if k not in reads]
    return _attr(reads, guards, [found.groups[name] for name in GROUPS], convolution)


def _attr(
    reads: Sequence[int],
    guards: Sequence[int],
    groups: Sequence[Sequence[int]],
    convolution: ConvolutionDims | None,
) -> ContractionAttr:
    dims, windows, number, transposed = "", list[Extents](), 1, False
    if convolution is not None:
        roles = (convolution.data, convolution.filters, convolution.result)
        dims = "{} * {} -> {}".format(*("".join(map(str, part)) for part in roles))
        windows = [convolution.strides, convolution.dilations, convolution.pads]
        number, transposed = convolution.groups, convolution.transposed
    return ContractionAttr(
        _array(reads),
        _array(guards),
        ArrayAttr(_array(group) for group in groups),
        StringAttr(dims),
        ArrayAttr(_array(part) for part in windows),
        IntAttr(number),
        IntAttr(int(transposed)),
    )


def _array(numbers: Sequence[int]) -> Ints:
    return ArrayAttr(IntAttr(n) for n in numbers)


def _ints(array: Ints) -> tuple[int, ...]:
    return tuple(n.data for n in array)


def _parsed(text: str) -> Roles:
    return tuple(int(letter) if letter.isdigit() else letter for letter in text)


class _Reader:
    """Reads the parts of an attribute's text, in any order."""

    def __init__(self, parser: AttrParser, names: Sequence[str]) -> None:
        self.parser, self.names = parser, names
        self.lists: dict[str, list[int]] = {}
        self.dims, self.transposed = "", 0

    def part(self) -> bool:
        """Read one part; False where there is none."""
        word = self.parser.parse_optional_identifier()
        match word:
            case None:
                return False
            case "dims":
                self.dims = self.parser.parse_str_literal()
            case "transposed":
                self.transposed = 1
            case "groups":
                self.lists[word] = [self.parser.parse_integer()]
            case _ if word in (*GROUPS, *_LISTS, "operands", "guards"):
                square = self.parser.Delimiter.SQUARE
                self.lists[word] = self.parser.parse_comma_separated_list(square, self._iterator)
            case _:
                self.parser.raise_error(f"a contraction has no part '{word}'")
        return True

    def _iterator(self) -> int:
        number = self.parser.parse_optional_integer()
        if number is not None:
            return number
        name = self.parser.parse_identifier()
        if name not in self.names:
            self.parser.raise_error(f"the scope has no iterator '{name}'")
        return self.names.index(name)

    def made(self) -> ContractionAttr:
        lists = self.lists
        return ContractionAttr(
            _array(lists.get("operands", [0, 1])),
            _array(lists.get("guards", [])),
            ArrayAttr(_array(lists.get(group, [])) for group in GROUPS),
            StringAttr(self.dims),
            ArrayAttr(_array(lists.get(word, [])) for word in (_LISTS if self.dims else ())),
            IntAttr(lists.get("groups", [1])[0]),
            IntAttr(self.transposed),
        )


# --- reading it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConvParameters:
    """A (transposed) convolution with its dims in any order and the sizes of its scope.

    `data_order` and `out_order` list the dims of data and result in the order images,
    channels, spatial dims; `filter_dims` gives the role of each filter dim. Spatial parameters have
    one entry per spatial dim. A transposed convolution takes tap r from (out + pad - dilation * r)
    / stride.
    """

    data: SSAValue
    weights: SSAValue
    data_order: tuple[int, ...]
    out_order: tuple[int, ...]
    images: int
    features: int
    sizes: Extents
    groups: int
    channels_per_group: int
    kernel: Extents
    strides: Extents
    dilations: Extents
    pads: Extents
    filter_dims: Roles
    transposed: bool

    @classmethod
    def of(cls, scope: ScopeOp, attr: ContractionAttr | None) -> ConvParameters | None:
        """The parameters of a scope with this contraction; None if it is not a convolution."""
        found = None if attr is None else attr.convolution
        if attr is None or found is None:
            return None
        data, weights = (scope.inputs[number] for number in attr.reads)
        numbers = range(len(found.strides))
        out = _positions(found.result, ("n", "f", *numbers))
        images, features, *sizes = (scope.traversal[dim] for dim in out)
        filters = dict(zip(found.filters, shape_of(weights), strict=True))
        return cls(
            data,
            weights,
            _positions(found.data, ("n", "c", *numbers)),
            out,
            images,
            features,
            tuple(sizes),
            found.groups,
            filters.get("c", 1),
            tuple(filters.get(k, 1) for k in numbers),
            found.strides,
            found.dilations,
            found.pads,
            found.filters,
            found.transposed,
        )

    @property
    def channels(self) -> int:
        """Channels of the data, of all groups."""
        return self.groups * self.channels_per_group

    @property
    def filters_in_order(self) -> tuple[int, ...]:
        """The filter's dims from outermost to innermost: taps, channels, features last."""
        roles = ("_", *range(len(self.kernel)), "c", "f")
        return tuple(
            sorted(range(len(self.filter_dims)), key=lambda d: roles.index(self.filter_dims[d]))
        )

    @property
    def channels_first(self) -> bool:
        """Whether the dims of data and result are in the order images, channels, spatial dims."""
        plain = tuple(range(len(self.out_order)))
        return self.data_order == self.out_order == plain

    def reach(self, dim: int) -> tuple[int, int]:
        """The first and the last place read along a spatial dim; padding lies outside."""
        size, stride, pad = self.sizes[dim], self.strides[dim], self.pads[dim]
        window = self.dilations[dim] * (self.kernel[dim] - 1)
        if self.transposed:
            return (pad - window) // stride, (size - 1 + pad) // stride
        return -pad, (size - 1) * stride + window - pad


def _positions(dims: Roles, roles: Sequence[Role]) -> tuple[int, ...]:
    return tuple(dims.index(role) for role in roles)


def channels_last(order: Sequence[int]) -> tuple[int, ...]:
    """Permute a dim order from ConvParameters' (images, channels, spatial) to channels last."""
    return (order[0], *order[2:], order[1])


def conv_of(scope: ScopeOp) -> ConvParameters | None:
    """The parameters of a scope that is a convolution; None for any other."""
    return ConvParameters.of(scope, ContractionAttr.of(scope))
