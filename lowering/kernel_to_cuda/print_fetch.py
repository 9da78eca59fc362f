"""Print how the threads of a block fetch a tile together: from global memory by an operand's own
indices into registers, and from there into shared memory."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from xdsl.ir import Attribute

from ...dialects.index import FloorDiv
from .element_types import compute_type, literal, loaded
from .match_contraction import ProductOperand
from .print_index import Iterators, decode
from .print_reads import guard_text
from .schedule import PAD, TileSizes
from .writer import CudaWriter, unrolled_loop


@dataclass(frozen=True)
class SharedTile:
    """Two stages of `depth` lines of `size` elements in shared memory."""

    name: str
    depth: int
    size: int

    @property
    def dims(self) -> tuple[int, int, int]:
        """Dims of the array, a line padded against bank conflicts."""
        return 2, self.depth, self.size + PAD


@dataclass
class TileFetch:
    """One operand's tile: `group` iterators across its lines, `deep` ones along the depth."""

    writer: CudaWriter
    over: Iterators  # iterators of the kernel
    tiling: TileSizes
    tile: SharedTile
    side: ProductOperand
    group: tuple[int, ...]
    deep: tuple[int, ...]
    pointer: str  # of the operand
    first: str
    """The variable with the first position of the block's tile in the group."""
    thread: str  # number of the thread in its block
    element: Attribute
    _flats: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])

    def __post_init__(self) -> None:
        self.along_depth, self.vector = self._direction()
        self.next = self.writer.names.fresh(f"{self.tile.name}_next")
        threads = self.tiling.threads
        self.elements = self.tile.depth * self.tile.size // self.vector
        self.loads = -(-self.elements // threads)
        self.ctype = "float4" if self.vector == 4 else compute_type(self.element)

    def _direction(self) -> tuple[bool, int]:
        """(whether neighbouring threads fetch along the depth, elements of one load)."""
        wide = self.tiling.vector
        able = wide == 4 and str(self.element) == "f32"
        ways = ((False, self.group[-1], self.tile.size), (True, self.deep[-1], self.tile.depth))
        for along, iterator, size in ways:
            if able and size % wide == 0 and self._is_aligned(iterator, wide):
                return along, wide
        inner = self.side.offset.coefficient(self.group[-1])
        deep = self.side.offset.coefficient(self.deep[-1])
        return deep == 1 and inner != 1, 1

    def _is_aligned(self, iterator: int, wide: int) -> bool:
        """Whether each run of `wide` positions of an iterator is one aligned piece of memory."""
        offset, extent = self.side.offset, self.over.extents[iterator]
        others = [c for atom, c in offset.terms if atom != iterator]
        in_floor = any(
            iterator in atom.numerator.iterators
            for atom, _ in offset.terms
            if isinstance(atom, FloorDiv)
        )
        guarded = any(iterator in index.iterators for index, _ in self.side.guards)
        return (
            offset.coefficient(iterator) == 1
            and not in_floor
            and not guarded
            and extent % wide == 0
            and all(c % wide == 0 for c in (*others, offset.constant))
        )

    def declare(self) -> None:
        """Declare the registers that hold a thread's share."""
        self.writer.line(f"{self.ctype} {self.next}[{self.loads}];")

    def _line_position(self, number: str) -> tuple[str, str]:
        """Coordinates, along the line and the depth of the tile, of the load with a number."""
        along = self.tile.depth if self.along_depth else self.tile.size
        loads = along // self.vector
        near = number if loads >= self.elements else f"{number} % {loads}"
        near = near if self.vector == 1 else f"{near} * {self.vector}"
        far = f"{number} / {loads}"
        return (far, near) if self.along_depth else (near, far)

    def _numbered(self, i: str) -> str:
        return self.thread if self.loads == 1 else f"{self.thread} + {i} * {self.tiling.threads}"

    def fetch(self, start: str) -> None:
        """Load this thread's share of the tile that begins at a depth."""
        writer, fresh, kind = self.writer, self.writer.names.fresh, self.writer.kind
        with self._loads() as i:
            number = fresh("load")
            writer.line(f"const int {number} = {self._numbered(i)};")
            across, depth = self._line_position(number)
            for base, offset, group in (
                (self.first, across, self.group),
                (start, depth, self.deep),
            ):
                self._name_position(f"{base} + {offset}", group, kind)
            value = self._load()
            zero = "make_float4(0.0f, 0.0f, 0.0f, 0.0f)"
            zero = zero if self.vector == 4 else literal(0, self.element)
            condition = self._condition(number)
            value = f"{condition} ? {value} : {zero}" if condition else value
            writer.line(f"{self.next}[{i}] = {value};")

    def _name_position(self, flat: str, group: tuple[int, ...], kind: str) -> None:
        """Name a position in a group, and give the group's iterators their values there."""
        writer, over = self.writer, self.over
        if len(group) == 1:
            self._flats[group] = over.names[group[0]]
            writer.line(f"const {kind} {over.names[group[0]]} = {flat};")
            return
        name = self._flats[group] = writer.names.fresh("place")
        writer.line(f"const {kind} {name} = {flat};")
        for line in decode(name, [(over.names[k], over.extents[k]) for k in group], kind):
            writer.line(line)

    def _condition(self, number: str) -> str:
        """The condition under which a load is inside its share, the groups and the operand."""
        parts: list[str] = []
        if self.elements % self.tiling.threads:
            parts.append(f"{number} < {self.elements}")
        for group, size in ((self.group, self.tile.size), (self.deep, self.tile.depth)):
            count = 1
            for k in group:
                count *= self.over.extents[k]
            if count % size:
                parts.append(f"{self._flats[group]} < {count}")
        guards = guard_text(self.side.guards, self.over)
        return " && ".join([*parts, *([guards] if guards else [])])

    def _load(self) -> str:
        offset = self.over.text(self.side.offset)
        if self.vector == 4:
            self.writer.helpers.add("load4")
            return f"load4(&{self.pointer}[{offset}])"
        return loaded(f"{self.pointer}[{offset}]", self.element)

    def keep(self, stage: str) -> None:
        """Store this thread's share into a stage of shared memory."""
        writer, fresh = self.writer, self.writer.names.fresh
        with self._loads() as i:
            number = fresh("load")
            writer.line(f"const int {number} = {self._numbered(i)};")
            across, depth = self._line_position(number)
            ragged = bool(self.elements % self.tiling.threads)
            head = f"if ({number} < {self.elements})" if ragged else None
            if head is not None:
                with writer.block(head):
                    self._keep(stage, across, depth, i)
            else:
                self._keep(stage, across, depth, i)

    def _keep(self, stage: str, across: str, depth: str, i: str) -> None:
        tile, line = self.tile.name, self.writer.line
        if self.vector == 1:
            line(f"{tile}[{stage}][{depth}][{across}] = {self.next}[{i}];")
        elif not self.along_depth:
            self.writer.helpers.add("store4")
            line(f"store4(&{tile}[{stage}][{depth}][{across}], {self.next}[{i}]);")
        else:
            for offset, part in enumerate("xyzw"):
                deep = depth if not offset else f"{depth} + {offset}"
                line(f"{tile}[{stage}][{deep}][{across}] = {self.next}[{i}].{part};")

    @contextmanager
    def _loads(self) -> Generator[str]:
        """A loop over this thread's loads; none for a single load."""
        bare = self.writer.block("") if self.loads == 1 else nullcontext()
        with unrolled_loop(self.writer, "i", self.loads) as i, bare:
            yield i
