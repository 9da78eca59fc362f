"""Print a nest for CUDA: parallel loops become threads; unrolled and vector loops are unrolled.

A vector loop computes its iterations one by one here, so the text needs no vectors: a nest that was
scheduled for the CPU prints too. Local buffers are arrays of a thread; the compiler keeps elements
at constant indices in registers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.nest import (
    AccessOp,
    AccumulateOp,
    AllocOp,
    ForOp,
    IdentityOp,
    IfOp,
    InsideOp,
    LoadOp,
    NestOp,
    PlacedOp,
    PrefetchOp,
    StoreOp,
    TransposeOp,
    WhenOp,
    is_local,
    loop_of,
    parallel_loops,
)
from ..dialects.nest_computed import (
    AgainOp,
    CopyOp,
    IndexOp,
    RangeOp,
    ReadOp,
    RemainderOp,
    RepeatOp,
    WriteOp,
)
from .kernel_to_cuda.element_types import compute_type, literal, loaded, memory_type, stored
from .kernel_to_cuda.nest import point_number
from .kernel_to_cuda.print_index import INT_LIMIT, Iterators
from .kernel_to_cuda.print_reads import guard_text
from .kernel_to_cuda.print_scalars import (
    AND,
    CHOICE,
    UNARY,
    Body,
    Text,
    accumulate,
    identity,
    print_op,
)
from .kernel_to_cuda.program_data import CudaKernel, CudaParameter
from .kernel_to_cuda.writer import CudaWriter, Names, finish

THREADS = 256


def print_cuda(nest: NestOp, name: str) -> CudaKernel:
    """The kernel's text: a thread for each iteration of the outermost parallel loops."""
    buffers = nest.body.block.args
    written = {op.buffer for op in nest.walk() if isinstance(op, StoreOp | WriteOp)}
    written |= {op.target for op in nest.walk() if isinstance(op, CopyOp)}
    alone = sum(b in written for b in buffers) == 1
    parameters = tuple(
        _parameter(f"x{k}" if b not in written else "y" if alone else f"y{k}", b, b in written)
        for k, b in enumerate(buffers)
    )
    names = Names([p.name for p in parameters])
    writer = CudaWriter(names, _index_type(nest))
    printer = _Printer(writer, {b: p.name for b, p in zip(buffers, parameters, strict=True)})
    loops = parallel_loops(nest)
    for loop in loops:
        printer.names[loop.iterator] = names.fresh(loop.iterator.name_hint or "i")
    over = Iterators(
        tuple(printer.names[loop.iterator] for loop in loops), tuple(loop.size for loop in loops)
    )
    count = math.prod(over.extents)
    point_number(writer, over, list(range(len(loops))), THREADS)
    printer.block(loops[-1].block if loops else nest.body.block)
    grid = -(-count // THREADS)
    return finish(writer, name, [], parameters, grid, THREADS)


def _parameter(name: str, buffer: SSAValue, written: bool) -> CudaParameter:
    type_ = buffer.type
    assert isinstance(type_, MemRefType)
    return CudaParameter(name, memory_type(type_.element_type), type_.get_shape()[0], written)


def _index_type(nest: NestOp) -> str:
    """`int`, unless a buffer has more elements than it counts."""
    sizes = [b.type.get_shape()[0] for b in nest.body.block.args if isinstance(b.type, MemRefType)]
    return "int" if max(sizes) < INT_LIMIT - 1024 else "long long"


@dataclass
class _Printer:
    """Names of iterators and buffers, and the text of every value."""

    writer: CudaWriter
    buffers: dict[SSAValue, str]
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    values: dict[SSAValue, Text] = field(default_factory=dict[SSAValue, Text])

    def block(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case ForOp():
                self._for(op)
            case LoadOp():
                self.values[op.result] = self._named(op, self._load(op))
            case InsideOp():
                condition = guard_text(op.guards, self._over(op))
                yes, no = (literal(n, op.result.type) for n in (1, 0))
                text = Text(f"{condition} ? {yes} : {no}", CHOICE)
                self.values[op.result] = self._named(op, text)
            case StoreOp():
                value = self.values[op.value].text
                if not is_local(op.buffer):
                    assert isinstance(op.buffer.type, MemRefType)
                    value = stored(value, op.buffer.type.element_type)
                self.writer.line(f"{self._element(op, op.buffer)} = {value};")
            case AccumulateOp():
                self._accumulate(op)
            case AllocOp():
                self._array(op)
            case PrefetchOp():
                pass
            case IfOp():
                self._branches(guard_text(op.guards, self._over(op)), op.then, op.otherwise)
            case WhenOp():
                self._branches(self.values[op.condition].text, op.then, op.otherwise)
            case TransposeOp():
                self._transpose(op)
            case IdentityOp():
                kind = op.reduction.data.removeprefix("numeric_")
                self.values[op.result] = Text(identity(kind, op.result.type))
            case AgainOp():
                pass  # the loop around it reads the condition
            case RangeOp() | RepeatOp() | CopyOp() | WriteOp():
                self._computed(op)
            case IndexOp():
                text = Text(f"(long long)({self._over(op).text(op.indices[0])})", UNARY)
                self.values[op.result] = self._named(op, text)
            case ReadOp():
                text = f"{self.buffers[op.buffer]}[{self.values[op.place].text}]"
                if not is_local(op.buffer):
                    assert isinstance(op.buffer.type, MemRefType)
                    text = loaded(text, op.buffer.type.element_type)
                self.values[op.result] = self._named(op, Text(text))
            case _ if (unsigned := _without_sign(op, self.values)) is not None:
                self.values[op.results[0]] = self._named(op, unsigned)
            case _:
                body = Body()
                text = print_op(op, self.values, body)
                self.writer.add(body)
                self.values[op.results[0]] = self._named(op, text)

    def _computed(self, op: RangeOp | RepeatOp | CopyOp | WriteOp) -> None:
        """Loops and writes whose places are computed."""
        writer, text = (
            self.writer,
            {v: self.values[v].text for v in op.operands if v in self.values},
        )
        match op:
            case RangeOp():
                with writer.names.scope():
                    name = writer.names.fresh(op.iterator.name_hint or "k")
                    self.values[op.iterator] = Text(name)
                    low, high = text[op.low], text[op.high]
                    with writer.block(f"for (long long {name} = {low}; {name} < {high}; ++{name})"):
                        self.block(op.block)
            case RepeatOp():
                again = writer.names.fresh("again")
                writer.line(f"bool {again};")
                last = op.block.last_op
                assert isinstance(last, AgainOp)
                with writer.block("do"):
                    self.block(op.block)
                    writer.line(f"{again} = {self.values[last.condition].text};")
                writer.line(f"while ({again});")
            case CopyOp():
                name = writer.names.fresh("k")
                target, source = (self.buffers[b] for b in (op.target, op.source))
                head = f"for (long long {name} = 0; {name} < {text[op.count]}; ++{name})"
                with writer.block(head):
                    value = f"{source}[{text[op.start]} + {name}]"
                    writer.line(f"{target}[{text[op.place]} + {name}] = {value};")
            case WriteOp():
                value = text[op.value]
                if not is_local(op.buffer):
                    assert isinstance(op.buffer.type, MemRefType)
                    value = stored(value, op.buffer.type.element_type)
                writer.line(f"{self.buffers[op.buffer]}[{text[op.place]}] = {value};")

    def _named(self, op: Operation, text: Text) -> Text:
        """A name for a value that is used more than once, or later than its place."""
        value = op.results[0]
        if isinstance(op, arith.ConstantOp) or text.text.isidentifier():
            return text
        name = self.writer.names.fresh("t")
        self.writer.line(f"const {compute_type(value.type)} {name} = {text.text};")
        return Text(name)

    def _for(self, op: ForOp) -> None:
        writer = self.writer
        unrolled = op.kind.data in ("unrolled", "vector")
        lowers, uppers = op.bounds
        over = self._over(op)
        low, high = "0", str(op.size)
        for e in lowers:
            low = f"max({low}, {over.text(e)})"
        for e in uppers:
            high = f"min({high}, {over.text(e)})"
        if unrolled:
            writer.lines.append("#pragma unroll")
        with writer.names.scope():
            name = writer.names.fresh(op.iterator.name_hint or "i")
            self.names[op.iterator] = name
            head = f"for ({writer.kind} {name} = {low}; {name} < {high}; ++{name})"
            with writer.block(head):
                self.block(op.block)

    def _branches(self, condition: str, then: Region, otherwise: Region) -> None:
        with self.writer.block(f"if ({condition})"):
            self.block(then.block)
        if otherwise.block.first_op is not None:
            with self.writer.block("else"):
                self.block(otherwise.block)

    def _over(self, op: PlacedOp) -> Iterators:
        places = list(op.places)
        return Iterators(
            tuple(self.names[p] for p in places), tuple(loop_of(p).size for p in places)
        )

    def _element(self, op: AccessOp, buffer: SSAValue) -> str:
        return f"{self.buffers[buffer]}[{self._over(op).text(op.indices[0])}]"

    def _load(self, op: LoadOp) -> Text:
        type_ = op.buffer.type
        assert isinstance(type_, MemRefType)
        text = self._element(op, op.buffer)
        if not is_local(op.buffer):
            text = loaded(text, type_.element_type)
        condition = guard_text(op.guards, self._over(op))
        if not condition:
            return Text(text)
        outside = literal(op.outside.value.data, type_.element_type)
        return Text(f"{condition} ? {text} : {outside}", CHOICE)

    def _accumulate(self, op: AccumulateOp) -> None:
        total, value, kind = self._element(op, op.buffer), self.values[op.value], op.reduction.data
        if kind == "or":
            self.writer.line(f"{total} = {total} | {value.at(AND + 1)};")
            return
        if kind.startswith("numeric_"):
            sign = ">" if kind == "numeric_max" else "<"
            self.writer.line(f"{total} = {total} {sign} {value.text} ? {total} : {value.text};")
            return
        body = Body()
        line = accumulate(kind, total, value, op.value.type, body)
        self.writer.add(body)
        self.writer.line(line)

    def _array(self, op: AllocOp) -> None:
        type_ = op.result.type
        assert isinstance(type_, MemRefType)
        name = self.writer.names.fresh("kept")
        self.buffers[op.result] = name
        ctype = compute_type(type_.element_type)
        self.writer.line(f"{ctype} {name}[{type_.get_shape()[0]}];")

    def _transpose(self, op: TransposeOp) -> None:
        """Transpose through a second array: the compiler renames registers."""
        rows, columns = op.rows.value.data, op.columns.value.data
        type_, name = op.buffer.type, self.buffers[op.buffer]
        assert isinstance(type_, MemRefType)
        writer = self.writer
        with writer.block(""):
            other, i, j = (writer.names.fresh(n) for n in ("turned", "i", "j"))
            writer.line(f"{compute_type(type_.element_type)} {other}[{rows * columns}];")
            for line in (
                f"{other}[{j} * {rows} + {i}] = {name}[{i} * {columns} + {j}];",
                f"{name}[{i} * {columns} + {j}] = {other}[{i} * {columns} + {j}];",
            ):
                writer.lines.append("#pragma unroll")
                with writer.block(f"for (int {i} = 0; {i} < {rows}; ++{i})"):
                    writer.lines.append("#pragma unroll")
                    with writer.block(f"for (int {j} = 0; {j} < {columns}; ++{j})"):
                        writer.line(line)


_INFIX: dict[type[Operation], str] = {arith.DivUIOp: "/", arith.RemUIOp: "%"}
_EXTREMES: dict[type[Operation], str] = {arith.MaxUIOp: ">", arith.MinUIOp: "<"}
_ORDERS = {6: "<", 7: "<=", 8: ">", 9: ">="}


def _without_sign(op: Operation, values: Mapping[SSAValue, Text]) -> Text | None:
    """The value of an op that reads no sign, of a shift or a remainder; None for any other."""
    args = [values[v].text for v in op.operands if v in values]
    if isinstance(op, RemainderOp):
        suffix = "" if compute_type(op.result.type) == "double" else "f"
        return Text(f"fmod{suffix}({args[0]}, {args[1]})")
    if isinstance(op, arith.ShRSIOp | arith.ShLIOp | arith.ShRUIOp):
        return _shifted(op, *args)
    unsigned = isinstance(op, arith.CmpiOp) and op.predicate.value.data in _ORDERS
    casts = arith.ExtUIOp | arith.UIToFPOp
    if not (unsigned or type(op) in {**_INFIX, **_EXTREMES} or isinstance(op, casts)):
        return None
    source = op.operands[0].type
    if not isinstance(source, IntegerType) or source.width.data == 1:
        return None
    a, *rest = (f"({_unsigned(source)})({x})" for x in args)
    made = compute_type(op.results[0].type)
    if isinstance(op, casts):
        return Text(f"({made})({a})", UNARY)
    (b,) = rest
    if isinstance(op, arith.CmpiOp):
        return Text(f"({a} {_ORDERS[op.predicate.value.data]} {b})")
    if type(op) in _EXTREMES:
        return Text(f"({made})({a} {_EXTREMES[type(op)]} {b} ? {a} : {b})", UNARY)
    return Text(f"({b} == 0 ? 0 : ({made})({a} {_INFIX[type(op)]} {b}))")


def _shifted(op: Operation, x: str, by: str) -> Text:
    """A shift by all bits or more gives 0, or the sign."""
    element = op.results[0].type
    assert isinstance(element, IntegerType)
    bits, made, plain = element.width.data, compute_type(element), _unsigned(element)
    if isinstance(op, arith.ShRSIOp):
        return Text(f"({made})({x} >> (({plain})({by}) < {bits} ? {by} : {bits - 1}))", UNARY)
    sign = "<<" if isinstance(op, arith.ShLIOp) else ">>"
    return Text(f"(({plain})({by}) < {bits} ? ({made})(({plain})({x}) {sign} {by}) : 0)")


def _unsigned(element: IntegerType) -> str:
    return compute_type(IntegerType(element.width.data, Signedness.UNSIGNED))
