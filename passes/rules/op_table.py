"""Ops of any dialect as the e-graph represents them, generated from their definitions.

Nothing here names an op of isoform but the free ones: operand counts, attributes and results come
from the op's own definition, result types from its own inference (graph ops) or from the type
constraints of its definition (every other dialect).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import BaseAttr, IRDLOperation, OpDef, OptionalDef, VariadicDef, VerificationContext
from xdsl.traits import is_side_effect_free
from xdsl.utils.exceptions import VerifyException

from ...dialects.errors import UserError, did_you_mean
from ...dialects.graph import OPS, ConstantOp, GraphOp
from ...dialects.graph.base import default_attributes, to_attribute, to_python
from ...dialects.types import Array, is_float, placeholders

Types: TypeAlias = "tuple[Attribute, ...]"

RESULTS = "->"
"""Stands among a head's attributes for result types that its op does not infer."""


@dataclass(frozen=True)
class Head:
    """An op without its operands.

    Attributes:
        attributes: properties and declared attributes, by name, sorted.
        results: their number.
        anchor: 0 for an op equal to every other with this head and the same operands; else the
            number of an op or block argument that equals only itself.
    """

    op: str
    attributes: tuple[tuple[str, Attribute], ...] = ()
    results: int = 1
    anchor: int = 0

    def __hash__(self) -> int:
        return self._hash

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.op, self.attributes, self.results, self.anchor))
        )

    _hash: int = field(init=False, repr=False, compare=False, default=0)


@dataclass
class OpTable:
    """Looks up op classes by name and builds ops of them.

    Args:
        context: where names are looked up that the program does not use.
    """

    context: Context | None = None
    classes: dict[str, type[Operation]] = field(default_factory=lambda: {op.name: op for op in OPS})
    _built: dict[tuple[Head, Types], Operation | None] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    _sound: dict[tuple[Head, Types], bool] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]

    def learn(self, ops: Iterable[Operation]) -> None:
        """Register the ops of a program."""
        for op in ops:
            self.classes.setdefault(op.name, type(op))

    def cls(self, name: str) -> type[Operation]:
        """The class of an op. Raises UserError for an unknown name."""
        if name not in self.classes:
            found = self.context.get_optional_op(name) if self.context is not None else None
            if found is None:
                raise UserError(f"no op '{name}'", hint=did_you_mean(name, self.classes))
            self.classes[name] = found
        return self.classes[name]

    def head(self, op: Operation) -> Head | None:
        """The head of an op; None if it has more than operands and attributes."""
        if op.regions or op.successors or not op.results or not is_side_effect_free(op):
            return None
        declared = self.declared(op.name)
        kept = {k: v for k, v in op.attributes.items() if k in declared}
        full = {**op.properties, **kept}
        head = Head(op.name, tuple(sorted(full.items(), key=_name)), len(op.results))
        types = tuple(r.type for r in op.results)
        sample = self.build(head, tuple(v.type for v in op.operands))
        if sample is not None and tuple(r.type for r in sample.results) == types:
            return head
        full[RESULTS] = ArrayAttr(types)
        return Head(op.name, tuple(sorted(full.items(), key=_name)), len(op.results))

    def declared(self, name: str) -> tuple[str, ...]:
        """Names of the properties and attributes in an op's definition."""
        cls = self.cls(name)
        if not issubclass(cls, IRDLOperation):
            return ()
        definition = cls.get_irdl_definition()
        return (*definition.properties, *definition.attributes)

    def complete(self, name: str, given: dict[str, Attribute]) -> tuple[tuple[str, Attribute], ...]:
        """The attributes of a rule's op, completed with the op's defaults, sorted.

        Raises:
            UserError: the op has no such attribute.
        """
        cls, declared = self.cls(name), self.declared(name)
        for key in given:
            if key not in declared:
                raise UserError(
                    f"{name} has no attribute '{key}'", hint=did_you_mean(key, declared)
                )
        return tuple(sorted({**_defaults(cls), **given}.items(), key=_name))

    def results(self, name: str, attributes: dict[str, Attribute]) -> int:
        """The number of results of a rule's op. `sizes` gives it for variadic ops."""
        cls = self.cls(name)
        if not issubclass(cls, IRDLOperation):
            return 1
        results = cls.get_irdl_definition().results
        sizes = attributes.get("sizes")
        if any(isinstance(d, VariadicDef) for _, d in results) and isinstance(
            sizes, DenseArrayBase
        ):
            return len(sizes)
        return len(results)

    def build(self, head: Head, types: Types) -> Operation | None:
        """A sample op on operands of these types, with its result types; None if invalid."""
        key = (head, types)
        if key not in self._built:
            self._built[key] = self.make(head, placeholders(types), None)
        return self._built[key]

    def by_rule(self, head: Head, types: Types) -> Operation | None:
        """As `build`, of an op that a rule makes: None where its verifier refuses it.

        Nor is any made of or with an empty tensor: rules are checked on tensors with elements.
        """
        key = (head, types)
        if key not in self._sound:
            sample = self.build(head, types)
            self._sound[key] = sample is not None and _is_sound(sample)
        return self._built[key] if self._sound[key] else None

    def made_by_rule(
        self, name: str, values: Mapping[str, Any], types: Types
    ) -> tuple[Head, Types] | None:
        """Head and result types of an op as rules write it, attributes as Python values.

        None where it does not take operands of these types (see `by_rule`).

        Raises:
            UserError: there is no such op, or it has no such attribute.
        """
        try:
            given = {n: attribute_of(self, name, n, value) for n, value in values.items()}
        except ValueError:  # a number past 64 bits
            return None
        attributes = self.complete(name, given)
        head = Head(name, attributes, self.results(name, dict(attributes)))
        sample = self.by_rule(head, types)
        return None if sample is None else (head, tuple(r.type for r in sample.results))

    def literal(self, array: Array, element: Attribute) -> tuple[Head, Types]:
        """Head and type of a literal."""
        made = ConstantOp(array, element)
        head = self.head(made)
        assert head is not None
        return head, (made.result.type,)

    def make(
        self, head: Head, operands: Sequence[SSAValue], results: Sequence[Attribute] | None
    ) -> Operation | None:
        """An op on operands.

        Args:
            results: the types of its results; None infers them.
        """
        cls, given = self.cls(head.op), dict(head.attributes)
        told = given.pop(RESULTS, None)
        if results is None and isinstance(told, ArrayAttr):
            results = told.data
        if results is None and issubclass(cls, GraphOp):
            try:
                return cls(*operands, results=head.results, **given)
            except (UserError, VerifyException, IndexError, ValueError):
                return None
        if results is None:
            results = _inferred(cls, [v.type for v in operands])
        return None if results is None else _created(cls, operands, results, given)


