"""What the buffers of a nest hold, and how its ops access them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, MemRefType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.index import Index as Affine
from ...dialects.nest import (
    STACK,
    AccessOp,
    AccumulateOp,
    AllocOp,
    ForOp,
    LoadOp,
    StoreOp,
    TransposeOp,
    is_local,
    loop_of,
)
from ..kernel_to_cpu.emit.access import (
    compute_type,
    memory_type,
)
from ..kernel_to_cpu.emit.scalar_code import (
    ALLOW_CONTRACT,
    FAST,
)
from ..kernel_to_cpu.emit.types import I1, Type


def buffer_type(buffer: SSAValue) -> tuple[Type, int]:
    """The type and number of a local buffer's elements.

    On the stack they have their memory type, else the type they are computed in.

    Bools are bytes: in vectors of bits, elements have no addresses.
    """
    assert isinstance(buffer.type, MemRefType)
    (count,) = buffer.type.get_shape()
    element = buffer.type.element_type
    bytes_ = is_on_stack(buffer) or compute_type(element) == I1
    return (memory_type if bytes_ else compute_type)(element), count


def is_on_stack(buffer: SSAValue) -> bool:
    """Whether a local buffer is memory, by its type."""
    return isinstance(buffer.type, MemRefType) and buffer.type.memory_space == STACK


def element_of(buffer: SSAValue) -> Attribute:
    """The type of a buffer's elements."""
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.element_type


def is_held(op: AllocOp) -> bool:
    """Whether a buffer's elements need no memory: each is one value wherever it is read.

    All accesses lie in one block, at constant positions: all with one aligned vector size, or
    stored with one and loaded at any position.
    """
    home, sizes = _enclosing_block(op), set[int]()
    stored, picked, known = set[int](), {1}, True
    for use in op.result.uses:
        user = use.operation
        if _enclosing_block(user) is not home or not isinstance(
            user, LoadOp | StoreOp | TransposeOp
        ):
            return False
        sizes.add(_vector_size(user))
        known = known and not isinstance(user, TransposeOp) and _is_known(user)
        if isinstance(user, StoreOp):
            stored.add(_vector_size(user, unaligned=True))
        elif isinstance(user, LoadOp):
            picked.add(_lanes(user))
    whole = len(sizes) == 1 and 0 not in sizes
    return whole or (known and len(stored) == 1 and min(stored) > 1 and picked <= {1, *stored})


def _lanes(op: LoadOp) -> int:
    """How many elements a load is of: the lanes of the vector loop it is in, if they decide."""
    loops = (loop_of(place) for place in op.places)
    return next((loop.width for loop in loops if loop.kind.data == "vector"), 1)


def is_split(op: AllocOp) -> bool:
    """Whether a buffer may be a stack slot for each vector: LLVM then need not find this out.

    All accesses are at constant positions, with one aligned vector size.
    """
    users = [use.operation for use in op.result.uses]
    if is_on_stack(op.result) or not all(isinstance(u, AccessOp) and _is_known(u) for u in users):
        return False
    sizes = {_vector_size(u) for u in users}  # pyright: ignore[reportArgumentType]
    return len(sizes) == 1 and 0 not in sizes


def _is_known(op: AccessOp) -> bool:
    """Whether an access is at a position that is constant after unrolling."""
    return all(loop_of(place).kind.data in ("unrolled", "vector") for place in op.places)


def is_contiguous_load(op: LoadOp) -> bool:
    """Whether a load of a local buffer is of one element, or of neighbours; true off the stack.

    The masked lanes lie in the buffer too: it holds whole vectors.
    """
    if not is_on_stack(op.buffer):
        return True
    (index, *guards), places = op.indices, list(op.places)
    vectors = [k for k, place in enumerate(places) if loop_of(place).kind.data == "vector"]
    if guards or not vectors:
        return not guards
    (k,) = vectors
    loop, others = loop_of(places[k]), index - Affine.iterator(k) * index.coefficient(k)
    if k in others.iterators or index.coefficient(k) not in (0, 1):
        return False
    steps = [others.constant, *(c for _, c in others.terms)]
    return loop.width == loop.size or all(step % loop.width == 0 for step in steps)


def is_copy(op: StoreOp) -> bool:
    """Whether what is stored was read without guards, to be stored here alone."""
    load = op.value.owner
    if not isinstance(load, LoadOp) or is_local(load.buffer) or load.guards:
        return False
    return len(list(load.result.uses)) == 1


def raw_type(element: Attribute) -> Attribute:
    """The type whose values are an element's bits in memory."""
    memory = memory_type(element)
    if memory == compute_type(element):
        return element
    return IntegerType(memory.bits)


def _vector_size(op: AccessOp | TransposeOp, *, unaligned: bool = False) -> int:
    """The elements that are accessed at once, if aligned to their number; else 0.

    With `unaligned`, they may start anywhere.
    """
    if isinstance(op, TransposeOp):
        # Its vectors are as long as the longer side, before and after.
        return max(op.rows.value.data, op.columns.value.data)
    (index, *_), size = op.indices, 1
    steps = [index.constant]
    for k, place in enumerate(op.places):
        loop, step = loop_of(place), index.coefficient(k)
        if step and loop.kind.data == "vector":
            size = loop.width if step == 1 or not unaligned else 0
        elif step and loop.kind.data != "unrolled":
            return 0
        else:
            steps.append(step)
    if unaligned:
        return 0 if index.has_floor else size
    return 0 if index.has_floor or any(step % size for step in steps) else size


def _enclosing_block(op: Operation) -> Operation | None:
    """The loop or branch that an op is in, after loops are unrolled."""
    outer = op.parent_op()
    while isinstance(outer, ForOp) and outer.kind.data in ("unrolled", "vector"):
        outer = outer.parent_op()
    return outer


def is_summed(op: arith.MulfOp) -> bool:
    """Whether a product is used only by a fused multiply-add."""
    uses = list(op.result.uses)
    taken = uses[0].operation if len(uses) == 1 else None
    return isinstance(taken, AccumulateOp) and taken.fused is not None


def fast_math_flags(op: Operation) -> str:
    """LLVM's flags for an op by its `fastmath` attribute."""
    written = op.properties.get("fastmath")
    if not isinstance(written, arith.FastMathFlagsAttr):
        return ""
    if FastMathFlag.REASSOC in written.data:
        return FAST
    return ALLOW_CONTRACT if FastMathFlag.ALLOW_CONTRACT in written.data else ""
