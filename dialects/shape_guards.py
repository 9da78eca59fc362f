"""Read and write a function's attributes about symbolic dims: `isoform.guards`, `isoform.sizes`.

    func.func @main(%x: tensor<?x8xf32, #graph.dims<n, 8>>) -> ...
        attributes {isoform.guards = ["n >= 1", "n <= 512"], isoform.sizes = {n = 16 : i64}}

Every call satisfies the guards; a symbol without one is any number >= 0. Sizes are an example.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from .dims_attr import DimsAttr
from .errors import UserError, did_you_mean

if TYPE_CHECKING:
    from .extents import ShapeEnv

GUARDS = "isoform.guards"
SIZES = "isoform.sizes"


def shape_env(op: Operation) -> ShapeEnv:
    """Return the guards of the function around `op`, as a frozen ShapeEnv.

    Raises:
        UserError: the attribute is malformed.
    """
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    guards = None if function is None else function.attributes.get(GUARDS)
    return _env(guards)


@contextmanager
def assume_guards(module: ModuleOp) -> Generator[None]:
    """Compute extents in the `with` block under the guards of the module's function."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    guarded = next((f for f in functions if GUARDS in f.attributes), None)
    if guarded is None:
        yield
        return
    with shape_env(guarded).active():
        yield


@lru_cache(maxsize=64)
def _env(guards: Attribute | None) -> ShapeEnv:
    from .extent_text import read_guard
    from .extents import ShapeEnv

    if guards is None:
        return ShapeEnv(frozen=True)
    if not isinstance(guards, ArrayAttr) or not all(isinstance(g, StringAttr) for g in guards):
        raise UserError(f"{GUARDS} must be a list of strings", found=guards, hint='["n <= 512"]')
    return ShapeEnv(guards={read_guard(g.data): "" for g in guards}, frozen=True)  # pyright: ignore


def sizes_of(function: FuncOp) -> dict[str, int]:
    """Return the example sizes. Raises UserError if one is not a number."""
    found = function.attributes.get(SIZES)
    if found is None:
        return {}
    if not isinstance(found, DictionaryAttr) or not all(
        isinstance(n, IntegerAttr) for n in found.data.values()
    ):
        raise UserError(
            f"{SIZES} must give a number for each symbol", found=found, hint="{n = 16 : i64}"
        )
    return {name: n.value.data for name, n in found.data.items()}  # pyright: ignore


def symbols_of(function: FuncOp) -> list[str]:
    """The symbols of a function's arguments, in order."""
    found: list[str] = []
    for arg in function.body.block.args:
        if isinstance(arg.type, TensorType) and isinstance(arg.type.encoding, DimsAttr):
            found += arg.type.encoding.symbols()
    return list(dict.fromkeys(found))


def check_guards(function: FuncOp) -> None:
    """Raise the UserError of a guard on a symbol that no argument has."""
    from .extent_text import guard_text

    known = symbols_of(function)
    for guard in shape_env(function).guards:
        for name in guard.symbols:
            if name not in known:
                hint = did_you_mean(name, known) or f"they are {', '.join(known) or 'none'}"
                text = guard_text(guard)
                raise UserError(f"{GUARDS}: '{text}' names no dim of an input", hint=hint)


def write_guards_and_sizes(function: FuncOp, env: ShapeEnv) -> None:
    """Write guards and sizes as the function's attributes."""
    from .extents import guard_text

    function.attributes[GUARDS] = ArrayAttr(StringAttr(guard_text(g)) for g in env.guards)
    function.attributes[SIZES] = _sizes(env.sizes)


def _sizes(sizes: Mapping[str, int]) -> DictionaryAttr:
    return DictionaryAttr({name: IntegerAttr(n, i64) for name, n in sizes.items()})
