"""Collect the functions, declarations and metadata of one LLVM module, in a fixed order."""

import hashlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .emitter import Emitter
from .types import I64, PTR, Index, Type, Value


@dataclass(frozen=True)
class KernelCode:
    """Hold one kernel: `void @symbol(ptr args, i64 lo, i64 hi)` with a parallel space of `items`.

    `args` points to an array of pointers, operands first, then results. The text names no address,
    so what it compiles to can be cached by content. `arguments` is the length of that array.
    """

    symbol: str
    ir: str
    items: int
    arguments: int


class Module:
    """Build the text of one LLVM module."""

    def __init__(self) -> None:
        self._functions: list[str] = []
        self._declarations: dict[str, str] = {}
        self._metadata: list[str] = []
        self._loops: dict[str, str] = {}
        self._emitted: dict[str, str] = {}
        self._nontemporal = ""

    def declare(self, name: str, result: Type | None, params: Sequence[Type]) -> None:
        """Declare the external function `name` once."""
        listed = ", ".join(params)
        self._declarations[name] = f"declare {result or 'void'} @{name}({listed})"

    def once(self, key: str, emit: Callable[[str], None]) -> str:
        """Emit a helper function the first time `key` is seen; give its name each time.

        `emit` receives the name, which it must define by `function`.
        """
        if key not in self._emitted:
            self._emitted[key] = f"f{len(self._emitted)}"
            emit(self._emitted[key])
        return self._emitted[key]

    def loop_metadata(self, unroll: int | None, vectors: bool = False) -> str:
        """Make the suffix that tells LLVM how often to unroll a loop (1: not at all).

        Args:
            vectors: LLVM may compute neighbouring rounds in vectors (sums then lose their order).
        """
        if unroll is None and not vectors:
            return ""
        hint = "llvm.loop.unroll.disable" if unroll == 1 else "llvm.loop.unroll.count"
        count = "" if unroll == 1 else f", i32 {unroll}"
        if vectors:
            hint, count = "llvm.loop.vectorize.enable", ", i1 true"
        if hint not in self._loops:
            self._loops[hint] = self._node(f'!{{!"{hint}"{count}}}')
        number = len(self._metadata)
        return f", !llvm.loop {self._node(f'distinct !{{!{number}, {self._loops[hint]}}}')}"

    def nontemporal(self) -> str:
        """Make the suffix of a non-temporal store."""
        if not self._nontemporal:
            self._nontemporal = self._node("!{i32 1}")
        return f", !nontemporal {self._nontemporal}"

    @property
    def stores_nontemporal(self) -> bool:
        """Say whether some store is non-temporal: other threads need a fence to see it."""
        return bool(self._nontemporal)

    def _node(self, text: str) -> str:
        self._metadata.append(text)
        return f"!{len(self._metadata) - 1}"

    @contextmanager
    def function(
        self, name: str, params: Sequence[Type], *, linkage: str = "internal ", attributes: str = ""
    ) -> Generator[Emitter, None, None]:
        """Define `@name(params)`; pointers are `noalias`, values are `b.parameters`.

        It returns nothing unless the body sets `b.result`.
        """
        values = [Value(f"%p{i}", dtype) for i, dtype in enumerate(params)]
        listed = ", ".join(f"ptr noalias {v.text}" if v.type == PTR else str(v) for v in values)
        emitter = Emitter(self, values)
        yield emitter
        result = emitter.result.type if emitter.result else "void"
        head = f"define {linkage}{result} @{name}({listed}) {attributes}".rstrip()
        self._functions.append(f"{head} {{\n{emitter.text()}}}\n")

    def text(self) -> str:
        """Print the module."""
        declarations = "".join(f"{line}\n" for _, line in sorted(self._declarations.items()))
        metadata = "".join(f"!{i} = {text}\n" for i, text in enumerate(self._metadata))
        return "\n".join(filter(None, ("\n".join(self._functions), declarations, metadata)))


def kernel(
    module: Module,
    arguments: int,
    items: int,
    body: Callable[[Emitter, list[Value], Index, Index], None],
) -> KernelCode:
    """Wrap `body(b, pointers, lo, hi)` as a kernel of the fixed calling convention.

    The exported function loads the pointers; the work is an inlined function whose pointer
    parameters are `noalias`, which is how LLVM learns that buffers do not overlap.
    """
    with module.function("body", [PTR] * arguments + [I64, I64], attributes="alwaysinline") as b:
        *pointers, low, high = b.parameters
        body(b, pointers, low, high)
    with module.function("KERNEL", [PTR, I64, I64], linkage="") as b:
        table, low, high = b.parameters
        loaded = [b.load(PTR, table, i) for i in range(arguments)]
        b.call("body", None, [*loaded, low, high])
        if module.stores_nontemporal:
            b.do("fence seq_cst")
    text = module.text()
    symbol = f"k_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return KernelCode(symbol, text.replace("@KERNEL(", f"@{symbol}("), items, arguments)
