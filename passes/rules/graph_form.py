"""The program representation of the search: numbered nodes, cheap to change, without names.

IR comes in (`encode`, for one block) and goes out (encoding's inverse is write.py). A node is
an op as a value: a head (op and attributes), operands, result types; heads and
types are interned, so nodes compare by small numbers. Ops that no rule may touch (effects, regions,
random ones, results that nobody infers) are nodes that equal only themselves.

A `Graph` never changes: `Graph.after` makes another one that shares what stays. Two graphs made by
the same rewrites in another order have equal `mark`s at once; `fingerprint` is equal for any two
that are the same up to the numbers of their nodes.

A product is priced as it reads its operands once layouts.py has folded transposes into it, and a
transpose that only products read costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import BoolAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.dims_attr import DimsAttr
from ...dialects.graph import GraphOp
from ...dialects.graph.base import to_python
from ...dialects.graph.contraction import MatmulOp
from ...dialects.graph.shaping import SplitOp, TransposeOp
from ...dialects.program import provenance, where
from ...dialects.types import named_dims, placeholders, tensor
from ...dialects.weights_only import is_deterministic, is_source, weights_only
from ..cost.costs import FREE, Costs
from .op_table import RESULTS, Head, OpTable, Types

Value: TypeAlias = int
"""A result of a node: the node's number, and in the last bits which result."""
_BITS = 16
_MASK = (1 << 64) - 1
ARGUMENT = "argument"
FLAGS = ("transpose_a", "transpose_b")
"""Of a product: which of its operands it reads column by column."""


def swap(rank: int) -> tuple[int, ...]:
    """The permutation that swaps the last two dims."""
    return (*range(rank - 2), rank - 1, rank - 2)


def value_of(node: int, result: int = 0) -> Value:
    """The value of a node's result."""
    return node << _BITS | result


def node_of(value: Value) -> int:
    """The node that a value is a result of."""
    return value >> _BITS


def result_of(value: Value) -> int:
    """The index of a value among its node's results."""
    return value & ((1 << _BITS) - 1)


class Entry(NamedTuple):
    """One node.

    Attributes:
        weights: whether it depends on weights and constants alone, and so costs nothing.
        origin: the number of the op of the program that it is, or stands for.
        made_by: the rules that made it, in order.
    """

    head: int  # number of op and attributes
    operands: tuple[Value, ...]
    types: tuple[int, ...]  # numbers of the results' types
    weights: bool
    origin: int
    made_by: tuple[str, ...] = ()


