"""Print a scope's scalar body as C expressions: values used once are written in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float16Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.errors import UserError
from ...dialects.scalars import function_of
from ...dialects.types import integer_range, is_bool, is_float, is_half
from .element_types import compute_type, greatest, least, literal

# Precedence of C operators; an operand with a lower one than needed gets brackets.
ATOM, UNARY, PRODUCT, SUM, ORDER, EQUAL, AND, XOR, OR, CHOICE = range(10, 0, -1)
# A longer text is given a name, even if it is used only once.
LONG = 60


@dataclass(frozen=True)
class Text:
    """A C expression and how strongly its outermost operator binds."""

    text: str
    strength: int = ATOM

    def at(self, strength: int) -> str:
        """The expression as an operand where `strength` is needed."""
        return self.text if self.strength >= strength else f"({self.text})"


# Helper functions that bodies call, by name; a kernel is printed with those that it uses.
HELPERS: dict[str, str] = {
    "maximum": """\
// The larger of two numbers; NaN if either is.
template <typename T>
__device__ __forceinline__ T maximum(T a, T b) { return a != a || a > b ? a : b; }""",
    "minimum": """\
// The smaller of two numbers; NaN if either is.
template <typename T>
__device__ __forceinline__ T minimum(T a, T b) { return a != a || a < b ? a : b; }""",
    "quotient": """\
// Integer division towards zero that never traps: a / 0 is 0.
template <typename T>
__device__ __forceinline__ T quotient(T a, T b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }""",
    "remainder_of": """\
// What integer division leaves, with the sign of `a`; 0 where b is 0.
template <typename T>
__device__ __forceinline__ T remainder_of(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }""",
    "as_half": """\
// What a half holds of a float.
__device__ __forceinline__ float as_half(float a) {
  const __half held = __float2half_rn(a);
  return __half2float(held);
}""",
    "as_bfloat": """\
