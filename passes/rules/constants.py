"""The constant tensors that rules may name: their values, and how a program computes them.

ones(shape=[..])                                 every element 1
identity_matrix(size=n)                          x = matmul(x, identity_matrix)
identity_kernel(channels=c, kernel=[r, s])       x = conv(x, .., groups=c), odd taps, same pads
pool_kernel(channels=c, kernel=[r, s])           1/(r s) everywhere: the mean, by a conv
pair_mask(shape=[o, i, r, s], groups=g)          1 where an output channel of each second group
                                                 meets the second half of i, or of each first the
                                                 first; else 0: two groups' kernels, as one group's

Large ones, and values that floats cannot hold, are written as `steps`: ops on small literals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ...dialects.errors import UserError
from ...dialects.types import Array
from .rule import CONSTANTS, atoms_of


class ConstantStep(NamedTuple):
    """An op that a constant is computed by: on the results of earlier steps, by their numbers."""

    op: str
    operands: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...]


Steps: TypeAlias = "tuple[Array | ConstantStep, ...]"

MAX_CONSTANT = 1 << 16
"""Elements of the largest literal that a rule may write into a program."""
_WHOLE_IDENTITY = 32
"""The largest identity matrix that is a literal; longer ones would be tensors of unknown numbers to
whoever compares programs."""
T = TypeVar("T")


def constant_array(op: str, attributes: Mapping[str, Any]) -> Array:
    """The value of a constant of a rule, in float64.

    Raises:
        UserError: there is no such constant.
    """
    match op:
        case "ones":
            return np.ones(tuple(attributes["shape"]))
        case "identity_matrix":
            return np.eye(attributes["size"])
        case "identity_kernel":
            array = np.zeros((attributes["channels"], 1, *attributes["kernel"]))
            array[:, 0, *(n // 2 for n in attributes["kernel"])] = 1.0
            return array
        case "pool_kernel":
            kernel = tuple(attributes["kernel"])
            return np.full((attributes["channels"], 1, *kernel), 1.0 / np.prod(kernel))
        case "pair_mask":
            outputs, inputs, *kernel = attributes["shape"]
            half = np.arange(inputs) // max(inputs // 2, 1)
            group = np.arange(outputs) // max(outputs // attributes["groups"], 1)
            mask = (group % 2)[:, None] == half[None, :]
            return np.ones((outputs, inputs, *kernel)) * mask[:, :, None, None]
        case _:
            raise UserError(f"'{op}' is not a constant of a rule", expected=", ".join(CONSTANTS))


def makes_sense(op: str, attributes: Mapping[str, Any]) -> bool:
    """Whether there is a constant with these attributes, all of them positive."""
    match op:
        case "identity_kernel":
            return all(n % 2 for n in attributes["kernel"])
        case "pair_mask":
            outputs, inputs = attributes["shape"][:2] if len(attributes["shape"]) == 4 else (1, 1)
            groups = attributes["groups"]
            return groups % 2 == 0 and outputs % groups == 0 and inputs % 2 == 0
        case _:
            return True


def is_writable(op: str, attributes: Mapping[str, Any], most: int = MAX_CONSTANT) -> bool:
    """Whether a program can hold a constant: its literal has at most so many elements."""
    numbers: list[Any] = [n for value in attributes.values() for n in atoms_of(value)]
    if any(n < 1 for n in numbers) or not makes_sense(op, attributes):
        return False
    match op:
        case "identity_kernel":
            return bool(np.prod(numbers, dtype=np.float64) <= most)
        case _:
            return True


def constant_steps(op: str, attributes: Mapping[str, Any]) -> Steps:
    """What computes a constant, the last step the whole of it: literals are exact in any float.

    Raises:
        UserError: there is no such constant.
    """
    match op:
        case "ones":
            return (np.array(1.0), _broadcast(0, (), tuple(attributes["shape"])))
        case "pool_kernel":
            shape = (attributes["channels"], 1, *attributes["kernel"])
            count = np.float64(np.prod(attributes["kernel"]))
            share = ConstantStep("div", (0, 1), ())
            return (np.array(1.0), np.array(count), share, _broadcast(2, (), shape))
        case "pair_mask":
            outputs, inputs, *kernel = attributes["shape"]
            groups = attributes["groups"]
            parts = (groups // 2, 2, outputs // groups, 2, inputs // 2, *kernel)
            whole = ConstantStep("reshape", (1,), (("shape", (outputs, inputs, *kernel)),))
            return (np.eye(2), _broadcast(0, (1, 3), parts), whole)
        case "identity_matrix" if attributes["size"] > _WHOLE_IDENTITY:
            return _identity(attributes["size"])
        case _:
            return (constant_array(op, attributes),)


def _identity(size: int) -> Steps:
    """Rows of 1, 0, .., 0 that are one longer than the matrix, read as rows of its own length."""
    long, square = size * (size + 1), size * size
    return (
        np.array([1.0]),
        ConstantStep("pad", (0,), (("pads", (0, size)),)),
        _broadcast(1, (1,), (size, size + 1)),
        ConstantStep("reshape", (2,), (("shape", (long,)),)),
        ConstantStep("slice", (3,), (("sizes", (square,)), ("starts", (0,)), ("steps", (1,)))),
        ConstantStep("reshape", (4,), (("shape", (size, size)),)),
    )


def write_constant(
    op: str,
    attributes: Mapping[str, Any],
    literal: Callable[[Array], T],
    make: Callable[[str, Mapping[str, Any], tuple[T, ...]], T],
) -> T:
    """Write what computes a constant; `make` takes an op, its attributes and operands."""
    values = list[T]()
    for step in constant_steps(op, attributes):
        if isinstance(step, ConstantStep):
            operands = tuple(values[k] for k in step.operands)
            values.append(make(step.op, dict(step.attributes), operands))
        else:
            values.append(literal(step))
    return values[-1]


_SMALLEST: Mapping[str, Mapping[str, Any]] = {
    "ones": {"shape": (1,)},
    "identity_matrix": {"size": _WHOLE_IDENTITY + 1},
    "pool_kernel": {"channels": 1, "kernel": (1, 1)},
    "pair_mask": {"shape": (2, 2, 1, 1), "groups": 2},
}


def steps_taken(op: str) -> list[ConstantStep]:
    """The ops that a constant of this name may be computed by, whatever its attributes."""
    if op not in _SMALLEST:
        return []
    return [step for step in constant_steps(op, _SMALLEST[op]) if isinstance(step, ConstantStep)]


def _broadcast(of: int, dims: tuple[int, ...], shape: tuple[int, ...]) -> ConstantStep:
    return ConstantStep("broadcast", (of,), (("dims", dims), ("shape", shape)))
