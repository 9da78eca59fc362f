"""Physical layouts: the order of a tensor's dims in memory, and what surrounds its values.

The layout of a value is its type's encoding; the default is row-major.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .index import Index, normalise, row_major_strides
from .types import Tensor, tensor_type


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """Physical layout of a tensor: dims from outermost to innermost, and what surrounds the values.

    `#kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 1]>` is channels last, one zero row
    before and after each spatial dim. `room [0, 16, 0, 0], [0, 48, 0, 0]` means that the buffer is
    shared: 16 channels of other values come before these, 48 after (see `kernel.join`). Halo and
    room are part of the buffer, not of the value.
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
        """(before, after) per logical dim: the part of the buffer used by other values."""
        return tuple((a.data, b.data) for a, b in zip(self.before, self.after, strict=True))

    def verify(self) -> None:
        if sorted(self.dims) != list(range(len(self.dims))):
            raise VerifyException(f"kernel.layout: {list(self.dims)} is not an order of dims")
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
    """Check that a value's layout, if it has one, fits its rank. Raises VerifyException."""
    type_ = tensor_type(value)
    if len(layout_of(type_).dims) != len(type_.get_shape()):
        raise VerifyException(f"{where}: the layout of {type_} has another rank")


def logical(type_: Attribute) -> Tensor:
    """The tensor type without its layout."""
    assert isinstance(type_, TensorType)
    return TensorType(type_.element_type, type_.get_shape())


def with_layout(type_: Tensor, layout: LayoutAttr | None) -> Tensor:
    """The tensor type with a layout; None means row-major."""
    encoding = NoneAttr() if layout is None else layout
    return TensorType(type_.element_type, type_.get_shape(), encoding)


def layout_of(type_: Tensor) -> LayoutAttr:
    """The layout of a type; without an encoding, row-major and no halo."""
    if isinstance(type_.encoding, LayoutAttr):
        return type_.encoding
    return _row_major(len(type_.shape.data))


@cache
def _row_major(rank: int) -> LayoutAttr:
    """Built once for each rank: attributes verify their contents, and every access uses it."""
    return LayoutAttr.of(range(rank))


@lru_cache(maxsize=1 << 12)
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


def address_of(index: Sequence[Index], type_: Tensor) -> Index:
    """The address of an element in its buffer, in elements."""
    strides, offset, _ = physical(type_)
    return sum((e * s for e, s in zip(index, strides, strict=True)), Index(offset))


def element_at(address: Index, type_: Tensor, extents: Sequence[int]) -> tuple[Index, ...]:
    """The element of a tensor at an address of its buffer; `extents` are those of the iterators.

    Outside the tensor's shape the address is one of its halo, or of its room.
    """
    layout, shape = layout_of(type_), type_.get_shape()
    strides, _, count = physical(type_)
    found, span = [Index(0)] * len(shape), count
    for dim in layout.dims:
        (low, _), (before, _) = layout.halo[dim], layout.room[dim]
        stride = max(strides[dim], 1)  # of an empty tensor: it has no elements
        digit = (address // stride) % max(span // stride, 1)
        found[dim] = normalise(digit - low - before, extents)
        span = stride
    return tuple(found)


def layout_inside(
    shape: Sequence[int], order: Sequence[int], address: Index, count: int
) -> LayoutAttr | None:
    """The layout by which a tensor's elements lie at these addresses of a buffer.

    None if there is none: neighbours are never two elements apart, for example.

    Args:
        order: the dims from outermost to innermost; those of extent 1 may stand elsewhere.
        address: of each element, over one iterator for each dim.
        count: elements of the buffer.
    """
    if address.has_floor or 0 in shape:
        return None
    loops, single = ([k for k in order if (shape[k] == 1) == one] for one in (False, True))
    strides = [address.coefficient(k) for k in loops]
    if strides[-1:] != [1] and single:  # what is between two neighbours is a dim of its own
        loops, strides = [*loops, single.pop()], [*strides, 1]
    if strides[-1:] != [1] or min(strides) < 1:
        return None
    rest, span = address.constant, count
    before, after = [0] * len(shape), [0] * len(shape)
    for k, stride in zip(loops, strides, strict=True):
        size, left = divmod(span, stride)
        before[k], rest = divmod(rest, stride)
        after[k] = size - shape[k] - before[k]
        if left or after[k] < 0:
            return None
        span = stride
    return LayoutAttr.of([*single, *loops], before=before, after=after)
