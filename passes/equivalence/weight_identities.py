"""Which weights of two programs are the same tensor, and constants made at compile time.

A weight is identified by its content: two weights are one tensor if their bytes, shape and type are
equal. A weight without data in a program that uses it is identified by its name, on both sides, and
the verdict lists it; so are all weights of programs that share one store. A weight with
`isoform.expression` is replaced by that expression over the source's weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from ...dialects.arithmetic import Arithmetic
from ...dialects.canonical_scope import Leaf, Source, leaf
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.program import Program, expression_of, main_of, return_of
from ...dialects.reference import run_block
from ...dialects.types import Array, is_float, tensor_type
from ...dialects.weights import Weights as Store
from .joined_weights import OtherWeight, as_expression
from .recognised_weights import ConstantValues
from .roundings import most_ulps
from .translate import (
    MAX_KNOWN,
    Translator,
    known_numbers,
    literal,
    numeral,
    parse_expression,
)
from .verdict import FoldedConstant

# A small weight with this few distinct numbers is a mask, a scale or a table: its values are used.
_FEW_NUMBERS = 16


@dataclass
class WeightIdentities:
    """Identities of the weights of two programs.

    Attributes:
        absent: names of the weights that a program uses without having their data.
        by_name: those of them that both programs use with one type: taken as one tensor.
        alone: the others, which only one program has.
        folded: constants that were replaced by their expression, by name.
        wrong: constants that differ from the value of their expression.
        data: by token of their source, the weights and literals without expression.
        values: by id of a program, its values that do not depend on inputs; a weight of the other
            may be recognised as one of them, if they are given.
        recognised: the recognised weights, by name.
    """

    a: Program
    b: Program
    absent: frozenset[str] = frozenset()
    by_name: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    folded: dict[str, FoldedConstant] = field(default_factory=dict[str, FoldedConstant])
    wrong: dict[str, FoldedConstant] = field(default_factory=dict[str, FoldedConstant])
    data: dict[str, Callable[[], Array]] = field(default_factory=dict[str, Callable[[], Array]])
    values: dict[int, ConstantValues] = field(default_factory=dict[int, ConstantValues])
    recognised: dict[str, FoldedConstant] = field(default_factory=dict[str, FoldedConstant])
    _recognised: dict[str, Source] = field(default_factory=dict[str, Source])
    _checked: dict[tuple[bool, str, str], bool] = field(
        default_factory=dict[tuple[bool, str, str], bool]
    )
    _hashes: dict[tuple[int, str], str] = field(default_factory=dict[tuple[int, str], str])
    _contents: dict[tuple[int, str], Source] = field(default_factory=dict[tuple[int, str], Source])
    _others: list[OtherWeight] | None = None
    _expressions: dict[tuple[str, str], Source] = field(
        default_factory=dict[tuple[str, str], Source]
    )

    def __post_init__(self) -> None:
        self.shared = self.a.weights is self.b.weights
        own = (self.a, self.b)
        used = [{(op.key, op.type) for op in _weights(p)} for p in own]
        missing = [
            {key for key, _ in names if key not in program.weights}
            for names, program in zip(used, own, strict=True)
        ]
        self.absent = frozenset(missing[0] | missing[1])
        common = {key for key, _ in used[0] & used[1]}
        if not self.shared:
            self.by_name = tuple(sorted(self.absent & common))
            self.alone = tuple(sorted(self.absent - common))
        self._all = [{self.identity(op, p) for op in _weights(p)} for p in own]
        self._literals = [
            {str(op.data) for op in _ops(p) if isinstance(op, ConstantOp)} for p in own
        ]

    def identity(self, op: WeightOp, program: Program) -> str:
        """The key under which two weights are one tensor."""
        if self.shared or op.key in self.absent:
            return f"name {op.key}"
        key = (id(program), op.key)
        if key not in self._hashes:
            self._hashes[key] = _content_hash(program.weights[op.key])
        return self._hashes[key]

    def discrete(self, array: Array, element: Attribute, program: Program) -> Source:
        """A discrete constant: the other program's weight if it equals that, else its numbers."""
        other, wanted = self.b if program is self.a else self.a, _content_hash(array)
        same = (op for op in _weights(other) if self.identity(op, other) == wanted)
        weight = next(same, None)
        if weight is not None:
            return self.source(weight, other)
        made = numeral(array, element)
        self.data.setdefault(made.token, lambda: array)
        return made

    def source(self, op: WeightOp, program: Program) -> Source:
        """The source of a weight; or of the other program's value for it, once that is allowed."""
        made = self.stated(op, program)
        label = f"weight {self.identity(op, program)}"
        values = self.values.get(id(self.b if program is self.a else self.a))
        if values is None or not isinstance(made, Leaf) or made.identity != label:
            return made
        if op.key in self.absent or label.removeprefix("weight ") in self._other(program):
            return made
        if made.token not in self._recognised:
            found = values.find(program.weights[op.key], made)
            self._recognised[made.token] = made if found is None else found[0]
            if found is not None:
                self.recognised[op.key] = FoldedConstant(op.key, "", found[1])
        return self._recognised[made.token]

    def _other(self, program: Program) -> AbstractSet[str]:
        """The weights of the other program."""
        return self._all[1 if program is self.a else 0]

    def stated(self, op: WeightOp, program: Program) -> Source:
        """The source of a weight: its expression, unless the other program has the same data."""
        text, identity = expression_of(op), self.identity(op, program)
        other = self._other(program)
        if text is not None and identity not in other:
            made = self._substituted(op, text, program)
            if made is not None:
                return made
        made = self._leaf(op, program)
        if self.shared or op.key in self.absent:
            return made
        if (id(program), op.key) not in self._contents:
            self._contents[(id(program), op.key)] = self._content(op, program, made, other)
        return self._contents[(id(program), op.key)]

    def own(self, program: Program) -> dict[str, Source]:
        """By name the weights that the other program lacks."""
        other = self._other(program)
        return {
            op.key: self._leaf(op, program)
            for op in _weights(program)
            if op.key not in self.absent and self.identity(op, program) not in other
        }

    def _leaf(self, op: WeightOp, program: Program) -> Source:
        shape, element = op.type.get_shape(), op.type.element_type
        made = leaf(f"weight {self.identity(op, program)}", shape, element, label=op.key)
        if op.key in program.weights:
            self.data[made.token] = lambda: program.weights[op.key]
        return made

    def _content(
        self, op: WeightOp, program: Program, made: Source, other: AbstractSet[str]
    ) -> Source:
        """The expression of a weight that the other program lacks, if its numbers reveal it."""
        array, element = program.weights[op.key], op.type.element_type
        if array.size != 1 and self.identity(op, program) in other:
            return made
        few = array.size <= MAX_KNOWN and (
            not is_float(element)
            or len(np.unique(array)) <= min(_FEW_NUMBERS, max(1, array.size // 4))
        )
        known = known_numbers(array, element) if few else None
        if known is not None:
            self.data.setdefault(known.token, lambda: array)
            return known
        if program is self.a or not is_float(element):
            return made
        mine = self._all[1]
        if self._others is None:
            self._others = [
                OtherWeight(self._leaf(w, self.a), self.a.weights[w.key])
                for w in _weights(self.a)
                if w.key not in self.absent
                and self.identity(w, self.a) not in mine
                and is_float(w.type.element_type)
            ]
        found = as_expression(array, self._others, made)
        return made if found is None else found

    def literal(self, op: ConstantOp, program: Program) -> Source | None:
        """The expression of a literal that fold-constants made, if it keeps one."""
        self.data.setdefault(literal(op).token, op.array)
        text = expression_of(op)
        other = self._literals[1 if program is self.a else 0]
        if text is None or str(op.data) in other:
            return None
        return self._substituted(op, text, program)

    def _substituted(self, op: WeightOp | ConstantOp, text: str, program: Program) -> Source | None:
        """The expression of a constant; None if its data differs from the expression's value."""
        if not self._check(op, text, program):
            return None
        key = (text, str(op.type))
        if key not in self._expressions:
            module = parse_expression(text, op.type)
            inner = Translator(
                lambda w: self._inner(w, program),
                discrete=lambda array, element: self.discrete(array, element, program),
            )
            found = inner.program(Program(module, self._stores(module, program)), [])
            self._expressions[key] = found[0]
        return self._expressions[key]

    def _stores(self, module: ModuleOp, program: Program) -> Store:
        """The available weights of an expression."""
        both = _Both(self.a.weights, program.weights)
        names = {op.key for op in main_of(module).body.block.ops if isinstance(op, WeightOp)}
        return Store({name: (lambda n=name: both[n]) for name in sorted(names) if name in both})

    def _inner(self, op: WeightOp, program: Program) -> Source:
        """A weight inside an expression: the source's weight of that name, if there is one."""
        if op.key in self.a.weights and program is not self.a:
            return self.source(op, self.a)
        return self.source(op, program)

    def _check(self, op: WeightOp | ConstantOp, text: str, program: Program) -> bool:
        """Recompute a folded constant in its own arithmetic, and check that its data is near."""
        own = op.key if isinstance(op, WeightOp) else str(op.data)
        key = (program is self.a, own, text)
        if key not in self._checked:
            self._checked[key] = self._measure(op, text, program)
        return self._checked[key]

    def _measure(self, op: WeightOp | ConstantOp, text: str, program: Program) -> bool:
        module = parse_expression(text, op.type)
        stores = _Both(self.a.weights, program.weights)
        steps = list(main_of(module).body.block.ops)
        if not all(s.key in stores for s in [op, *steps] if isinstance(s, WeightOp)):
            return False  # it cannot be recomputed, so it is taken as data
        name = base = op.key if isinstance(op, WeightOp) else f"literal {op.type}"
        number = 1
        while name in self.folded or name in self.wrong:
            number += 1
            name = f"{base} #{number}"
        data = program.weights[op.key] if isinstance(op, WeightOp) else op.array()
        (exact,) = run_block(steps, {}, stores, Arithmetic.COMPUTED)
        wanted = tensor_type(return_of(module).arguments[0]).element_type
        made = FoldedConstant(name, text, ulps(data, exact, is_float(wanted)))
        near = made.ulps <= most_ulps(data.dtype)
        (self.folded if near else self.wrong)[name] = made
        return near


def _content_hash(array: Array) -> str:
    """The key under which two arrays are one tensor: dtype, shape and bytes."""
    array = np.asarray(array, order="C")
    digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode())
    digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


class _Both(dict[str, Array]):
    """Weights of the source, then of the program made from it."""

    def __init__(self, first: Mapping[str, Array], second: Mapping[str, Array]):
        super().__init__()
        self.stores = (first, second)

    def __contains__(self, name: object) -> bool:
        return any(name in store for store in self.stores)

    def __getitem__(self, name: str) -> Array:
        for store in self.stores:
            if name in store:
                return store[name]
        raise UserError(f"weight '{name}' of a folded constant's expression is not at hand")


def ulps(data: Array, exact: Array, floats: bool) -> float:
    """Largest distance from exact values, in units in the last place of the data's own type."""
    if data.shape != exact.shape:
        return float("inf")
    if not data.size:
        return 0.0
    if not floats:
        return 0.0 if np.array_equal(data, exact) else float("inf")
    ours, exact = data.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(ours) & np.isfinite(exact)
    if not np.array_equal(ours[~finite], exact[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    with np.errstate(over="ignore"):
        nearest = exact[finite].astype(data.dtype)
        unit = np.spacing(np.abs(nearest)).astype(np.float64)
        apart = np.abs(ours[finite] - exact[finite]) / unit
    return float(apart.max()) if np.isfinite(apart).all() else float("inf")


def _ops(program: Program) -> list[Operation]:
    return list(program.main.body.block.ops)


def _weights(program: Program) -> list[WeightOp]:
    """Those of loops' bodies, too."""
    return [op for op in program.main.walk() if isinstance(op, WeightOp)]


__all__ = ["WeightIdentities", "ulps"]
