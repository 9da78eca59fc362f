"""The graph dialect's ops as methods, with signatures and docstrings from their definitions.

`builder_ops.pyi` has the same for type checkers and editors: `python scripts/builder_stub.py
--write` makes it.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import OptionalDef, VariadicDef

from .graph import OPS, GraphOp
from .graph.base import property_kind, property_order

CLASSES: dict[str, type[GraphOp]] = {
    op.name.removeprefix("graph."): op for op in OPS if issubclass(op, GraphOp)
}
_TYPES: dict[Any, Any] = {IntegerAttr: int, FloatAttr: float, DenseArrayBase: Sequence[int]}


class GraphOps:
    """One method for each op; the class that has them appends the op in `op`."""

    def op(self, op_name: str, *operands: SSAValue, **properties: Any) -> SSAValue:
        """Append the op `graph.<op_name>`."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Callable[..., SSAValue]:
        op_name = name.removesuffix("_")  # `and_`, `or_`, `not_`: Python keywords
        if op_name not in CLASSES:
            raise AttributeError(f"the graph dialect has no op '{op_name}'")

        def method(*operands: SSAValue | None, **properties: Any) -> SSAValue:
            given = list(operands)
            while given and given[-1] is None:  # an optional operand, left out
                given.pop()
            return self.op(op_name, *given, **properties)  # pyright: ignore[reportArgumentType]

        method.__name__, method.__qualname__ = name, f"{type(self).__name__}.{name}"
        method.__doc__ = docstring(CLASSES[op_name])
        method.__signature__ = signature(CLASSES[op_name])  # pyright: ignore[reportFunctionMemberAccess]
        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *map(method_name, CLASSES)})


def method_name(op_name: str) -> str:
    """The method of an op: its name, with `_` where that is a Python keyword."""
    return f"{op_name}_" if keyword.iskeyword(op_name) else op_name


def docstring(op: type[GraphOp]) -> str:
    """What an op means, in its definition's words."""
    return inspect.cleandoc(op.__doc__ or "")


def signature(op: type[GraphOp]) -> inspect.Signature:
    """Operands by position, then properties by name with their defaults."""
    kinds = inspect.Parameter
    found: list[inspect.Parameter] = []
    for name, definition in op.get_irdl_definition().operands:
        optional = isinstance(definition, OptionalDef)
        many = isinstance(definition, VariadicDef) and not optional
        found.append(
            inspect.Parameter(
                name,
                kinds.VAR_POSITIONAL if many else kinds.POSITIONAL_ONLY,
                default=None if optional else kinds.empty,
                annotation=SSAValue | None if optional else SSAValue,
            )
        )
    found += [_property(op, name) for name in property_order(op)]
    return inspect.Signature(found, return_annotation=SSAValue)


def _property(op: type[GraphOp], name: str) -> inspect.Parameter:
    attribute = property_kind(op, name)
    default = op.DEFAULTS.get(name, inspect.Parameter.empty)
    type_: Any = bool if isinstance(default, bool) else _TYPES.get(attribute, Attribute)
    if attribute is None and name != "to":
        type_ = bool  # the constraint of `BoolAttr` is one of an integer's type
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=type_ if default is inspect.Parameter.empty else type_ | None,
    )
