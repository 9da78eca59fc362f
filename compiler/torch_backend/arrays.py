"""Tensors as arrays and back, over the same memory."""

# pyright: reportMissingImports=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import torch

from ...dialects.types import Array
from .layouts import Layout


@dataclass(frozen=True)
class TensorPort:
    """Where a tensor enters or leaves a program: its name there, layout and strides."""

    name: str
    layout: Layout
    strides: tuple[int, ...]
    is_plain: bool  # the block is the tensor
    dtype: Any

    @staticmethod
    def of(name: str, layout: Layout, fake: Any) -> TensorPort:
        """A port; tensors that lie otherwise than the fake one have the layout's own strides."""
        strides = fake.stride()
        same = Layout.of(layout.shape, strides) == layout
        strides = tuple(strides) if same else layout.block_strides
        return TensorPort(name, layout, strides, layout.is_contiguous, fake.dtype)

    def placed(self, tensor: Any) -> Any:
        """The tensor where its block lies as the program reads it, or else a copy."""
        if tensor.shape != self.layout.shape or tensor.dtype != self.dtype:
            raise RuntimeError(f"{self.name}: a tensor of another shape or type than compiled for")
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        return tensor if tensor.stride() == self.strides else self._laid_out(tensor)

    def array(self, tensor: Any) -> Array:
        """The block of a placed tensor."""
        if not self.is_plain:
            block = self.layout.block
            tensor = tensor.as_strided(block, self.layout.block_strides)
        return as_array(tensor)

    def _laid_out(self, tensor: Any) -> Any:
        """The tensor with this layout."""
        if Layout.of(tensor.shape, tensor.stride()) == self.layout:
            return tensor
        if self.layout.is_broadcast:
            raise RuntimeError(f"{self.name}: a tensor that was broadcast no longer is")
        made = torch.empty_strided(self.layout.shape, self.strides, dtype=tensor.dtype)
        return made.copy_(tensor)

    def tensor(self, block: Array) -> Any:
        """The tensor over a block."""
        made = as_tensor(block)
        if self.is_plain and made.stride() == self.strides:
            return made
        return made.as_strided(self.layout.shape, self.strides)


@dataclass(frozen=True)
class SymbolicPort:
    """As `TensorPort` for a tensor whose sizes differ from call to call: its dims as they lie in
    memory, outermost first."""

    name: str
    order: tuple[int, ...]

    def placed(self, tensor: Any) -> Any:
        """The tensor: its array copies where it lies otherwise."""
        return tensor.resolve_neg() if tensor.is_neg() else tensor

    def array(self, tensor: Any) -> Array:
        """The dims in this order, copied where they lie otherwise."""
        return as_array(tensor.permute(self.order).contiguous())

    def tensor(self, block: Array) -> Any:
        """The tensor over a block."""
        return as_tensor(block).permute([self.order.index(k) for k in range(len(self.order))])


def as_array(tensor: Any) -> Array:
    """An array over a contiguous tensor's memory; numpy has no bfloat16 of its own."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def as_tensor(array: Array) -> Any:
    """A tensor over an array's memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
