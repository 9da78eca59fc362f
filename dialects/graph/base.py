"""The base of every op of the graph dialect: construction, inference, text, meaning.

An op is one class: a docstring with the ONNX counterpart, `name`, operands, properties, results,
`infer` (result types from operand types and properties, raising UserError), and its meaning:
`as_scopes` (a tensor expression) or, for the few that are none, `reference` (numpy).
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    OperandDef,
    OptionalDef,
    ResultDef,
    VariadicDef,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import HasCanonicalizationPatternsTrait, Pure
from xdsl.utils.exceptions import VerifyException

from ..dims_attr import DimsAttr, parse_dims
from ..errors import ElementError, UserError, did_you_mean
from ..scope_builder import ScopeBuilder, Source
from ..scope_text import defined_operand, literal_text
from ..shape_guards import shape_env
from ..types import DYNAMIC, Array, Tensor, dims_of, is_small_float, tensor_type

Python: TypeAlias = "int | float | bool | str | Sequence[int] | Sequence[float] | Attribute"

_PLACEHOLDER = TensorType(f64, [])
_INTS = BaseAttr(DenseArrayBase) | BaseAttr(DimsAttr)


def discard(steps: Sequence[Operation]) -> None:
    """Erase ops that are in no block."""
    for step in reversed(steps):
        step.drop_all_references()


def to_attribute(value: Python) -> Attribute:
    """An attribute from a Python value: int, float, bool, str, list of ints, attribute."""
    match value:
        case Attribute():
            return value
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case _:
            if any(not isinstance(v, int | float) for v in value):  # pyright: ignore
                return DimsAttr.of(value)  # pyright: ignore[reportArgumentType]
            if any(isinstance(v, float) for v in value):
                return DenseArrayBase.from_list(f64, [float(v) for v in value])
            return DenseArrayBase.from_list(i64, [int(v) for v in value])


def to_python(attribute: Attribute) -> Any:
    """The Python value of an attribute made by `to_attribute`; other attributes unchanged."""
    match attribute:
        case IntegerAttr() if attribute.type == i1:
            return attribute.value.data != 0
        case IntegerAttr() | FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DenseArrayBase():
            return tuple(attribute.get_values())  # pyright: ignore[reportAttributeAccessIssue]
        case DimsAttr():
            return attribute.extents()
        case _:
            return attribute


def ints_def() -> Any:
    """A property that is a list of whole numbers, which may be symbolic."""
    return prop_def(DenseArrayBase | DimsAttr)


def property_kind(op: type[Operation], name: str) -> Any:
    """The attribute class of a property; None where it may be of several."""
    wanted = op.get_irdl_definition().properties[name].constr  # pyright: ignore
    if isinstance(wanted, BaseAttr):
        return wanted.attr
    return DenseArrayBase if wanted == _INTS else None


class Canonicalization(HasCanonicalizationPatternsTrait):
    """Gives xDSL's `canonicalize` an op's patterns; the dialect's `__init__` registers them."""

    patterns: ClassVar[dict[str, tuple[RewritePattern, ...]]] = {}
    """Patterns by op name. They build ops of this dialect, so their file imports this one."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        return self.patterns.get(op.name, ())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


class GraphOp(IRDLOperation, ABC):
    """Base of all ops of the graph dialect."""

    traits = traits_def(Pure(), Canonicalization())
    DEFAULTS: ClassVar[Mapping[str, Python]] = {}
    """Defaults of properties that the text and the constructor may omit."""
    MOVES: ClassVar[bool] = False
    """Whether it only moves or converts data: then floats of 8 and 4 bits are allowed."""

    def __init__(self, *operands: SSAValue, results: int = 1, **properties: Python | None):
        """Build with inferred result types.

        Args:
            operands: in the op's order; trailing optional ones may be left out.
            results: number of results, for ops with several.
            properties: Python values; None and missing ones take `DEFAULTS`.
        """
        given = {k: to_attribute(v) for k, v in properties.items() if v is not None}
        definition = type(self).get_irdl_definition()
        try:
            super().__init__(
                operands=_arrange(operands, definition.operands),
                properties=_complete(type(self), given),
                result_types=_arrange_results([_PLACEHOLDER] * results, definition.results),
            )
        except UserError as error:
            raise self.fail(error.one_line()) from error
        types = self._infer()
        if len(types) != results:
            raise self.fail("wrong number of results", expected=len(types), found=results)
        for result, type_ in zip(self.results, types, strict=True):
            result._type = type_  # pyright: ignore[reportPrivateUsage]

    # --- meaning, given by subclasses ---

    def infer(self) -> Tensor | Sequence[Tensor]:
        """Result type(s) from operand types and properties. Raises UserError."""
        raise NotImplementedError(self.name)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source | Sequence[Source]:
        """Add the scopes that define this op and return its result(s)."""
        raise NotImplementedError(self.name)

    def reference(self, *operands: Array) -> Sequence[Array]:
        """The meaning in numpy (float64/int64/bool) of an op that is not a tensor expression."""
        raise NotImplementedError(self.name)

    @classmethod
    def has_scopes(cls) -> bool:
        return cls.as_scopes is not GraphOp.as_scopes

    def scopes(self) -> tuple[list[Operation], list[SSAValue]]:
        """The ops that define this one, in order, and its results among their values.

        They are in no block: `discard` those that are not inserted.
        """
        build = ScopeBuilder()
        found = self.as_scopes(build, *(Source(v) for v in self.operands))
        results = [found] if isinstance(found, Source) else list(found)
        return build.ops, [result.value for result in results]

    # --- access ---

    def value(self, name: str) -> Any:
        """A property as a Python value, or its default. Raises UserError if there is neither."""
        attribute = self.properties.get(name)
        if attribute is not None:
            return to_python(attribute)
        if name not in self.DEFAULTS:
            raise self.fail(f"property '{name}' is missing")
        return self.DEFAULTS[name]

    def ints(self, name: str) -> tuple[int, ...]:
        """A property that is a list of whole numbers."""
        found = tuple(self.value(name))
        if any(isinstance(v, float) for v in found):
            raise self.fail(f"property '{name}' needs whole numbers", found=list(found))
        return found

    @property
    def type(self) -> Tensor:
        """Type of the (first) result."""
        return tensor_type(self.results[0])

    def operand_type(self, position: int) -> Tensor:
        return tensor_type(self.operands[position])

    def fail(self, message: str, **details: Any) -> UserError:
        """The error to raise for bad operands or properties of this op."""
        return UserError(message, where=self.name, **details)

    def fail_element(self, message: str, found: object) -> ElementError:
        """The error to raise for operands of an element type that this op does not take."""
        return ElementError(message, where=self.name, found=found)

    # --- verification and text, the same for all ---

    def _infer(self) -> Sequence[Tensor]:
        if not self.MOVES:
            for value in self.operands:
                if isinstance(value.type, TensorType) and is_small_float(value.type.element_type):
                    message = "floats of 8 and 4 bits are only converted and moved"
                    raise self.fail_element(message, value.type.element_type)
        found = self.infer()
        types = (found,) if isinstance(found, TensorType) else found
        if any(n < 0 for t in types for n in t.get_shape()):
            for t in types:
                if any(n < 0 for n in dims_of(t)):
                    raise self.fail("an extent would be negative", found=_names(types))
        return types

    def _inferred(self) -> Sequence[Tensor]:
        """The result types; those with symbols by the guards of the function around."""
        types = [tensor_type(v) for v in (*self.operands, *self.results)]
        if all(DYNAMIC not in t.get_shape() for t in types):
            return self._infer()
        with shape_env(self).active():
            return self._infer()

    def verify_(self) -> None:
        try:
            expected = self._inferred()
        except UserError as error:
            raise VerifyException(str(error).removeprefix(f"{self.name}: ")) from error
        found = [result.type for result in self.results]
        if list(expected) != found:
            raise VerifyException(
                "result types do not follow from the operands: "
                f"expected {_names(expected)}, found {_names(found)}"
            )

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        self._print_properties(printer)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        if self.results:
            printer.print_string(" : ")
            printer.print_list([r.type for r in self.results], printer.print_attribute)

    def _print_properties(self, printer: Printer) -> None:
        shown = {
            k: v for k, v in self.properties.items() if v != default_attributes(type(self)).get(k)
        }
        if not shown:
            return
        printer.print_string(" {")
        names = [name for name in property_order(type(self)) if name in shown]
        printer.print_list(names, lambda name: _print_property(printer, name, shown[name]))
        printer.print_string("}")

    @classmethod
    def parse(cls, parser: Parser) -> GraphOp:
        operands: list[SSAValue] = []
        while parser._current_token.text.startswith("%"):  # pyright: ignore[reportPrivateUsage]
            operands.append(defined_operand(parser))
            if parser.parse_optional_punctuation(",") is None:
                break
        properties = _parse_properties(cls, parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        try:
            op = cls.create_checked(operands, properties, types)
        except (UserError, VerifyException, ValueError) as error:
            parser.raise_error(f"{cls.name}: {error}", position)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    @classmethod
    def create_checked(
        cls,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
        types: Sequence[Attribute],
    ) -> GraphOp:
        """Build with the written types; the verifier compares them with the inferred ones."""
        op = cls.__new__(cls)
        definition = cls.get_irdl_definition()
        IRDLOperation.__init__(
            op,
            operands=_arrange(operands, definition.operands),
            properties=_complete(cls, properties),
            result_types=_arrange_results(types, definition.results),
        )
        return op


def defined_classes() -> Iterator[type[GraphOp]]:
    """Every class of a graph op, including those of plug-ins; the last definition comes first."""
    waiting = [GraphOp]
    while waiting:
        cls = waiting.pop()
        if "name" in cls.__dict__:
            yield cls
        waiting += cls.__subclasses__()


def _complete(cls: type[GraphOp], given: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Add defaults, and convert integers where floats are wanted.

    Raises:
        UserError: a property is unknown or has a wrong type.
    """
    full = {**default_attributes(cls), **given}
    known = cls.get_irdl_definition().properties
    for name, attribute in given.items():
        if name not in known:
            hint = _did_you_mean(name, known)
            raise UserError(f"there is no property '{name}'", hint=hint)
        wanted = property_kind(cls, name)
        if wanted is None or isinstance(attribute, wanted):
            continue
        if wanted is DenseArrayBase and isinstance(attribute, DimsAttr):
            continue
        if wanted is FloatAttr and isinstance(attribute, IntegerAttr):
            full[name] = FloatAttr(float(attribute.value.data), f64)
        else:
            kind = wanted.__name__.removesuffix("Attr")
            raise UserError(f"property '{name}' is of another kind", expected=kind, found=attribute)
    return full


