"""Write the text of one kernel: indentation, names, includes, helpers, the comment on top."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from textwrap import wrap

from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Operation
from xdsl.printer import Printer

from ...dialects.algebra import OnesOp
from ...dialects.kernel import KernelOp
from .element_types import header
from .print_scalars import HELPERS, Body
from .program_data import CudaKernel, CudaParameter, Dim3
from .reductions import REDUCERS

WIDTH = 100
_KEYWORDS = frozenset(
    (  # noqa: SIM905 - a list of words reads better as a text
        "alignas alignof and asm auto bool break case catch char class const constexpr continue "
        "decltype default delete do double else enum explicit export extern false float for "
        "friend goto if inline int long mutable namespace new not operator or private protected "
        "public register return short signed sizeof static struct switch template this throw true "
        "try typedef typename union unsigned using virtual void volatile while xor "
        "half main exp expm1 log log1p sin cos tan abs pow min max erf tanh sqrt floor ceil trunc "
        "rint y0 y1 yn j0 j1 jn gamma threadIdx blockIdx blockDim gridDim warpSize"
    ).split()
)

LOAD4 = """\
// Four neighbours at once; their offset is a multiple of 4.
__device__ __forceinline__ float4 load4(const float *address) {
    return *reinterpret_cast<const float4 *>(address);
}"""
STORE4 = """\
__device__ __forceinline__ void store4(float *address, float4 value) {
    *reinterpret_cast<float4 *>(address) = value;
}"""
ALL_HELPERS: dict[str, str] = {**HELPERS, **REDUCERS, "load4": LOAD4, "store4": STORE4}

INFINITY = """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif"""
NOT_A_NUMBER = """\
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif"""


class Names:
    """The identifiers of one kernel, all different."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = {*_KEYWORDS, *ALL_HELPERS, *taken}
        self._scopes: list[list[str]] = []

    def fresh(self, wanted: str) -> str:
        """`wanted` as an identifier, with a number appended if it is taken."""
        name = identifier(wanted)
        count, found = 0, name
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        if self._scopes:
            self._scopes[-1].append(found)
        return found

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block of C: names made in it are free again after it."""
        self._scopes.append([])
        yield
        self._taken -= set(self._scopes.pop())


def identifier(text: str) -> str:
    """The closest valid C identifier."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"k{clean}" if not clean or clean[0].isdigit() or clean.startswith("__") else clean


