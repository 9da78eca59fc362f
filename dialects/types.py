"""Element types and tensor types: the bridge between xDSL types and numpy dtypes.

Signed integers are signless in IR (`i8` .. `i64`, as `arith` wants), unsigned ones `ui8` .. `ui64`,
booleans `i1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ShapedType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.hints import isa

from .dims import same_dims
from .dims_attr import DimsAttr
from .errors import UserError

if TYPE_CHECKING:
    from .extents import Extent

Tensor: TypeAlias = TensorType[Attribute]
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

# The extent of a `?` in a type.
DYNAMIC = DYNAMIC_INDEX


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


_NUMPY: tuple[tuple[Attribute, Any], ...] = (
    (f32, np.dtype(np.float32)),
    (f64, np.dtype(np.float64)),
    (f16, np.dtype(np.float16)),
    (bf16, np.dtype(ml_dtypes.bfloat16)),
    (i8, np.dtype(np.int8)),
    (i16, np.dtype(np.int16)),
    (i32, np.dtype(np.int32)),
    (i64, np.dtype(np.int64)),
    (_unsigned(8), np.dtype(np.uint8)),
    (_unsigned(16), np.dtype(np.uint16)),
    (_unsigned(32), np.dtype(np.uint32)),
    (_unsigned(64), np.dtype(np.uint64)),
    (i1, np.dtype(np.bool_)),
    # Storage only: what converts from them and to them computes in wider types. A byte each.
    (IntegerType(4), np.dtype(ml_dtypes.int4)),
    (_unsigned(4), np.dtype(ml_dtypes.uint4)),
    (IntegerType(2), np.dtype(ml_dtypes.int2)),
    (_unsigned(2), np.dtype(ml_dtypes.uint2)),
    (Float8E4M3FNType(), np.dtype(ml_dtypes.float8_e4m3fn)),
    (Float8E4M3FNUZType(), np.dtype(ml_dtypes.float8_e4m3fnuz)),
    (Float8E5M2Type(), np.dtype(ml_dtypes.float8_e5m2)),
    (Float8E5M2FNUZType(), np.dtype(ml_dtypes.float8_e5m2fnuz)),
    (Float8E8M0FNUType(), np.dtype(ml_dtypes.float8_e8m0fnu)),
    (Float4E2M1FNType(), np.dtype(ml_dtypes.float4_e2m1fn)),
)
_TO_NUMPY: dict[Attribute, np.dtype[Any]] = dict(_NUMPY)
_FROM_NUMPY = {dtype: element for element, dtype in _NUMPY}


def to_numpy(element: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type. Raises UserError where there is none."""
    dtype = _TO_NUMPY.get(element)
    if dtype is None:
        raise UserError(f"element type {element} has no numpy counterpart")
    return dtype


def element_types() -> tuple[Attribute, ...]:
    """Every element type."""
    return tuple(element for element, _ in _NUMPY)


def float_types() -> tuple[Attribute, ...]:
    """Every float type."""
    return tuple(element for element in element_types() if is_float(element))


def strided(
    flat: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = True
) -> Array:
    """A view of memory as numpy's `as_strided`, which does not know floats of 8 bits."""
    bytes_ = flat.view(np.uint8) if flat.dtype.itemsize == 1 else flat
    found = np.lib.stride_tricks.as_strided(bytes_, shape, strides, writeable=writeable)
    return found.view(flat.dtype)


def from_numpy(dtype: Any) -> Attribute:
    """The element type of a numpy dtype. Raises UserError where there is none."""
    try:
        element = _FROM_NUMPY.get(np.dtype(dtype))
    except TypeError as error:
        raise UserError(f"{dtype!r} is no numpy dtype") from error
    if element is None:
        raise UserError(f"numpy dtype {np.dtype(dtype)} has no element type in isoform")
    return element


_SMALL_FLOATS = (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2Type,
    Float8E5M2FNUZType,
    Float8E8M0FNUType,
    Float4E2M1FNType,
)
_FLOATS = (Float32Type, Float64Type, Float16Type, BFloat16Type, *_SMALL_FLOATS)


def is_float(element: Attribute) -> bool:
    """Whether floating point, of any width."""
    return isinstance(element, _FLOATS)


def is_small_float(element: Attribute) -> bool:
    """Whether a float of 8 or 4 bits, which is only converted and moved; an element is a byte."""
    return isinstance(element, _SMALL_FLOATS)


def is_half(element: Attribute) -> bool:
    """Whether a 16-bit float: computed as float32, rounded when stored."""
    return isinstance(element, Float16Type | BFloat16Type)


def is_narrow_float(element: Attribute) -> bool:
    """Whether a float of 16 bits or less: held as float32, rounded when stored."""
    return is_half(element) or is_small_float(element)


def is_bool(element: Attribute) -> bool:
    """Whether i1."""
    return element == i1


def is_unsigned(element: Attribute) -> bool:
    """Whether an unsigned integer."""
    return isinstance(element, IntegerType) and element.signedness.data == Signedness.UNSIGNED


def is_signed_int(element: Attribute) -> bool:
    """Whether a signed integer; i1 is not one."""
    return isinstance(element, IntegerType) and not is_unsigned(element) and element != i1


def is_byte(element: Attribute) -> bool:
    """Whether an integer of 8 bits."""
    return isinstance(element, IntegerType) and element.width.data == 8


def is_storage(element: Attribute) -> bool:
    """Whether an integer of 2 or 4 bits, which is only converted and moved; a byte each."""
    return isinstance(element, IntegerType) and 1 < element.width.data < 8


def reference_dtype(element: Attribute) -> np.dtype[Any]:
    """The dtype in which the reference computes: float64, int64 (uint64) or bool."""
    if is_float(element):
        return np.dtype(np.float64)
    if is_bool(element):
        return np.dtype(np.bool_)
    return np.dtype(np.uint64 if is_unsigned(element) else np.int64)


