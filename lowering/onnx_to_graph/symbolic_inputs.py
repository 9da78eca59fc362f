"""The shapes of a model's inputs with symbols, from the names that the file gives to dims."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ...dialects.errors import UserError
from ...dialects.extent_text import extent_text, is_name, read_extent
from ...dialects.extents import Dims, ShapeEnv, extent
from ...dialects.specialize import sizes_of_dims
from .shape_binding import DeclaredInput, bound_dims, named_dims


def symbolic_shapes(
    inputs: Sequence[DeclaredInput],
    shapes: Mapping[str, Sequence[int]],
    examples: Mapping[str, Sequence[int]],
    env: ShapeEnv,
) -> dict[str, Dims]:
    """The shape of every input, with extents for the dims that `shapes` does not fix.

    The symbols' example sizes, from `examples`, are added to `env`.

    A dim without a name is a symbol of its own. A name that is an expression over other names is
    that expression (`past + seq`, as exporters write); another that is no name is renamed.

    Raises:
        UserError: as `bind`; or an input has no rank.
    """
    texts = _texts(named_dims(inputs))
    found: dict[str, Dims] = {}
    for name, dims in bound_dims(inputs, shapes).items():
        own = re.sub(r"\W", "_", f"{name}_dim")
        found[name] = tuple(
            d
            if isinstance(d, int)
            else extent(read_extent(f"{own}{k}" if d is None else texts[d]), env)
            for k, d in enumerate(dims)
        )
    env.sizes |= sizes_of_dims(found, examples)
    return found


def _texts(names: Sequence[str]) -> dict[str, str]:
    """Each dim's name as the text of an extent."""
    plain = [name for name in names if is_name(name)]
    return {name: _text(name, plain, k) for k, name in enumerate(names)}


def _text(name: str, plain: Collection[str], number: int) -> str:
    if name in plain:
        return name
    renamed = re.sub(r"\W", "_", f"dim{number}_{name}")
    try:
        expr = read_extent(name)
    except UserError:
        return renamed
    known = {s.name for s in expr.free_symbols} <= set(plain)
    return extent_text(expr) if known else renamed
