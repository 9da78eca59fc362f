"""What a model declares of its outputs, beside what they are."""

from __future__ import annotations

import onnx

from ...dialects.dims import fits, is_symbolic, shown
from ...dialects.errors import UserError, warn
from .shape_binding import declared_dims, held_type
from .tensor_data import element_of_number
from .values import OnnxValue


def check_declared(
    info: onnx.ValueInfoProto, value: OnnxValue, where: str, padded: int | None = None
) -> None:
    """Warn of a wrong declared shape. Raises UserError on another element type.

    Args:
        padded: a dim whose size depends on data.
    """
    if info.type.WhichOneof("value") is None:
        return
    listed, type_ = held_type(info.type, where)
    if listed:  # its tensors may differ in shape
        type_.tensor_type.ClearField("shape")
    declared = type_.tensor_type
    if declared.elem_type and element_of_number(declared.elem_type, where) != value.element:
        expected = element_of_number(declared.elem_type, where)
        raise UserError(
            "declared with another element type",
            where=where,
            expected=expected,
            found=value.element,
        )
    dims = declared_dims(onnx.ValueInfoProto(type=type_))
    if dims is not None and padded is not None:
        dims = tuple(None if k == padded else n for k, n in enumerate(dims))
    if not is_symbolic(value.shape) and not fits(dims, value.shape):
        warn(f"declared with dims {shown(dims)}, it has {list(value.shape)}", where)
