"""Print `graph.gather`: rows of a table at data-dependent positions."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerAttr

from ...dialects.kernel import CallOp
from ...dialects.types import shape_of
from .nest import parameter, thread_number
from .print_index import INT_LIMIT, decode
from .program_data import CudaKernel
from .writer import CudaWriter, Names, finish, origin

THREADS = 256


def print_gather(op: CallOp, name: str) -> CudaKernel:
    """One thread per element of the result.

    Negative positions count from the end. A position outside the table reads the nearest row, since
    a kernel cannot raise an error. The CPU target and the reference do.
    """
    x, indices = op.inputs
    axis = op.config.data["axis"]
    assert isinstance(axis, IntegerAttr)
    k, shape = axis.value.data, shape_of(x)
    outer, size, inner = math.prod(shape[:k]), shape[k], math.prod(shape[k + 1 :])
    count = math.prod(shape_of(indices))
    total = outer * count * inner
    parameters = (
        parameter("table", x, written=False),
        parameter("positions", indices, written=False),
        parameter("y", op.outputs[0], written=True),
    )
    small = max(total, math.prod(shape)) + THREADS < INT_LIMIT
    writer = CudaWriter(Names([p.name for p in parameters]), "int" if small else "long long")
    thread_number(writer, "element", THREADS, total)
    for text in decode(
        "element", [("slice", outer), ("number", count), ("within", inner)], writer.kind
    ):
        writer.line(text)
    writer.line("long long position = positions[number];")
    writer.line(f"if (position < 0) position += {size};")
    writer.line(f"position = position < 0 ? 0 : position >= {size} ? {size - 1} : position;")
    writer.line(f"y[element] = table[(slice * {size} + position) * {inner} + within];")
    comment = [
        f"// {origin(op)}",
        f"// y = gather of the rows of dim {k} of table{list(shape)} at positions",
    ]
    return finish(writer, name, comment, parameters, max(1, -(-total // THREADS)), THREADS)
