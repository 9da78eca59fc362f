"""Emit LLVM IR for one function by readable Python.

    with b.loop(0, 64, lanes) as i:
        x = b.load(F32.vector(lanes), source, i)
        b.store(b.maximum(x, 0.0), target, i)

`Emitter` is `Flow` (loops, calls), `ArithmeticEmitter`, and here memory and the lanes of vectors.
Floating point keeps infinities and NaN: flags that assume them away are refused. A bool in memory
is an i8; an i1 is only ever a condition or a mask.
"""

from collections.abc import Sequence

from .arithmetic import ArithmeticEmitter
from .types import I1, I32, I64, PTR, Index, Operand, Type, Value, constant, constant_vector

_REDUCE_INT = {"max": "smax", "min": "smin"}
_REDUCE_FLOAT = {"max": "fmaximum", "min": "fminimum", "maxnum": "fmax", "minnum": "fmin"}

FIRST = "<i1 true"

Mask = Value | int | None
"""Lanes that take part: a vector of i1, a count (known, or an i64), or None for all."""


def _slot_text(dtype: Type, slot: Value) -> str:
    return f"load {dtype}, {slot}, align {dtype.bytes}"


class Emitter(ArithmeticEmitter):
    """Emit one function; every method returns the value it computed."""

    def address(self, dtype: Type, pointer: Value, index: Index = 0) -> Value:
        """Point `index` elements of `dtype` past `pointer`."""
        if isinstance(index, Value):
            base, offset = self._sums.get(index.text, (index, 0))
            pointer = self.op(PTR, f"getelementptr {dtype.element}, {pointer}, {base}")
            index = offset
        if index == 0:
            return pointer
        return self.op(PTR, f"getelementptr {dtype.element}, {pointer}, i64 {index}")

    def load(
        self,
        dtype: Type,
        pointer: Value,
        index: Index = 0,
        *,
        mask: Mask = None,
        align: int | None = None,
        pure: bool = False,
    ) -> Value:
        """Load `dtype` from element `index` on; lanes outside `mask` are not read and give 0.

        A `pure` load is of what nothing writes, and shared within its block.
        """
        address = self.address(dtype, pointer, index)
        align = align or dtype.bytes
        lanes = self.mask(mask, dtype.lanes)
        if lanes is None:
            return self.op(dtype, f"load {dtype}, {address}, align {align}", pure=pure)
        args = [address, constant(I32, align), lanes, constant(dtype, 0)]
        return self._masked("load", dtype, dtype, args)

    def store(
        self,
        value: Value,
        pointer: Value,
        index: Index = 0,
        *,
        mask: Mask = None,
        align: int | None = None,
        nontemporal: int = 0,
    ) -> None:
        """Store `value` from element `index` on; lanes outside `mask` are not touched.

        With `nontemporal`, the bytes to which its address (or its own size, if less) must be
        aligned, it goes to memory, if the lanes to store are as many bytes or a multiple. Parts
        less than half a vector are slower than a plain store.
        """
        address = self.address(value.type, pointer, index)
        align = align or value.type.bytes
        lanes = self.mask(mask, value.type.lanes)
        real = value.type.lanes if lanes is None else mask
        whole = value.type.bytes * value.type.lanes
        piece = min(nontemporal, whole)
        if (
            2 * piece >= whole > 0
            and isinstance(real, int)
            and real * value.type.bytes % piece == 0
        ):
            self._stream(value, address, real, piece)
            return
        if lanes is not None and lanes.text.startswith(FIRST) and lanes.text.count("true") == 1:
            # LLVM 22 makes a scalar store of such a masked one, for narrowed values one too wide.
            value, lanes = self.extract(value, 0), None
        if lanes is None:
            self.do(f"store {value}, {address}, align {align}")
            return
        self._masked("store", value.type, None, [value, address, constant(I32, align), lanes])

    def _stream(self, value: Value, address: Value, lanes: int, align: int) -> None:
        """Store the first lanes past the caches, in powers of two."""
        hint, done = self.module.nontemporal(), 0
        while done < lanes:
            size = 1 << ((lanes - done).bit_length() - 1)
            part = range(done, done + size)
            piece = value if size == value.type.lanes else self.shuffle(value, part)
            to = self.address(value.type, address, done)
            self.do(f"store {piece}, {to}, align {align}{hint}")
            done += size

    def prefetch(self, dtype: Type, pointer: Value, index: Index = 0) -> None:
        """Ask for the cache line of element `index` of `dtype`; any address is allowed."""
        flags = [constant(I32, n) for n in (0, 3, 1)]  # to read, into every cache, data
        args = [self.address(dtype, pointer, index), *flags]
        self.call("llvm.prefetch.p0", None, args, declare=True)

    def _masked(self, name: str, dtype: Type, result: Type | None, args: list[Value]) -> Value:
        full = f"llvm.masked.{name}.{dtype.suffix}.p0"
        return self.call(full, result, args, declare=True)

    def gather(
        self, dtype: Type, pointer: Value, indices: Value, *, mask: Value | None = None
    ) -> Value:
        """Load each lane from its own element index (a vector of i64)."""
        addresses = self._addresses(dtype, pointer, indices)
        lanes = mask or constant(I1.vector(dtype.lanes), 1)
        args = [addresses, constant(I32, dtype.bytes), lanes, constant(dtype, 0)]
        name = f"llvm.masked.gather.{dtype.suffix}.v{dtype.lanes}p0"
        return self.call(name, dtype, args, declare=True)

    def scatter(
        self, value: Value, pointer: Value, indices: Value, *, mask: Value | None = None
    ) -> None:
        """Store each lane to its own element index (a vector of i64)."""
        addresses = self._addresses(value.type, pointer, indices)
        lanes = mask or constant(I1.vector(value.type.lanes), 1)
        args = [value, addresses, constant(I32, value.type.bytes), lanes]
        name = f"llvm.masked.scatter.{value.type.suffix}.v{value.type.lanes}p0"
        self.call(name, None, args, declare=True)

    def _addresses(self, dtype: Type, pointer: Value, indices: Value) -> Value:
        addresses = PTR.vector(dtype.lanes)
        return self.op(addresses, f"getelementptr {dtype.element}, {pointer}, {indices}")

    def reserve(self, dtype: Type, count: int, align: int = 64) -> Value:
        """Set aside `count` elements on the stack for as long as the function runs."""
        pointer = Value(f"%s{len(self._allocas)}", PTR)
        self._allocas.append(f"  {pointer.text} = alloca [{count} x {dtype}], align {align}")
        return pointer

    def load_slot(self, dtype: Type, slot: Value) -> Value:
        """Load a stack slot that only these two access: what its block knows is shared."""
        return self.op(dtype, _slot_text(dtype, slot))

    def store_slot(self, value: Value, slot: Value) -> None:
        """Store a value into a stack slot."""
        self.do(f"store {value}, {slot}, align {value.type.bytes}")
        self._seen[_slot_text(value.type, slot)] = value

    # Lanes

    def mask(self, mask: Mask, lanes: int) -> Value | None:
        """Turn a lane count into a mask vector; None when every lane takes part."""
        if mask is None or (isinstance(mask, int) and mask >= lanes):
            return None
        if isinstance(mask, int):
            return constant_vector(I1, [lane < mask for lane in range(lanes)])
        if mask.type.lanes:
            return mask
        return self.compare("lt", self.iota(I64, lanes), self.broadcast(mask, lanes))

    def iota(self, dtype: Type, lanes: int) -> Value:
        """Number the lanes: 0, 1, 2, ..."""
        return constant_vector(dtype, range(lanes))

    def broadcast(self, x: Value, lanes: int) -> Value:
        """Repeat a scalar in every lane; with no lanes leave it."""
        if not lanes:
            return x
        if x.text[0] != "%":
            return Value(f"splat ({x})", x.type.vector(lanes))
        vector = x.type.vector(lanes)
        first = self.op(vector, f"insertelement {vector} poison, {x}, i32 0")
        repeated = self.shuffle(first, [0] * lanes)
        self._scalars[repeated.text] = x
        return repeated

    def scalar_of(self, x: Value) -> Value | None:
        """The scalar that `broadcast` repeated in every lane; None of other vectors."""
        return self._scalars.get(x.text)

    def shuffle(self, x: Value, lanes: Sequence[int], y: Value | None = None) -> Value:
        """Pick lanes out of `x`, or of `x` followed by `y`."""
        other = y or Value("poison", x.type)
        picks = constant_vector(I32, lanes)
        return self.op(x.type.vector(len(lanes)), f"shufflevector {x}, {other}, {picks}")

    def pick(self, vectors: Sequence[Value], lanes: Sequence[int]) -> Value:
        """Pick as many lanes as one vector has out of several, counted through all of them."""
        size = vectors[0].type.lanes
        assert len(lanes) == size
        first, *others = sorted({lane // size for lane in lanes})
        result, found = vectors[first], [lane // size == first for lane in lanes]
        at = [lane % size for lane in lanes]  # where in `result`, or in the vector still to come
        for k in others:
            now = [lane // size == k for lane in lanes]
            result = self.shuffle(
                result, [p + size * n for p, n in zip(at, now, strict=True)], vectors[k]
            )
            found = [f or n for f, n in zip(found, now, strict=True)]
            at = [lane if f else p for lane, (f, p) in enumerate(zip(found, at, strict=True))]
        return result if at == list(range(size)) else self.shuffle(result, at)

    def extract(self, x: Value, lane: Index) -> Value:
        """Take one lane."""
        return self.op(x.type.element, f"extractelement {x}, {self.value(lane, I64)}")

    def insert(self, x: Value, scalar: Operand, lane: Index) -> Value:
        """Replace one lane."""
        scalar = self.value(scalar, x.type.element)
        return self.op(x.type, f"insertelement {x}, {scalar}, {self.value(lane, I64)}")

    def reduce(self, name: str, x: Value) -> Value:
        """Combine all lanes by `add`, `mul`, `max`, `min`, `maxnum`, `minnum`, `and` or `or`.

        Float sums and products are taken in pairs, as `reassoc` allows. `max` and `min` give NaN
        if any lane is.
        """
        scalar, suffix = x.type.element, x.type.suffix
        if x.type.is_float and name in ("add", "mul"):
            start = constant(scalar, -0.0 if name == "add" else 1.0)
            full = f"vector.reduce.f{name}.{suffix}"
            return self.intrinsic(full, scalar, [start, x], flags="reassoc ")
        names = _REDUCE_FLOAT if x.type.is_float else _REDUCE_INT
        return self.intrinsic(f"vector.reduce.{names.get(name, name)}.{suffix}", scalar, [x])

    def transpose(self, rows: Sequence[Value]) -> list[Value]:
        """Transpose a square block held in as many vectors as they have lanes (a power of two)."""
        if len(rows) in (4, 8, 16) and rows[0].type.bits == 32:
            return self._transpose_words(rows)
        size, rows = len(rows), list(rows)
        span = size // 2
        while span:
            keep = [lane if not lane & span else lane - span + size for lane in range(size)]
            swap = [pick + span for pick in keep]
            for i in (row for row in range(size) if not row & span):
                upper, lower = rows[i], rows[i + span]
                rows[i] = self.shuffle(upper, keep, lower)
                rows[i + span] = self.shuffle(upper, swap, lower)
            span //= 2
        return rows

    def _transpose_words(self, rows: Sequence[Value]) -> list[Value]:
        """Transpose in blocks of four by four, then the blocks: one instruction each on x86."""
        size, blocks = len(rows), range(0, len(rows), 4)

        def zipped(x: Value, y: Value, lanes: Sequence[int]) -> Value:
            picks = [
                block + lane if lane < 4 else size + block + lane - 4
                for block in blocks
                for lane in lanes
            ]
            return self.shuffle(x, picks, y)

        inner: list[list[Value]] = [[], [], [], []]
        for k in blocks:
            a, b, c, d = rows[k : k + 4]
            for half, lanes in enumerate(((0, 4, 1, 5), (2, 6, 3, 7))):
                upper, lower = zipped(a, b, lanes), zipped(c, d, lanes)
                inner[2 * half].append(zipped(upper, lower, (0, 1, 4, 5)))
                inner[2 * half + 1].append(zipped(upper, lower, (2, 3, 6, 7)))
        columns = [self._transpose_blocks(row) for row in inner]
        return [columns[k % 4][k // 4] for k in range(size)]

    def _transpose_blocks(self, rows: Sequence[Value]) -> list[Value]:
        """Transpose a square of blocks of four lanes, as many vectors as each has blocks."""
        if len(rows) == 1:
            return list(rows)
        lanes = rows[0].type.lanes
        every = [k + lane for k in range(0, 2 * lanes, 8) for lane in range(4)]
        pairs = list(zip(rows[::2], rows[1::2], strict=True))
        even = [self.shuffle(x, every, y) for x, y in pairs]
        odd = [self.shuffle(x, [k + 4 for k in every], y) for x, y in pairs]
        made = zip(self._transpose_blocks(even), self._transpose_blocks(odd), strict=True)
        return [row for pair in made for row in pair]
