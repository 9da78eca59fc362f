"""An ONNX node as a converter sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.dims import is_symbolic, surely_same
from ...dialects.errors import UserError
from ...dialects.types import Array, element_of, shape_of
from .values import NotConstant, OnnxValue


class OnnxNode:
    """Attributes, operands and builder of one node.

    Operands by position: `node[k]` as SSA value, `node.known(k)` as numpy array if the data are
    known at import time, `node.constant(k, what)` if they must be.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        version: int,
        inputs: Sequence[OnnxValue | None],
        build: GraphBuilder,
        fresh: Callable[[str], str],
    ):
        self.proto = proto
        self.version = version
        self.inputs = inputs
        self.build = build
        self.fresh = fresh
        self.attributes = {a.name: a for a in proto.attribute}

    @property
    def op_type(self) -> str:
        return self.proto.op_type

    @property
    def where(self) -> str:
        """The name of this node for users."""
        return describe(self.proto)

    # --- operands ---

    def __len__(self) -> int:
        """Number of operands, without missing ones at the end."""
        return max((k + 1 for k, v in enumerate(self.inputs) if v is not None), default=0)

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def value(self, k: int) -> OnnxValue:
        """Operand `k`. Raises UserError where it is missing."""
        found = self.inputs[k] if k < len(self.inputs) else None
        if found is None:
            raise UserError(f"operand {k} is missing", where=self.where)
        return found

    def __getitem__(self, k: int) -> SSAValue:
        return self.value(k).ssa(self.build, self.fresh, self.where)

    def operands(self) -> list[SSAValue]:
        """All operands of a variadic op."""
        return [self[k] for k in range(len(self))]

    def shape(self, k: int) -> tuple[int, ...]:
        return self.value(k).shape

    def known(self, k: int) -> Array | None:
        """Data of operand `k`; None if missing or computed by the program."""
        if not self.has(k) or not self.value(k).is_known:
            return None
        return self.value(k).array()

    def constant(self, k: int, what: str) -> Array:
        """Data of operand `k`, which must be known. Raises NotConstant."""
        if not self.value(k).is_known:
            raise NotConstant(self.value(k).name, what, self.where)
        return self.value(k).array()

    def constant_ints(self, k: int, what: str) -> list[int]:
        """Data of operand `k` as a list; of a program without fixed shapes `Extent`s among them."""
        found = self.constant(k, what).ravel()
        return [v if is_symbolic([v]) else int(v) for v in found]

    def constant_number(self, k: int, what: str) -> Any:
        """Data of operand `k`, which must be one known number. Raises UserError."""
        array = self.constant(k, what)
        if array.size != 1:
            raise UserError(
                f"{what} is not a single number", where=self.where, found=list(array.shape)
            )
        return array.ravel()[0]

    def constant_int(self, k: int, what: str) -> int:
        return int(self.constant_number(k, what))

    def of_rank(self, k: int, *ranks: int) -> tuple[int, ...]:
        """The shape of operand `k`. Raises UserError if its rank is none of these."""
        shape = self.shape(k)
        if len(shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            raise UserError(
                f"operand {k} has the wrong rank",
                where=self.where,
                expected=expected,
                found=list(shape),
            )
        return shape

    # --- attributes ---

    def typed(self, name: str, kind: int) -> AttributeProto | None:
        """An attribute of this kind; None if missing. Raises UserError for another kind."""
        proto = self.attributes.get(name)
        if proto is not None:
            self._check(proto, kind)
        return proto

    def tensor(self, name: str) -> onnx.TensorProto | None:
        proto = self.typed(name, AttributeProto.TENSOR)
        return None if proto is None else proto.t

    def graph(self, name: str) -> onnx.GraphProto:
        """A subgraph. Raises UserError where it is missing."""
        proto = self.typed(name, AttributeProto.GRAPH)
        if proto is None:
            raise UserError(f"subgraph '{name}' is missing", where=self.where)
        return proto.g

    def floats(self, name: str) -> list[float] | None:
        proto = self.typed(name, AttributeProto.FLOATS)
        return None if proto is None else list(proto.floats)

    def strings(self, name: str) -> list[str]:
        proto = self.typed(name, AttributeProto.STRINGS)
        return [] if proto is None else [s.decode(errors="replace") for s in proto.strings]

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers. Raises UserError where it is missing and has no default."""
        proto = self.attributes.get(name)
        if proto is None:
            if default is None:
                raise UserError(f"attribute '{name}' is missing", where=self.where)
            return list(default)
        self._check(proto, AttributeProto.INTS)
        return list(proto.ints)

    def int(self, name: str, default: int) -> int:
        proto = self.attributes.get(name)
        if proto is None:
            return default
        self._check(proto, AttributeProto.INT)
        return proto.i

    def flag(self, name: str, default: bool = False) -> bool:
        return self.int(name, int(default)) != 0

    def float(self, name: str, default: float) -> float:
        """A float attribute, exactly: ONNX holds it in 32 bits, its default too."""
        proto = self.attributes.get(name)
        if proto is None:
            return float(np.float32(default))
        self._check(proto, AttributeProto.FLOAT)
        return proto.f

    def string(self, name: str, default: str) -> str:
        proto = self.attributes.get(name)
        if proto is None:
            return default
        self._check(proto, AttributeProto.STRING)
        return proto.s.decode(errors="replace")

    def _check(self, proto: AttributeProto, kind: int) -> None:
        if proto.type not in (kind, AttributeProto.UNDEFINED):
            raise UserError(f"attribute '{proto.name}' has the wrong type", where=self.where)

    # --- outputs ---

    def wants(self, k: int) -> bool:
        """Whether output `k` has a name, so that it may be read."""
        return k < len(self.proto.output) and self.proto.output[k] != ""

    # --- short hands for compositions ---

    def axis(self, value: int, rank: int) -> int:
        """A non-negative axis. Raises UserError outside [-rank, rank)."""
        if not -rank <= value < rank:
            raise UserError(f"axis {value} is not in [-{rank}, {rank})", where=self.where)
        return value % rank

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Sorted non-negative axes. Raises UserError if one is out of range or repeated."""
        found = sorted(self.axis(v, rank) for v in values)
        if len(set(found)) != len(found):
            raise UserError("an axis stands twice", where=self.where, found=list(values))
        return found

    def literal(self, value: Any, like: SSAValue) -> SSAValue:
        """A number (or small array) of `like`'s element type, broadcast to its shape."""
        return self.build.expand(self.scalar(value, element_of(like)), shape_of(like))

    def scalar(self, value: Any, element: Attribute) -> SSAValue:
        return self.build.constant(np.asarray(value), element)

    def data(self, array: Array, name: str) -> SSAValue:
        """A constant that a composition needs: a literal, or a weight if large."""
        full = f"{self.proto.name or next(iter(self.proto.output), '')}/{name}"
        return OnnxValue.of_array(full, array).ssa(self.build, self.fresh, self.where)

    def together(self, *values: SSAValue) -> list[SSAValue]:
        """The values broadcast to one shape."""
        return self.build.broadcast_together(*values)

    def reshape(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Reshape; no op if nothing changes."""
        return x if surely_same(shape_of(x), shape) else self.build.reshape(x, shape=list(shape))

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        """Transpose; no op if nothing changes."""
        return x if list(perm) == sorted(perm) else self.build.transpose(x, perm=list(perm))

    def cast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """Convert; no op if nothing changes."""
        return x if element_of(x) == element else self.build.cast(x, to=element)


def describe(proto: onnx.NodeProto) -> str:
    """A node's name, or else its first output, with its op."""
    name = proto.name or next((o for o in proto.output if o), "")
    op = (
        f"{proto.domain}::{proto.op_type}" if proto.domain not in ("", "ai.onnx") else proto.op_type
    )
    return f"node '{name}' ({op})"