@dataclass
class CudaWriter:
    """Lines of a kernel's body, indented; its names, and the helpers that it calls."""

    names: Names
    kind: str = "int"
    """Type of indices: `int`, or `long long` if 32 bits are not enough."""
    lines: list[str] = field(default_factory=list[str])
    helpers: set[str] = field(default_factory=set[str])
    shared_bytes: int = 0
    _depth: int = 1

    def line(self, text: str) -> None:
        """One line; a long one is broken at its outermost commas and operators."""
        self.lines += broken(text, "    " * self._depth)

    def add(self, body: Body) -> None:
        """Write the lines that a scalar body needs before its value."""
        for text in body.lines:
            self.line(text)
        self.helpers |= body.helpers

    @contextmanager
    def block(self, head: str, end: str = "}") -> Generator[None]:
        """Write `head {`, the block's lines, and `}`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        with self.names.scope():
            yield
        self._depth -= 1
        self.line(end)

    @contextmanager
    def loop(self, name: str, extent: int, unroll: bool = False) -> Generator[None]:
        """A counting loop."""
        if unroll:
            self.lines.append("#pragma unroll")
        with self.block(f"for ({self.kind} {name} = 0; {name} < {extent}; ++{name})"):
            yield

    def shared(self, ctype: str, width: int, name: str, dims: Sequence[int]) -> None:
        """Declare an array in shared memory, aligned to 16 bytes."""
        self.shared_bytes = -(-self.shared_bytes // 16) * 16 + math.prod(dims) * width
        sizes = "".join(f"[{n}]" for n in dims)
        self.line(f"__shared__ __align__(16) {ctype} {name}{sizes};")


@contextmanager
def unrolled_loop(writer: CudaWriter, wanted: str, count: int, unroll: int = 0) -> Generator[str]:
    """Print a loop over a few positions around what follows; give its iterator, "0" without a loop.

    Args:
        count: the iterations; no loop is printed for one.
        unroll: how many are unrolled, 0 for all.
    """
    if count == 1:
        yield "0"
        return
    with writer.names.scope():
        name = writer.names.fresh(wanted)
        whole = unroll in (0, count)
        writer.lines.append("#pragma unroll" if whole else f"#pragma unroll {unroll}")
        with writer.block(f"for (int {name} = 0; {name} < {count}; ++{name})"):
            yield name


# Where a line is not broken: products, casts to pointers, brackets without inner brackets.
_WHOLE = re.compile(r"\w+ [*/%] \w+|<[^<>]*\*>|\([^()]{0,40}\)|\[[^\[\]]{0,40}\]")
_GLUE = "\u00a0"


def broken(text: str, indent: str) -> list[str]:
    """Break a line into lines of at most WIDTH; continuation lines are indented by two steps."""
    if len(indent) + len(text) <= WIDTH or text.startswith(("//", "#")):
        return [indent + text]
    parts = wrap(
        _WHOLE.sub(lambda found: found[0].replace(" ", _GLUE), text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "        ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(_GLUE, " ") for part in parts]


def described(op: KernelOp, arguments: Sequence[str], result: str) -> list[str]:
    """The comment above a kernel: its origin, and its scopes as IR."""
    clone = op.clone()
    for arg, name in zip(clone.body.block.args, arguments, strict=True):
        arg.name_hint = name
    for inner in clone.body.block.ops:
        if inner.results:
            inner.results[0].name_hint = "ones" if isinstance(inner, OnesOp) else "value"
    if clone.scopes:
        clone.scopes[-1].result.name_hint = result
    out = StringIO()
    printer = Printer(out)
    for arg in clone.body.block.args:
        printer.print_ssa_value(arg)
    out.truncate(0)
    out.seek(0)
    for inner in clone.body.block.ops:
        if inner is not clone.body.block.last_op:
            printer.print_op(inner)
            out.write("\n")
    lines: list[str] = []
    for text in out.getvalue().replace("%", "").replace(" algebra.scope", "").splitlines():
        lines += wrap(text.strip(), WIDTH - 3, subsequent_indent="    ", break_on_hyphens=False)
    clone.erase()
    return [f"// {line}" for line in lines]


def origin(op: Operation) -> str:
    """The source name of an op as one line of a comment, or its own name."""
    if isinstance(op.location, NameLoc):
        return re.sub(r"[^ -~]|\\", "_", op.location.desc.data)
    hint = op.results[0].name_hint if op.results else None
    return hint or op.name.rpartition(".")[2]


def finish(
    writer: CudaWriter,
    name: str,
    comment: Sequence[str],
    parameters: Sequence[CudaParameter],
    grid: int,
    threads: int,
    restrict: bool = True,
) -> CudaKernel:
    """Assemble a kernel.

    Args:
        restrict: whether no two parameters overlap.
    """
    arguments = [_declared(p, restrict) for p in parameters]
    # One block per multiprocessor is enough: using registers is better than spilling them.
    head = f'extern "C" __global__ void __launch_bounds__({threads}, 1)'
    first = [f"{name}({', '.join(arguments)}) {{"]
    if len(first[0]) > WIDTH:
        first = [f"{name}(", ",\n".join(f"        {text}" for text in arguments) + ") {"]
    definition = "\n".join([*comment, head, *first, *writer.lines, "}"]) + "\n"
    preamble = preamble_of(definition, writer.helpers)
    source = "\n\n".join([*preamble, definition])
    block: Dim3 = (threads, 1, 1)
    return CudaKernel(
        name,
        source,
        (grid, 1, 1),
        block,
        writer.shared_bytes,
        tuple(parameters),
        preamble,
        definition,
    )


def _declared(parameter: CudaParameter, restrict: bool) -> str:
    const = "" if parameter.written else "const "
    return f"{const}{parameter.ctype} *{'__restrict__ ' if restrict else ''}{parameter.name}"


def preamble_of(definition: str, helpers: set[str]) -> tuple[str, ...]:
    """Includes, constants and helper functions, each a separate text, in a fixed order."""
    used = [text for name, text in ALL_HELPERS.items() if name in helpers]
    everything = "\n".join([definition, *used])
    headers = [h for t in ("__half", "__nv_bfloat16") if t in everything and (h := header(t))]
    parts = ["\n".join(f"#include <{h}>" for h in headers)] if headers else []
    parts += [INFINITY] if re.search(r"\bINFINITY\b", everything) else []
    parts += [NOT_A_NUMBER] if re.search(r"\bNAN\b", everything) else []
    return (*parts, *used)
