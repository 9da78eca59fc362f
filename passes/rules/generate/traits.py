"""Properties of each term of a table that pruning reads, from one pass over the arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from ..rule import Var
from .candidates import KERNELS
from .table import NONE, Ids, Table

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Sets: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"


class Traits:
    """Row k is of term k; sets of variables are bits.

    Attributes:
        variables: in the term; `images`: in images of its convolutions; `kernels`: in their other
            operands.
        linear: it has each variable once.
        constants: it has some.
        loose: it has a constant kernel that no convolution uses as its kernel.
    """

    def __init__(self, table: Table) -> None:
        count = len(table)
        self.table = table
        self.variables: Sets = np.zeros(count, np.int32)
        self.images: Sets = np.zeros(count, np.int32)
        self.kernels: Sets = np.zeros(count, np.int32)
        self.uses: Sets = np.zeros(count, np.int32)
        self.constants: Mask = np.zeros(count, bool)
        self.loose: Mask = np.zeros(count, bool)
        for k, leaf in enumerate(table.leaves):
            self.variables[k] = 1 << k if isinstance(leaf, Var) else 0
            self.uses[k] = isinstance(leaf, Var)
            self.constants[k] = not isinstance(leaf, Var)
            self.loose[k] = not isinstance(leaf, Var) and leaf.op in KERNELS  # pyright: ignore
        for which, rows in self._blocks():
            self._fill(table.world.operators[which].op == "conv", rows)
        self.linear: Mask = self.uses == self.distinct

    @property
    def distinct(self) -> Sets:
        """The number of variables of each term."""
        return sum((self.variables >> k) & 1 for k in range(len(self.table.leaves)))  # pyright: ignore

    def _blocks(self) -> Iterator[tuple[int, slice]]:
        """Operators and the terms they made, in order."""
        ends = np.searchsorted(self.table.block, np.arange(len(self.table.made_by) + 1))
        for block, (which, _, _) in enumerate(self.table.made_by):
            if which >= 0:
                yield which, slice(int(ends[block]), int(ends[block + 1]))

    def _fill(self, is_conv: bool, rows: slice) -> None:
        operands: Ids = self.table.operands[rows]
        for k in range(operands.shape[1]):
            ids = operands[:, k]
            if not len(ids) or ids[0] == NONE:
                break
            self.variables[rows] |= self.variables[ids]
            self.images[rows] |= self.images[ids]
            self.kernels[rows] |= self.kernels[ids]
            self.uses[rows] += self.uses[ids]
            self.constants[rows] |= self.constants[ids]
            if is_conv:
                kept = self.images if k == 0 else self.kernels
                kept[rows] |= self.variables[ids]
            if not (is_conv and k == 1):
                self.loose[rows] |= self.loose[ids]

    def apart(self, left: Ids, right: Ids) -> Mask:
        """Whether no variable of a pair is image and kernel, and constant kernels are kernels."""
        images = self.images[left] | self.images[right]
        kernels = self.kernels[left] | self.kernels[right]
        return ((images & kernels) == 0) & ~self.loose[left] & ~self.loose[right]

    def useful(self, left: Ids, right: Ids) -> Mask:
        """Whether a pair at the size limit is more than a special case that the limit cuts off."""
        linear = self.linear[left] | self.linear[right]
        return linear & ~(self.constants[left] & self.constants[right])