def has_integers(type_: Attribute) -> bool:
    """Whether a tensor's elements are integers: rules that divide do not hold for them."""
    return isinstance(type_, TensorType) and not is_float(type_.element_type)


def value_of(attribute: Attribute) -> Any:
    """The Python value of an attribute, that of another dialect's included."""
    return attribute.data if isinstance(attribute, IntAttr) else to_python(attribute)


def attribute_of(table: OpTable, op: str, name: str, value: Any) -> Attribute:
    """The attribute of an op that a rule's value stands for: of the kind the definition asks."""
    cls = table.cls(op)
    if issubclass(cls, IRDLOperation):
        definition = cls.get_irdl_definition()
        known = {**definition.properties, **definition.attributes}
        constraint = known[name].constr if name in known else None
        if isinstance(constraint, BaseAttr) and not isinstance(value, bool):
            if issubclass(constraint.attr, IntAttr) and isinstance(value, int):
                return IntAttr(value)
            if issubclass(constraint.attr, FloatAttr) and isinstance(value, int):
                return to_attribute(float(value))
    return to_attribute(value)


def _is_sound(op: Operation) -> bool:
    """Whether an op verifies and has no empty operand or result."""
    types = [value.type for value in (*op.operands, *op.results)]
    if any(isinstance(type_, TensorType) and 0 in type_.get_shape() for type_ in types):
        return False
    try:
        op.verify(verify_nested_ops=False)
    except (VerifyException, UserError):
        return False
    return True


def _defaults(cls: type[Operation]) -> dict[str, Attribute]:
    if issubclass(cls, GraphOp):
        return dict(default_attributes(cls))
    if not issubclass(cls, IRDLOperation):
        return {}
    definition = cls.get_irdl_definition()
    known = {**definition.properties, **definition.attributes}
    return {k: d.default_value for k, d in known.items() if d.default_value is not None}


def _created(
    cls: type[Operation],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    given: dict[str, Attribute],
) -> Operation | None:
    """An op with the given types, if it verifies."""
    properties = given
    attributes = dict[str, Attribute]()
    if issubclass(cls, IRDLOperation):
        known = cls.get_irdl_definition().properties
        attributes = {k: v for k, v in given.items() if k not in known}
        properties = {k: v for k, v in given.items() if k in known}
    op = cls.create(
        operands=operands, result_types=results, properties=properties, attributes=attributes
    )
    try:
        op.verify(verify_nested_ops=False)
    except (VerifyException, UserError):
        op.drop_all_references()
        return None
    return op


def _inferred(cls: type[Operation], types: Sequence[Attribute]) -> Types | None:
    """Result types that the definition's constraints give; None where they leave them open."""
    if not issubclass(cls, IRDLOperation):
        return None
    definition, context = cls.get_irdl_definition(), VerificationContext()
    try:
        for (_, operand), part in zip(definition.operands, _parts(definition, types), strict=True):
            operand.constr.verify(part, context)
        known = set(context.attr_variables)
        found = list[Attribute]()
        for _, result in definition.results:
            if isinstance(result, VariadicDef) or not result.constr.can_infer(
                known, length_known=True
            ):
                return None
            found += result.constr.infer(context, length=1)
        return tuple(found)
    except (VerifyException, ValueError):
        return None


def _parts(definition: OpDef, types: Sequence[Attribute]) -> list[Sequence[Attribute]]:
    """Operand types as the definition groups them; one group may be variadic.

    Raises:
        ValueError: there are too few or too many.
    """
    groups = [isinstance(d, VariadicDef) for _, d in definition.operands]
    spare = len(types) - groups.count(False)
    optional = any(isinstance(d, OptionalDef) for _, d in definition.operands)
    if spare < 0 or groups.count(True) > 1 or (spare and True not in groups):
        raise ValueError("the operands do not fit")
    if optional and spare > 1:
        raise ValueError("too many operands")
    parts, at = list[Sequence[Attribute]](), 0
    for variadic in groups:
        count = spare if variadic else 1
        parts.append(types[at : at + count])
        at += count
    return parts


def _name(entry: tuple[str, Attribute]) -> str:
    return entry[0]