def finite_range(element: Attribute) -> tuple[float, float]:
    """The lowest and greatest finite number of a float type; the infinities for any other."""
    if not is_float(element):
        return -math.inf, math.inf
    info = ml_dtypes.finfo(to_numpy(element))
    return float(info.min), float(info.max)


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether every number of the type `narrow` is a number of the type `wide`."""
    if is_small_float(wide):  # they differ in infinities, NaN and zeros, too
        return wide == narrow
    if is_float(narrow):
        if not is_float(wide):
            return False
        more, less = (ml_dtypes.finfo(to_numpy(e)) for e in (wide, narrow))
        lowest = less.minexp - less.nmant >= more.minexp - more.nmant  # the least denormals
        return less.nmant <= more.nmant and less.maxexp <= more.maxexp and lowest
    low, high = integer_range(narrow)
    if is_float(wide):
        return holds_range(wide, low, high)
    least, greatest = integer_range(wide)
    return least <= low and high <= greatest


def holds_range(element: Attribute, low: int, high: int) -> bool:
    """Whether a float type can represent every integer from `low` to `high`."""
    if is_small_float(element):
        return False
    info = ml_dtypes.finfo(to_numpy(element))
    return max(-low, high) <= min(2 ** (info.nmant + 1), int(float(info.max)))


@lru_cache(maxsize=64)
def integer_range(element: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer type; of booleans 0 and 1."""
    assert isinstance(element, IntegerType)
    if is_bool(element):
        return 0, 1
    bits = element.width.data
    return (0, (1 << bits) - 1) if is_unsigned(element) else (-(1 << bits - 1), (1 << bits - 1) - 1)


def byte_width(element: Attribute) -> int:
    """Bytes of one element."""
    return to_numpy(element).itemsize


def tensor(shape: Sequence[int | Extent], element: Attribute = f32) -> Tensor:
    """A ranked tensor type; extents that are symbols are its `#graph.dims`."""
    for n in shape:
        if not isinstance(n, int):
            numbers = [d if isinstance(d, int) else DYNAMIC for d in shape]
            return TensorType(element, numbers, DimsAttr.of(shape))
    return _tensor(tuple(shape), element)  # pyright: ignore[reportArgumentType]


@lru_cache(maxsize=1 << 16)
def _tensor(shape: tuple[int, ...], element: Attribute) -> Tensor:
    """Types are values, and building one verifies it: so each is built once."""
    return TensorType(element, shape)


def placeholders(types: Sequence[Attribute]) -> Sequence[SSAValue]:
    """Values of these types that no program computes: operands of an op that is looked at alone."""
    return Block(arg_types=types).args


def tensor_type(value: SSAValue) -> Tensor:
    """The tensor type of a value. Raises UserError for anything else."""
    if not isinstance(value.type, TensorType):
        raise UserError("a tensor is needed here", expected="tensor<...>", found=value.type)
    return value.type


def named_dims(type_: ShapedType) -> tuple[int, ...]:
    """As `dims_of`, of any dialect's type: a `?` without a name stays -1."""
    if isa(type_, TensorType[Attribute]) and isinstance(type_.encoding, DimsAttr):
        return dims_of(type_)
    return type_.get_shape()


def dims_of(type_: Tensor) -> tuple[int, ...]:
    """Extents of a tensor type: numbers, and for symbols `Extent`s, which compute like numbers.

    Raises:
        UserError: a `?` has no name.
    """
    found = type_.get_shape()
    if DYNAMIC not in found:
        return found
    if not isinstance(type_.encoding, DimsAttr):
        names = ", ".join(f"n{k}" if n == DYNAMIC else str(n) for k, n in enumerate(found))
        text = str(type_).removesuffix(">")
        raise UserError(
            "a dim has no number and no name", found=type_, hint=f"{text}, #graph.dims<{names}>>"
        )
    dims = type_.encoding.extents()
    if len(dims) != len(found):
        raise UserError(f"{type_.encoding} names {len(dims)} dims of a tensor of {len(found)}")
    for n, dim in zip(found, dims, strict=True):
        if isinstance(dim, int) and n == DYNAMIC:
            raise UserError(f"the dim {dim} is no symbol: write it in the shape", found=type_)
        if n not in (DYNAMIC, dim):
            raise UserError("shape and names of the dims differ", expected=n, found=dim)
    return dims  # pyright: ignore[reportReturnType]


def same_type(a: Tensor, b: Tensor) -> bool:
    """Whether two types are one. Of symbolic dims their equality is asked for."""
    if a == b:
        return True
    return a.element_type == b.element_type and same_dims(dims_of(a), dims_of(b))


def example_type(value: SSAValue) -> Tensor:
    """The type of a tensor value with the example sizes of symbols for them."""
    found = tensor_type(value)
    if DYNAMIC not in found.get_shape():
        return found
    from .extents import active_env, at_sizes

    return tensor(at_sizes(dims_of(found), active_env().sizes), found.element_type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tensor value: numbers, or of a program without fixed shapes `Extent`s."""
    return dims_of(tensor_type(value))


def element_of(value: SSAValue) -> Attribute:
    """Element type of a tensor value."""
    return tensor_type(value).element_type


def element_count(type_: Tensor) -> int:
    """Number of elements."""
    return math.prod(dims_of(type_))


def byte_size(type_: Tensor) -> int:
    """Bytes of all elements, dense."""
    return element_count(type_) * byte_width(type_.element_type)


def is_static(type_: Tensor) -> bool:
    """Whether no extent is dynamic."""
    return DYNAMIC not in type_.get_shape()