@dataclass
class Tables:
    """What all graphs of one search share: interned heads and types, node numbers, costs.

    Attributes:
        pinned: nodes that are never removed or matched: arguments, effects, the return.
        places: how reports name the ops of the program, by number.
        made_before: rules that had made an op before the search.
        constants: nodes that rules wrote as a constant of theirs, and which.
    """

    ops: OpTable
    costs: Costs
    heads: list[Head] = field(default_factory=list[Head])
    types: list[Attribute] = field(default_factory=list[Attribute])
    pinned: list[int] = field(default_factory=list[int])
    places: list[str] = field(default_factory=list[str])
    made_before: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    constants: dict[int, tuple[str, Mapping[str, Any]]] = field(
        default_factory=dict[int, "tuple[str, Mapping[str, Any]]"]
    )
    _heads: dict[Head, int] = field(default_factory=dict[Head, int])
    _types: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])
    _seconds: dict[tuple[object, ...], float] = field(
        default_factory=dict[tuple[object, ...], float]
    )
    _attributes: dict[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    _swaps: dict[int, bool] = field(default_factory=dict[int, bool])

    def head(self, head: Head) -> int:
        """The number of an interned head."""
        if head not in self._heads:
            self._heads[head] = len(self.heads)
            self.heads.append(head)
        return self._heads[head]

    def type(self, type_: Attribute) -> int:
        """The number of an interned type."""
        if type_ not in self._types:
            self._types[type_] = len(self.types)
            self.types.append(type_)
        return self._types[type_]

    def numbers(self, head: Head, types: Types) -> tuple[int, tuple[int, ...]]:
        """The numbers of an interned head and of interned result types."""
        return self.head(head), tuple(map(self.type, types))

    def shape(self, type_: int) -> tuple[int, ...]:
        """The shape of a numbered type; () if it is not a tensor."""
        found = self.types[type_]
        return named_dims(found) if isinstance(found, TensorType) else ()

    def attributes(self, head: int) -> Mapping[str, Any]:
        """The attributes of a head as Python values."""
        if head not in self._attributes:
            given = self.heads[head].attributes
            self._attributes[head] = {name: to_python(value) for name, value in given}
        return self._attributes[head]

    def matchable(self, head: int) -> bool:
        """Whether a head consists of op and attributes only, none of them a symbolic dim."""
        found = self.heads[head]
        return not found.anchor and all(
            name != RESULTS and not isinstance(value, DimsAttr) for name, value in found.attributes
        )

    def number(self, head: int, operands: tuple[Value, ...], salt: int = 0) -> int:
        """The number of the node with this head and these operands. It is always the same one."""
        return self._numbers.setdefault((head, operands, salt), len(self._numbers))

    def seconds(self, nodes: Mapping[int, Entry], entry: Entry) -> float:
        """The cost of a node, memoised by everything it depends on."""
        head = self.heads[entry.head]
        if entry.weights or not head.op.startswith("graph.") or head.op in FREE:
            return 0.0
        found = [nodes[node_of(v)] for v in entry.operands]
        if head.op == SplitOp.name and self._continues(found[0], entry):
            return 0.0
        if self.swaps(entry):
            return 0.0
        types = [e.types[result_of(v)] for e, v in zip(found, entry.operands, strict=True)]
        read, flags = entry.operands, ()
        if head.op == MatmulOp.name:
            flags = tuple(self.swaps(e) for e in found)
            types = [self._turned(t) if f else t for t, f in zip(types, flags, strict=True)]
            pairs = zip(found, entry.operands, flags, strict=True)
            read = tuple(e.operands[0] if f else v for e, v, f in pairs)
        return self._known_price(entry, types, found, read, flags)

    def _known_price(
        self,
        entry: Entry,
        types: Sequence[int],
        found: Sequence[Entry],
        read: tuple[Value, ...],
        flags: tuple[bool, ...],
    ) -> float:
        fresh, same = tuple(e.weights for e in found), tuple(map(read.index, read))
        key = (entry.head, tuple(types), fresh, same, flags)
        if key not in self._seconds:
            head = self.heads[entry.head]
            head = self._flagged(head, flags) if any(flags) else head
            self._seconds[key] = self._price(head, types, fresh, same, entry.types)
        return self._seconds[key]

    def materialised(self, entry: Entry, above: Entry) -> float:
        """The cost of a transpose that products could fold, if another op reads it."""
        types = [above.types[result_of(entry.operands[0])]]
        return self._known_price(entry, types, [above], entry.operands, ())

    def swaps(self, entry: Entry) -> bool:
        """Whether a node transposes the last two dims of what a program computes when it runs."""
        if entry.head not in self._swaps:
            perm = ()
            if self.heads[entry.head].op == TransposeOp.name:
                perm = tuple(self.attributes(entry.head)["perm"])
            self._swaps[entry.head] = len(perm) >= 2 and perm == swap(len(perm))
        return self._swaps[entry.head]

    def _turned(self, type_: int) -> int:
        """The type with its last two dims swapped."""
        found = self.types[type_]
        assert isinstance(found, TensorType)
        *batch, m, n = named_dims(found)
        return self.type(tensor([*batch, n, m], found.element_type))

    def _flagged(self, head: Head, flags: tuple[bool, ...]) -> Head:
        """A product's head with the flags of its operands flipped."""
        given = dict(head.attributes)
        for name, flag in zip(FLAGS, flags, strict=True):
            if flag:
                given[name] = BoolAttr.from_bool(not to_python(given[name]))
        return replace(head, attributes=tuple(sorted(given.items())))

    def _continues(self, above: Entry, entry: Entry) -> bool:
        """Whether a node splits a split along the same axis; write.py merges the two."""
        outer, inner = self.attributes(above.head), self.attributes(entry.head)
        is_split = self.heads[above.head].op == SplitOp.name
        return is_split and outer["axis"] == inner["axis"]

    def _price(
        self,
        head: Head,
        types: Sequence[int],
        fresh: Sequence[bool],
        same: Sequence[int],
        results: Sequence[int],
    ) -> float:
        """The cost of a sample op. Equal operands are one value."""
        values = placeholders([self.types[t] for t in types])
        operands = [values[k] for k in same]
        sample = self.ops.make(head, operands, [self.types[t] for t in results])
        if not isinstance(sample, GraphOp):
            return 0.0
        known = {v for v, weight in zip(operands, fresh, strict=True) if weight}
        seconds = self.costs.op(sample, known).seconds
        sample.drop_all_references()
        return seconds


class Change(NamedTuple):
    """A rewrite of a graph, computed but not applied.

    Attributes:
        made: new nodes, operands before users.
        redirected: values and what their users read instead.
        dead: nodes that nothing uses afterwards.
        delta: seconds it saves (< 0).
        reads: nodes whose entries or users decided all this.
    """

    made: tuple[tuple[int, Entry], ...]
    redirected: tuple[tuple[Value, Value], ...]
    dead: tuple[int, ...]
    delta: float
    mark: int  # what it adds to the graph's mark
    reads: frozenset[int]


@dataclass(frozen=True)
class Graph:
    """A program.

    Attributes:
        users: the nodes that read a value, in order; values that nobody reads are left out.
        mark: a sum over the nodes that tells graphs apart, up to the order of their rewrites.
    """

    tables: Tables  # shared by all graphs of a search
    nodes: dict[int, Entry]  # by number
    users: dict[Value, tuple[int, ...]]
    seconds: float  # modelled
    mark: int

    def after(self, change: Change) -> Graph:
        """The graph after a change to this one."""
        nodes, users = dict(self.nodes), dict(self.users)
        nodes.update(change.made)
        for old, new in change.redirected:
            moved = users.pop(old, ())
            for user in moved:
                entry = nodes[user]
                operands = tuple(new if v == old else v for v in entry.operands)
                nodes[user] = entry._replace(operands=operands)
            users[new] = _joined(users.get(new, ()), moved)
        for number, entry in change.made:
            for value in entry.operands:
                users[value] = _joined(users.get(value, ()), (number,))
        for number in change.dead:
            for value in nodes.pop(number).operands:
                left = tuple(u for u in users.get(value, ()) if u != number)
                if left:
                    users[value] = left
                else:
                    users.pop(value, None)
        seconds = self.seconds + change.delta
        return Graph(self.tables, nodes, users, seconds, (self.mark + change.mark) & _MASK)

    def uses(self, node: int) -> Iterator[int]:
        """The nodes that read any result of a node."""
        for result in range(len(self.nodes[node].types)):
            yield from self.users.get(value_of(node, result), ())

    def type_of(self, value: Value) -> int:
        """The number of a value's type."""
        return self.nodes[node_of(value)].types[result_of(value)]

    def by_op(self) -> dict[str, list[int]]:
        """The nodes of each op, in order."""
        found = dict[str, list[int]]()
        for number, entry in self.nodes.items():
            found.setdefault(self.tables.heads[entry.head].op, []).append(number)
        return found

    @cached_property
    def order(self) -> list[int]:
        """All nodes that a pinned node depends on, operands before users."""
        done, found = set[int](), list[int]()
        for start in self.tables.pinned:
            stack = [(start, iter(self.nodes[start].operands))]
            while stack:
                number, operands = stack[-1]
                below = next((node_of(v) for v in operands if node_of(v) not in done), None)
                if number in done:
                    stack.pop()
                elif below is None:
                    stack.pop()
                    done.add(number)
                    found.append(number)
                else:
                    stack.append((below, iter(self.nodes[below].operands)))
        return found

    @cached_property
    def above(self) -> dict[int, int]:
        """For each node, as bits: positions in `order` of itself and all it depends on."""
        found = dict[int, int]()
        for k, number in enumerate(self.order):
            bits = 1 << k
            for value in self.nodes[number].operands:
                bits |= found[node_of(value)]
            found[number] = bits
        return found

    def depends(self, value: Value, node: int) -> bool:
        """Whether a value depends on a node (or is its result)."""
        bits = self.above
        if node not in bits or node_of(value) not in bits:
            return False
        bit = bits[node].bit_length() - 1
        return bool(bits[node_of(value)] >> bit & 1)

    def fingerprint(self) -> int:
        """A hash that is equal for graphs that differ only in node numbers."""
        found = dict[int, int]()
        for number in self.order:
            entry = self.nodes[number]
            parts = tuple(hash((found[node_of(v)], result_of(v))) for v in entry.operands)
            found[number] = hash((entry.head, parts))
        return hash(tuple(found[number] for number in self.tables.pinned))


def _joined(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(first + second))


def mark_of(number: int, entry: Entry) -> int:
    """The contribution of a node to a graph's mark."""
    return hash((number, entry.head, entry.operands)) & _MASK


def is_paid(tables: Tables, entry: Entry, users: Iterable[Entry]) -> bool:
    """Whether a node is a transpose that both products (folded) and other ops read."""
    if entry.weights or not tables.swaps(entry):
        return False
    return any(tables.heads[user.head].op != MatmulOp.name for user in users)


def encode(block: Block, tables: Tables) -> Graph:
    """The graph of a block. The block's ops are not changed."""
    ops = list(block.ops)
    tables.ops.learn(block.walk())
    known, values, nodes = weights_only(ops), dict[SSAValue, Value](), dict[int, Entry]()
    for argument in block.args:
        head = tables.head(Head(ARGUMENT, anchor=len(nodes) + 1))
        number = tables.number(head, ())
        nodes[number] = Entry(head, (), (tables.type(argument.type),), False, -1)
        values[argument] = value_of(number)
        tables.pinned.append(number)
    for origin, op in enumerate(ops):
        tables.places.append(where(op))
        tables.made_before.append(tuple(provenance(op)))
        head, pinned = _head(op, tables, origin)
        operands = tuple(values[v] for v in outer_operands(op) if v in values)
        number = tables.number(head, operands)
        while number in nodes:  # the program has the same op twice
            number = tables.number(head, operands, salt=origin + 1)
        types = tuple(tables.type(r.type) for r in op.results)
        weights = is_source(op) or (bool(op.results) and all(r in known for r in op.results))
        nodes[number] = Entry(head, operands, types, weights, origin)
        for k, result in enumerate(op.results):
            values[result] = value_of(number, k)
        if pinned:
            tables.pinned.append(number)
    return _graph(tables, nodes)


def outer_operands(op: Operation) -> list[SSAValue]:
    """All values that an op, or an op nested in it, reads."""
    return [value for inner in op.walk() for value in inner.operands]


def _head(op: Operation, tables: Tables, origin: int) -> tuple[int, bool]:
    """An op's head, and whether the op is pinned."""
    head = tables.ops.head(op)
    if head is None:
        return tables.head(Head(op.name, (), len(op.results), anchor=origin + 1)), True
    if not (is_source(op) or is_deterministic(op)):
        head = Head(head.op, head.attributes, head.results, anchor=origin + 1)
    return tables.head(head), False


def _graph(tables: Tables, nodes: dict[int, Entry]) -> Graph:
    users = dict[Value, tuple[int, ...]]()
    for number, entry in nodes.items():
        for value in entry.operands:
            users[value] = _joined(users.get(value, ()), (number,))
    seconds = sum(tables.seconds(nodes, entry) for entry in nodes.values())
    for number, entry in nodes.items():
        read = users.get(value_of(number), ())
        if is_paid(tables, entry, (nodes[user] for user in read)):
            seconds += tables.materialised(entry, nodes[node_of(entry.operands[0])])
    mark = sum(mark_of(number, entry) for number, entry in nodes.items()) & _MASK
    return Graph(tables, nodes, users, seconds, mark)
