"""Import programs of torch.export: with fixed sizes as a program, with symbols as a dynamic one."""

# pyright: reportMissingImports=false

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile

import torch
from torch.export.graph_signature import OutputKind

from ...dialects.errors import UserError, one_line
from ...dialects.program import Program
from .decompositions import decompositions
from .dynamic_export import DynamicExport
from .exported import Exported

_UNREADABLE = (
    RuntimeError, ValueError, OSError, LookupError, AttributeError, AssertionError, BadZipFile,
    UnpicklingError,
)  # fmt: skip


def load_exported(path: Path) -> Program:
    """Read a file that `torch.export.save` wrote; with symbols as a `DynamicExport`.

    Raises:
        UserError: it cannot be read, or an op has no form in the graph dialect.
    """
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch logs a traceback, too
    try:
        exported = torch.export.load(path)
    except _UNREADABLE as error:
        message = one_line(str(error))[:200]
        raise UserError(f"not a readable exported program ({message})", where=str(path)) from error
    finally:
        logging.disable(level)
    return program_of(exported, source=path.name)


def program_of(
    exported: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    source: str = "",
) -> Program:
    """The program of an exported one; parameters keep their names in the module.

    Args:
        inputs, outputs: names, where they are to be others than torch's.

    Returns:
        A program, or a `DynamicExport` where sizes of inputs are symbols.

    Raises:
        UnsupportedAten: an op has no form in the graph dialect; `where` is the user's line.
        UserError: it changes a buffer or an input, or an input is no tensor.
    """
    try:
        exported = exported.run_decompositions(decompositions())
    except (AssertionError, RuntimeError) as error:  # torch 2.13: of sizes such as 2 * k in a file
        message = one_line(str(error))[:200]
        raise UserError(f"torch cannot decompose it: {message}", where=source) from error
    _check_outputs(exported.graph_signature.output_specs)
    exported.graph_module.graph.eliminate_dead_code()
    found = Exported(exported, inputs, outputs, source)
    if any(_is_symbolic(n.meta.get("val")) for n in found.graph.nodes if n.op == "placeholder"):
        return DynamicExport(found)
    return found.program(found.graph, {})


def _check_outputs(entries: Sequence[Any]) -> None:
    for entry in entries:
        if entry.kind is OutputKind.USER_OUTPUT and hasattr(entry.arg, "value"):
            raise UserError(f"a result is not a tensor but {type(entry.arg.value).__name__}")
        if entry.kind is not OutputKind.USER_OUTPUT:
            raise UserError(f"forward changes '{entry.target}' in place")


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(not isinstance(n, int) for n in value.shape)
