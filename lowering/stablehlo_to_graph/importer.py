"""Convert StableHLO text, op by op, by the table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Tensor, tensor_type
from .inline import CallInliner
from .node import HloScope, OpRefused
from .table import COMPOSITES, TABLE, converter_of, full_name
from .text import HloBlock, HloFunction, read

if TYPE_CHECKING:
    from .tokens import Place


def import_text(text: str, place: Place, source: str = "") -> Program:
    """The program of a StableHLO module's `@main`; calls are inlined.

    Inputs have the names that jax gives them in their locations, else `arg0`; outputs those of its
    result infos (`logits`, `output_0`), else `output`.

    Raises:
        UserError: the text is not StableHLO, a size is not fixed, or an op has no form in the graph
            dialect; with line and column.
    """
    main = CallInliner(read(text, place), frozenset(COMPOSITES), place).main()
    _require_known(main.block, place)
    build = GraphBuilder()
    scope = HloScope(build, place, converter_of)
    given = distinct([_label(a.label) or _plain(a.name) for a in main.block.arguments], ())
    inputs = [
        build.input(name, a.type.get_shape(), a.type.element_type)
        for name, a in zip(given, main.block.arguments, strict=True)
    ]
    results = scope.run(main.block, inputs)
    _check_results(main, results, place)
    for name, value in zip(distinct(_outputs(main.labels), given), results, strict=True):
        build.output(name, value)
    return build.build(source)


def _check_results(main: HloFunction, results: Sequence[SSAValue], place: Place) -> None:
    found: list[Tensor] = [tensor_type(v) for v in results]
    if found != main.types:
        where = place(main.block.ops[-1].position)
        raise UserError("the function returns other types than it says", where=where)


def _require_known(block: HloBlock, place: Place) -> None:
    """Raise UserError that names the ops, once each, that have no converter."""
    found: dict[str, int] = {}
    waiting = [block]
    while waiting:
        for op in waiting.pop().ops[:-1]:
            if converter_of(op) is None:
                found.setdefault(full_name(op), op.position)
            elif op.name in TABLE:
                waiting += op.regions
    if found:
        names = sorted(found)
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        text = f"no form in the graph dialect: {', '.join(names[:8])}{more}"
        raise UserError(text, where=place(min(found.values())))


# --- names ---


def _label(text: str) -> str:
    """A name from a path of jax: `params['dense']['kernel']` is `params.dense.kernel`."""
    if "/" in text or text.startswith("jit("):
        return ""
    parts = re.findall(r"[A-Za-z_][\w]*|\d+", text)
    return ".".join(parts)


def _plain(name: str) -> str:
    return name.removeprefix("%")


def _outputs(labels: Sequence[str]) -> list[str]:
    """`result['logits']` is `logits`, `result[0]` is `output_0`, `result` is `output`."""
    found: list[str] = []
    for k, label in enumerate(labels):
        name = _label(label.removeprefix("result"))
        default = "output" if len(labels) == 1 else f"output_{k}"
        found.append(f"output_{name}" if name[:1].isdecimal() else name or default)
    return found


def distinct(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names, each made unique by trailing underscores."""
    found: list[str] = []
    for name in names:
        while name in found or name in taken:
            name += "_"
        found.append(name)
    return found


__all__ = ["HloScope", "OpRefused", "import_text"]