// What a bfloat holds of a float.
__device__ __forceinline__ float as_bfloat(float a) {
  const __nv_bfloat16 held = __float2bfloat16_rn(a);
  return __bfloat162float(held);
}""",
}

_OPERATORS = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "lt": ("<", ORDER),
    "le": ("<=", ORDER),
    "gt": (">", ORDER),
    "ge": (">=", ORDER),
    "eq": ("==", EQUAL),
    "ne": ("!=", EQUAL),
    "and": ("&", AND),
    "xor": ("^", XOR),
    "or": ("|", OR),
}
# Names in C's math library where they are not the table's own.
_MATH = {"abs": "fabs", "roundeven": "rint", "max": "maximum", "min": "minimum"}
_ASSOCIATIVE = ("add", "mul", "and", "or", "xor")


def apply(name: str, args: Sequence[Text], element: Attribute) -> Text:
    """One function of the table on operands of an element type."""
    if is_bool(element) and name in ("add", "sub"):
        name = "xor"
    if is_bool(element) and name in ("mul", "max", "min"):
        name = "or" if name == "max" else "and"
    if name == "select":
        test, yes, no = args
        return Text(f"{test.at(OR)} ? {yes.at(OR)} : {no.at(CHOICE)}", CHOICE)
    if name == "neg":
        return Text(f"-{args[0].at(UNARY + 1)}", UNARY)
    if name == "div" and is_float(element):
        return _infix("/", PRODUCT, args, swaps=False)
    if name in _OPERATORS:
        operator, strength = _OPERATORS[name]
        return _infix(operator, strength, args, swaps=name in _ASSOCIATIVE)
    return Text(f"{_function(name, element)}({', '.join(a.text for a in args)})")


def _infix(operator: str, strength: int, args: Sequence[Text], swaps: bool) -> Text:
    """`a op b`; floats keep their order of evaluation: only the left operand needs no brackets."""
    left, right = args
    return Text(f"{left.at(strength)} {operator} {right.at(strength + 1)}", strength)


def _function(name: str, element: Attribute) -> str:
    if name in ("max", "min"):
        return _MATH[name]
    if not is_float(element):
        if name == "abs":
            return "abs" if compute_type(element) != "long long" else "llabs"
        if name in ("div", "rem"):
            return "quotient" if name == "div" else "remainder_of"
        raise UserError(f"no CUDA code for integer '{name}'")
    name = _MATH.get(name, name)
    return name if isinstance(element, Float64Type) else f"{name}f"


@dataclass
class Body:
    """Lines before the value, the value, and the helpers that they call."""

    lines: list[str] = field(default_factory=list[str])
    helpers: set[str] = field(default_factory=set[str])


def print_body(
    block: Block, arguments: Sequence[Text], into: Body, fresh: Callable[[str], str]
) -> Text:
    """The value of a body on the texts of its arguments; values used twice are named first.

    Args:
        fresh: makes a variable name that is not in use.
    """
    values: dict[SSAValue, Text] = dict(zip(block.args, arguments, strict=True))
    for argument in block.args:
        if len(list(argument.uses)) > 1:
            values[argument] = _named(values[argument], argument, into, fresh)
    for op in block.ops:
        if not op.results:
            continue
        text = print_op(op, values, into)
        (result,) = op.results
        shared = len(list(result.uses)) > 1 and not isinstance(op, arith.ConstantOp)
        last = block.last_op is not None and result is block.last_op.operands[0]
        if shared or (len(text.text) > LONG and not last):
            text = _named(text, result, into, fresh)
        values[result] = text
    assert block.last_op is not None
    return values[block.last_op.operands[0]]


def _named(text: Text, value: SSAValue, into: Body, fresh: Callable[[str], str]) -> Text:
    if text.text.isidentifier():
        return text
    name = fresh("t")
    into.lines.append(f"const {compute_type(value.type)} {name} = {text.text};")
    return Text(name)


def print_op(op: Operation, values: Mapping[SSAValue, Text], into: Body) -> Text:
    """The value of one op of a body on the texts of its operands."""
    result = op.results[0].type
    if isinstance(op, arith.ConstantOp):
        assert isinstance(op.value, FloatAttr | IntegerAttr)
        text = literal(op.value.value.data, result)
        return _narrow(Text(text, UNARY if text.startswith("-") else ATOM), result)
    args = [values[v] for v in op.operands]
    name = function_of(op)
    if name is None:
        if isinstance(op, arith.FPToSIOp | arith.FPToUIOp) and _is_short(result):
            return _saturated(args[0], result, into)
        if len(args) == 1:  # every other op of a body is a cast
            return rounded(_cast(args[0], op.operands[0].type, result), result, into)
        raise UserError(f"no CUDA code for {op.name}")
    element = op.operands[-1].type
    if name == "pow" and not is_float(element):
        power = apply("pow", [_convert(a, "double") for a in args], Float64Type())
        return _narrow(_convert(power, "long long"), element)
    text = apply(name, args, element)
    into.helpers |= {helper for helper in HELPERS if text.text.startswith(f"{helper}(")}
    return _narrow(text, result)


def _is_short(element: Attribute) -> bool:
    """Whether an integer is shorter than C's int, to which the device's conversion saturates."""
    return isinstance(element, IntegerType) and 1 < element.width.data < 32


def _saturated(value: Text, element: Attribute, into: Body) -> Text:
    """A float as a short integer: as an int, then cut to the type's range."""
    low, high = (Text(f"({n})") for n in integer_range(element))
    cut = apply("min", [apply("max", [_convert(value, "int"), low], i32), high], i32)
    into.helpers |= {helper for helper in HELPERS if f"{helper}(" in cut.text}
    return _convert(cut, compute_type(element))


def _narrow(value: Text, element: Attribute) -> Text:
    """Wrap integers shorter than C's int at their own width."""
    ctype = compute_type(element)
    return _convert(value, ctype) if ctype.rpartition(" ")[2] in ("char", "short") else value


def rounded(value: Text, element: Attribute, into: Body) -> Text:
    """A computed value as a tensor stores it, in the compute type: half floats are rounded."""
    if not is_half(element):
        return value
    helper = "as_half" if isinstance(element, Float16Type) else "as_bfloat"
    into.helpers.add(helper)
    return Text(f"{helper}({value.text})")


def _cast(value: Text, source: Attribute, target: Attribute) -> Text:
    if compute_type(source) == compute_type(target):
        return value
    return _convert(value, compute_type(target))


def _convert(value: Text, ctype: str) -> Text:
    return Text(f"({ctype}){value.at(UNARY)}", UNARY)


def identity(reduction: str, element: Attribute) -> str:
    """The neutral element of a reduction."""
    if reduction in ("sum", "prod"):
        return literal(0 if reduction == "sum" else 1, element)
    return least(element) if reduction == "max" else greatest(element)


COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def accumulate(reduction: str, total: str, value: Text, element: Attribute, into: Body) -> str:
    """The statement that adds one more value to a reduction."""
    if is_bool(element):
        operator = {"sum": "^", "prod": "&", "max": "|", "min": "&"}[reduction]
        return f"{total} = {total} {operator} {value.at(AND + 1)};"
    if reduction in ("sum", "prod"):
        return f"{total} {'+' if reduction == 'sum' else '*'}= {value.text};"
    helper = "maximum" if reduction == "max" else "minimum"
    into.helpers.add(helper)
    return f"{total} = {helper}({total}, {value.text});"
