"""Every StableHLO op with a form in the graph dialect: its name -> converter."""

from __future__ import annotations

from . import contraction, control, elementwise, indexing, mapped, reductions, shaping
from .inline import COMPOSITE, composite_name
from .node import Converter
from .text import HloOp

TABLE: dict[str, Converter] = {
    **elementwise.TABLE,
    **shaping.TABLE,
    **contraction.TABLE,
    **reductions.TABLE,
    **mapped.TABLE,
    **indexing.TABLE,
    **control.TABLE,
}

COMPOSITES: dict[str, Converter] = {name: TABLE[name] for name in TABLE if name.startswith("chlo.")}
"""Composites that are not replaced by their decompositions."""

CALLS: dict[str, Converter] = {
    "Sharding": shaping.identity,
    "annotate_device_placement": shaping.identity,
    "mhlo.erf": TABLE["chlo.erf"],
    "mhlo.topk": TABLE["chlo.top_k"],
}
"""What `stablehlo.custom_call` may call."""


def converter_of(op: HloOp) -> Converter | None:
    """The converter of an op, if it has one."""
    if op.name == COMPOSITE:
        return COMPOSITES.get(composite_name(op))
    if op.name == "stablehlo.custom_call":
        return CALLS.get(called(op))
    return TABLE.get(op.name)


def full_name(op: HloOp) -> str:
    """An op's name, with what a custom call calls."""
    return f"{op.name} @{called(op)}" if op.name == "stablehlo.custom_call" else op.name


def called(op: HloOp) -> str:
    """What a custom call calls."""
    name = op.attributes.get("call_target_name") or (op.words or [""])[0]
    return str(name).removeprefix("@")
