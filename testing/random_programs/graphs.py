"""Random graph-level programs, valid by construction."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects.errors import UserError, did_you_mean
from ...dialects.program import Program
from . import elementwise, shaping, windows
from .grower import SIGNED, UNSIGNED, Grower

Family = Callable[[Grower], SSAValue]

# Each family of ops with its weight in the draw.
FAMILIES: dict[str, tuple[Family, int]] = {
    "unary": (elementwise.unary, 8),
    "activation": (elementwise.activation, 4),
    "binary": (elementwise.binary, 11),
    "band": (windows.banded, 1),
    "integer": (elementwise.integer, 3),
    "compare": (elementwise.compare, 3),
    "boolean": (elementwise.boolean, 2),
    "where": (elementwise.where, 3),
    "cast": (elementwise.cast, 4),
    "special": (elementwise.special, 1),
    "matmul": (windows.matmul, 9),
    "conv": (windows.conv, 10),
    "conv_transpose": (windows.conv_transpose, 5),
    "pool": (windows.pool, 6),
    "reduction": (shaping.reduction, 6),
    "softmax": (shaping.softmax, 4),
    "norm": (shaping.norm, 5),
    "reshape": (shaping.reshape, 5),
    "transpose": (shaping.transpose, 5),
    "broadcast": (shaping.broadcast, 3),
    "concat": (shaping.concat, 4),
    "split": (shaping.split, 3),
    "slice": (shaping.slices, 4),
    "pad": (shaping.pad, 4),
    "gather": (shaping.gather, 3),
    "arg_max": (shaping.arg_max, 1),
}
_FLOATS = ((f32,), (f32,), (f32,), (f32,), (f32, f64), (f64,), (f32, f16), (f32, bf16), (f16, bf16))


def random_graph(
    seed: int,
    *,
    ops: int = 12,
    families: Collection[str] | None = None,
    floats: Sequence[Attribute] | None = None,
    integers: bool = True,
    empty: float = 0.02,
    longest: int = 0,
) -> Program:
    """Draw a program of about `ops` ops, the same for the same arguments.

    Values are shared. There may be several outputs, which may be inputs or repeat; inputs may be
    unused. Extents are small, and rarely multiples of a vector's length.

    Args:
        families: names of FAMILIES to draw from; None for all.
        floats: float types to use; None draws them too, mostly f32.
        integers: whether integer and bool tensors occur beyond indices and conditions.
        empty: probability of an extent of 0.
        longest: if not 0, some extents are drawn up to it: rows of whole vectors.

    Raises:
        UserError: there is no such family.
    """
    chosen = list(FAMILIES) if families is None else list(families)
    for name in chosen:
        if name not in FAMILIES:
            raise UserError(f"there is no family '{name}'", hint=did_you_mean(name, FAMILIES))
    others = (*SIGNED, *UNSIGNED, i1) if integers else ()
    g = Grower(seed, floats or (f32,), others, empty, longest)
    if floats is None:
        g.floats = g.rng.choice(_FLOATS)
    for _ in range(g.rng.randint(1, 3)):
        g.input(g.shape(), g.float_type())
    weights = [FAMILIES[name][1] for name in chosen]
    for _ in range(ops):
        name = g.rng.choices(chosen, weights)[0]
        g.keep(FAMILIES[name][0](g))
    _outputs(g)
    if integers and seed % 4 == 1:  # a quarter of the programs; others stay as they were drawn
        _unsigned_outputs(g, random.Random(f"unsigned {seed}"))
    return g.b.build(source=f"random_graph({seed})")


def _unsigned_outputs(g: Grower, draw: random.Random) -> None:
    """Add conversions to and from unsigned integers; separate draws keep all other ops."""
    value = draw.choice(g.values)
    made = g.b.cast(value, to=draw.choice(UNSIGNED))
    g.b.output("unsigned", made)
    g.b.output("from_unsigned", g.b.cast(made, to=draw.choice((*g.floats, *SIGNED))))


def _outputs(g: Grower) -> None:
    """Name all unread values, and a few others: repeated ones, inputs, constants."""
    unread = [v for v in g.values if not v.uses and v.owner is not g.b.block]
    wanted = unread[-4:] or [g.values[-1]]
    if g.chance(0.3):
        wanted.append(g.rng.choice(g.values))
    if g.chance(0.1):
        wanted.append(wanted[0])
    for k, value in enumerate(wanted):
        g.b.output(f"y{k}", value)