@cache
def property_order(cls: type[GraphOp]) -> Sequence[str]:
    """Names of the properties as the classes declare them, bases first."""
    known = cls.get_irdl_definition().properties
    declared = [name for base in reversed(cls.__mro__) for name in base.__dict__ if name in known]
    return list(dict.fromkeys(declared))


@cache
def default_attributes(cls: type[GraphOp]) -> Mapping[str, Attribute]:
    """`DEFAULTS` as attributes."""
    return {name: to_attribute(value) for name, value in cls.DEFAULTS.items()}


def _arrange(
    values: Sequence[SSAValue], definitions: Sequence[tuple[str, OperandDef]]
) -> list[Any]:
    """Group operands for xDSL: plain ones first, then one optional or variadic group.

    Raises:
        UserError: fewer operands than the op needs, or more than it takes, or no value.
    """
    for value in values:
        if not isinstance(value, SSAValue | Operation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(
                "an operand is no value of the program",
                found=type(value).__name__,
                hint="GraphBuilder.constant makes a literal, `weight` a weight",
            )
    plain = [name for name, definition in definitions if not isinstance(definition, VariadicDef)]
    count, group = len(plain), [d for _, d in definitions if isinstance(d, VariadicDef)]
    if len(values) < count:
        missing = plain[len(values)]
        raise UserError(f"operand '{missing}' is missing", expected=count, found=len(values))
    bounded = not group or isinstance(group[0], OptionalDef)
    most = count + len(group) if bounded else len(values)
    if len(values) > most:
        raise UserError("too many operands", expected=f"at most {most}", found=len(values))
    head: list[Any] = list(values[:count])
    return [*head, list(values[count:])] if group else head


def _arrange_results(
    types: Sequence[Attribute], definitions: Sequence[tuple[str, ResultDef]]
) -> list[Any]:
    if any(isinstance(definition, VariadicDef) for _, definition in definitions):
        return [list(types)]
    if len(types) != len(definitions):
        raise UserError("wrong number of results", expected=len(definitions), found=len(types))
    return list(types)


def _names(types: Sequence[Attribute]) -> str:
    return ", ".join(str(t) for t in types)


def _did_you_mean(word: str, known: Mapping[str, Any]) -> str:
    return did_you_mean(word, known) or f"it has {', '.join(known) or 'none'}"


def _print_property(printer: Printer, name: str, attribute: Attribute) -> None:
    printer.print_string(f"{name} = ")
    value = to_python(attribute)
    if isinstance(value, bool | int | float):
        printer.print_string(literal_text(value))
    elif isinstance(attribute, DimsAttr):
        attribute.print_list(printer, "[", "]")
    elif isinstance(value, tuple):
        printer.print_string("[" + ", ".join(literal_text(v) for v in value) + "]")
    else:
        printer.print_attribute(attribute)


def _parse_properties(cls: type[GraphOp], parser: Parser) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    known = cls.get_irdl_definition().properties

    def entry() -> None:
        name = parser.parse_identifier()
        if name not in known:
            parser.raise_error(f"{cls.name} has no property '{name}': {_did_you_mean(name, known)}")
        parser.parse_punctuation("=")
        properties[name] = _parse_property(parser)

    parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, entry)
    return properties


# A list with a name in it; `e` of `1e-5` is none.
_SYMBOLIC_LIST = re.compile(r"\[[^\]]*(?<![0-9.A-Za-z_])[A-Za-z_]")
_WORDS = (("true", True), ("false", False), ("inf", float("inf")), ("nan", float("nan")))


def _parse_property(parser: Parser) -> Attribute:
    for word, value in _WORDS:
        if parser.parse_optional_keyword(word) is not None:
            return to_attribute(value)
    if _SYMBOLIC_LIST.match(parser._current_token.span.input.content, parser.pos):  # pyright: ignore
        return DimsAttr(parse_dims(parser, parser.Delimiter.SQUARE))
    if (
        numbers := parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_number
        )
    ) is not None:
        return to_attribute(numbers)
    if parser.parse_optional_punctuation("-") is not None:
        return to_attribute(-_parse_number(parser))
    if (number := parser.parse_optional_number()) is not None:
        return to_attribute(number)
    return parser.parse_attribute()


def _parse_number(parser: Parser) -> float | int:
    return (
        float("inf") if parser.parse_optional_keyword("inf") is not None else parser.parse_number()
    )
