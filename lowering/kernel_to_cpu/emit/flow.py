"""Write the lines of one LLVM function: instructions, calls, loops and branches."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .types import I64, PTR, Index, Operand, Type, Value, constant

if TYPE_CHECKING:
    from .module import Module

_SAFE_FLAGS = frozenset(("nsz", "contract", "reassoc"))


class CarriedLoop:
    """Stand for a loop that carries values: read `index` and `values`, call `next` in the body.

    After the loop `results` holds the last values.
    """

    def __init__(self, index: Value, values: list[Value]) -> None:
        self.index = index
        self.values = values
        self.results: list[Value] = list(values)

    def next(self, values: Sequence[Value]) -> None:
        """Set what the next round, or the code after the loop, sees."""
        assert [v.type for v in values] == [v.type for v in self.values]
        self.results = list(values)


class Flow:
    """Write instructions into a function of `module`, in order; `Emitter` adds arithmetic."""

    def __init__(self, module: "Module", parameters: list[Value]) -> None:
        self.module = module
        self.parameters = parameters
        self.result: Value | None = None  # what the function returns
        self._lines: list[str] = []
        self._allocas: list[str] = []
        self._block = "entry"
        self._names = 0
        self._flags = ""
        self._seen: dict[str, Value] = {}
        self._sums: dict[str, tuple[Value, int]] = {}  # SSA name: the base and number it sums
        self._scalars: dict[str, Value] = {}  # SSA name of a vector: the scalar in all its lanes

    def text(self) -> str:
        """Print the function's body."""
        end = f"  ret {self.result or 'void'}\n"
        return "\n".join(("entry:", *self._allocas, *self._lines, end))

    def op(self, dtype: Type, text: str, *, pure: bool = True) -> Value:
        """Append an instruction with a result; a pure one is shared within its block."""
        if pure and text in self._seen:
            return self._seen[text]
        self._names += 1
        value = Value(f"%v{self._names}", dtype)
        self._lines.append(f"  {value.text} = {text}")
        if pure:
            self._seen[text] = value
        return value

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}")

    def value(self, number: Operand, dtype: Type) -> Value:
        """Make a constant of a number; leave a value as it is."""
        return number if isinstance(number, Value) else constant(dtype, number)

    def call(
        self, name: str, result: Type | None, args: Sequence[Value], *, declare: bool = False
    ) -> Value:
        """Call a function of this module, or an external one when `declare` is set."""
        if declare:
            self.module.declare(name, result, [arg.type for arg in args])
        text = f"call {result or 'void'} @{name}({', '.join(args)})"
        if result is not None:
            return self.op(result, text, pure=False)
        self.do(text)
        return Value("", PTR)

    def call_pointer(self, pointer: Value, result: Type | None, args: Sequence[Value]) -> None:
        """Call the function that `pointer` points to, and drop what it returns."""
        self.do(f"call {result or 'void'} {pointer.text}({', '.join(args)})")

    def intrinsic(
        self, name: str, result: Type, args: Sequence[Value], *, flags: str = ""
    ) -> Value:
        """Call a pure LLVM intrinsic, named in full but for the `llvm.`."""
        self.module.declare(f"llvm.{name}", result, [arg.type for arg in args])
        listed = ", ".join(args)
        return self.op(result, f"call {flags}{result} @llvm.{name}({listed})")

    @contextmanager
    def flags(self, text: str) -> Generator[None, None, None]:
        """Apply fast-math flags to the arithmetic inside; "" makes it strict.

        Raises: ValueError for a flag that would lose an infinity, a NaN or accuracy.
        """
        if unsafe := set(text.split()) - _SAFE_FLAGS:
            raise ValueError(f"unsafe floating point flags: {', '.join(sorted(unsafe))}")
        before, self._flags = self._flags, f"{text} " if text else ""
        yield
        self._flags = before

    def _label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def _start(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label
        self._seen.clear()

    @contextmanager
    def fold(
        self,
        low: Index,
        high: Index,
        initial: Sequence[Value],
        step: int = 1,
        unroll: int | None = None,
        vectors: bool = False,
    ) -> Generator[CarriedLoop, None, None]:
        """Count from `low` while below `high`, carrying values from round to round."""
        header, after, entry = self._label(), self._label(), self._block
        runs = isinstance(low, int) and isinstance(high, int) and low < high
        if runs:
            self.do(f"br label %{header}")
        else:
            enters = self._below(self.value(low, I64), high)
            self.do(f"br {enters}, label %{header}, label %{after}")
        self._start(header)
        phis = len(self._lines)
        names = [self._label() for _ in range(len(initial) + 1)]
        carried = [Value(f"%{n}", v.type) for n, v in zip(names[1:], initial, strict=True)]
        loop = CarriedLoop(Value(f"%{names[0]}", I64), carried)
        yield loop
        following = self.op(I64, f"add nuw nsw {loop.index}, {step}", pure=False)
        again = self._below(following, high)
        hint = self.module.loop_metadata(unroll, vectors)
        self.do(f"br {again}, label %{header}, label %{after}{hint}")
        starts = [self.value(low, I64), *initial]
        nexts = [following, *loop.results]
        self._lines[phis:phis] = [
            f"  %{n} = phi {a.type} [ {a.text}, %{entry} ], [ {z.text}, %{self._block} ]"
            for n, a, z in zip(names, starts, nexts, strict=True)
        ]
        latch = self._block
        self._start(after)
        if not runs:
            loop.results = [
                self._phi((a, entry), (z, latch)) for a, z in zip(initial, nexts[1:], strict=True)
            ]

    def _below(self, index: Value, high: Index) -> Value:
        return self.op(Type("i1"), f"icmp slt {index}, {self.value(high, I64).text}", pure=False)

    def _phi(self, *sources: tuple[Value, str]) -> Value:
        dtype = sources[0][0].type
        pairs = ", ".join(f"[ {value.text}, %{block} ]" for value, block in sources)
        return self.op(dtype, f"phi {dtype} {pairs}", pure=False)

    @contextmanager
    def loop(
        self,
        low: Index,
        high: Index,
        step: int = 1,
        unroll: int | None = None,
        vectors: bool = False,
    ) -> Generator[Value, None, None]:
        """Count from `low` while below `high`; in `vectors` if LLVM finds the rounds apart."""
        with self.fold(low, high, (), step, unroll, vectors) as loop:
            yield loop.index

    @contextmanager
    def when(self, condition: Value) -> Generator[None, None, None]:
        """Run the body only if `condition` (an i1) holds."""
        inside, after = self._label(), self._label()
        self.do(f"br {condition}, label %{inside}, label %{after}")
        self._start(inside)
        yield
        self.do(f"br label %{after}")
        self._start(after)

    @contextmanager
    def repeat(self) -> Generator[Callable[[Value], None], None, None]:
        """Run the body once, and again while the condition (an i1) that it gives holds."""
        header, after = self._label(), self._label()
        self.do(f"br label %{header}")
        self._start(header)
        yield lambda again: self.do(f"br {again}, label %{header}, label %{after}")
        self._start(after)

    def if_else(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """Emit both branches; give the values of the one that ran."""
        labels = self._label(), self._label()
        after = self._label()
        self.do(f"br {condition}, label %{labels[0]}, label %{labels[1]}")
        ends: list[tuple[Sequence[Value], str]] = []
        for label, branch in zip(labels, (then, otherwise), strict=True):
            self._start(label)
            ends.append((branch(), self._block))
            self.do(f"br label %{after}")
        self._start(after)
        (yes, first), (no, second) = ends
        return [self._phi((y, first), (n, second)) for y, n in zip(yes, no, strict=True)]
