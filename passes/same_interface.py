"""Whether two programs can be compared: inputs and outputs by name, shape and dtype."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialects.errors import UserError
from ..dialects.graph import WeightOp
from ..dialects.program import Program, expression_of
from ..dialects.types import Tensor


def check_same_interface(a: Program, b: Program) -> None:
    """Require equal names, order, shapes and dtypes of inputs and of outputs.

    Outputs without user-given names (`func.return %y`) correspond by position.

    Raises:
        UserError: for the first difference.
    """
    _check("input", a.inputs, b.inputs)
    _check_defaults(a, b)
    named = a.main.res_attrs is not None and b.main.res_attrs is not None
    mine, theirs = a.outputs, b.outputs
    if not named and len(mine) == len(theirs) and set(mine) != set(theirs):
        theirs = dict(zip(mine, theirs.values(), strict=True))
    _check("output", mine, theirs)
    if named and a.output_names != b.output_names:
        raise UserError(
            "the outputs are listed in another way",
            expected=", ".join(a.output_names),
            found=", ".join(b.output_names),
        )


def check_comparable(a: Program, b: Program) -> None:
    """Require equal interfaces, and the data of constants made at compile time.

    Other weights may be absent: they are then compared by name. A folded constant has a private
    name, so nothing is known without its data.

    Raises:
        UserError: for the first missing or different part.
    """
    check_same_interface(a, b)
    for program in (a, b):
        for op in program.main.body.block.ops:
            if not isinstance(op, WeightOp) or expression_of(op) is None:
                continue
            if op.key not in program.weights:
                raise UserError(
                    f"the data of constant '{op.key}', made at compile time, are missing",
                    where=program.source or None,
                    hint="the weights file belongs beside the .mlir",
                )


def _check_defaults(a: Program, b: Program) -> None:
    """Require inputs with defaults to have the same default weights in both."""
    mine, theirs = a.defaults, b.defaults
    for name in a.inputs:
        if (name in mine) != (name in theirs):
            raise UserError(f"input '{name}' has a default in one of the programs only")
        if name not in mine:
            continue
        keys = (a.weights, mine[name]), (b.weights, theirs[name])
        same = mine[name] == theirs[name]
        if same and (a.weights is b.weights or all(key not in w for w, key in keys)):
            continue  # without their data, weights of one name count as equal
        if len({weights.content_hash(key) for weights, key in keys}) > 1:
            raise UserError(f"input '{name}' has another default")


def _check(kind: str, first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
    if len(first) != len(second):
        raise UserError(
            f"the programs have different numbers of {kind}s",
            expected=_listed(first),
            found=_listed(second),
        )
    for name in first:
        if name not in second:
            raise UserError(
                f"the second program has no {kind} '{name}'",
                expected=_listed(first),
                found=_listed(second),
                hint=f"{kind}s correspond by name",
            )
    if list(first) != list(second):
        raise UserError(
            f"the {kind}s stand in another order", expected=_listed(first), found=_listed(second)
        )
    for name, type_ in first.items():
        other = second[name]
        for what, mine, theirs in (
            ("shape", list(type_.get_shape()), list(other.get_shape())),
            ("dtype", type_.element_type, other.element_type),
        ):
            if mine != theirs:
                raise UserError(f"{kind} '{name}' has another {what}", expected=mine, found=theirs)


def _listed(names: Mapping[str, Tensor]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
