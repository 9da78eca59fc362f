"""Programs as text: `.mlir` files and the safetensors file beside them.

The module attribute `isoform.weights` names the weights file, relative to the `.mlir`. Without that
file a program still parses, verifies and optimises; operations that need the data report it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import CallOp

from ...dialects.deadline import check_time
from ...dialects.errors import UserError, warn
from ...dialects.files import read_whole, write_whole
from ...dialects.functions import functions_of
from ...dialects.graph import WeightOp
from ...dialects.program import (
    Program,
    check_names,
    input_names_of,
    main_of,
    weights_by_default,
)
from ...dialects.types import Tensor, tensor_type, to_numpy
from ...dialects.weights import Types, load_safetensors, require_type, save_safetensors
from ...lowering.stablehlo_to_graph import is_stablehlo
from ...passes.inline_calls import InlineCalls
from ..checks.verify_module import verify_module
from ..registry import make_context
from .module_text import module_text
from .source import IR_VERSION, VERSION, SourceText, parse_source

WEIGHTS = "isoform.weights"


def parse(text: str, name: str = "<text>") -> Program:
    """Parse and verify a program's IR text, without its weights. Calls are inlined.

    Raises:
        UserError: the text is not a valid program; with line and column.
    """
    context = make_context()
    module, locations = parse_source(context, SourceText(name, text))
    verify_module(module, locations.of)
    if any(isinstance(op, CallOp) for op in main_of(module).body.walk()):
        InlineCalls().apply(context, module)
    module.attributes.pop(VERSION, None)
    program = Program(module, source=name)
    check_names(program)
    return program


def read_program(path: Path) -> Program:
    """Read an `.mlir` file and open the weights beside it, if they exist.

    Raises:
        UserError: the file cannot be read or parsed, or names weights outside its folder.
    """
    return program_of(SourceText.decode(str(path), read_whole(path)), path)


def program_of(source: SourceText, path: Path) -> Program:
    """The program of a text; its weights are looked for beside `path`. StableHLO is imported.

    Raises:
        UserError: as `read_program`.
    """
    if is_stablehlo(source.text):
        from ...lowering.stablehlo_to_graph.importer import import_text

        return import_text(source.text, source.location, path.name)
    program = parse(source.text, source.name)
    side = weights_file(path, program)
    if side is not None:
        program.weights = load_safetensors(side)
    return program


def weights_file(path: Path, program: Program) -> Path | None:
    """The weights file that the program read from `path` names, if it exists.

    Raises:
        UserError: it is outside the folder of `path`.
    """
    named = program.module.attributes.get(WEIGHTS)
    side = _beside(path, named.data) if isinstance(named, StringAttr) else None
    return side if side is not None and side.exists() else None


def _beside(path: Path, name: str) -> Path:
    """The file called `name` in the folder of `path` or below it."""
    folder = path.resolve().parent
    side = (folder / name).resolve()
    if not side.is_relative_to(folder):
        raise UserError(f"the weights file '{name}' is outside the model's folder", where=str(path))
    return side


def used_weights(module: ModuleOp) -> list[str]:
    """Names of the weights that a module uses: defaults of inputs, then in order of use."""
    return list(dict.fromkeys(key for key, _ in _uses(module)))


def weight_types(module: ModuleOp) -> Types:
    """The dtype and shape of each weight that a module uses, in the order of `used_weights`."""
    return {key: (to_numpy(t.element_type), t.get_shape()) for key, t in _uses(module)}


def _uses(module: ModuleOp) -> Iterator[tuple[str, Tensor]]:
    """Each default of an input and each `graph.weight`, of all functions, with its type."""
    for function in functions_of(module):
        types = zip(input_names_of(function), function.body.block.args, strict=True)
        values = dict(types)
        for name, key in weights_by_default(function).items():
            yield key, tensor_type(values[name])
    for op in module.walk():
        if isinstance(op, WeightOp):
            yield op.key, op.type


def save_mlir(program: Program, path: Path) -> None:
    """Write `path` and, if the program has its weights, NAME.safetensors beside it.

    `-` is standard output, for the text alone.

    Raises:
        UserError: a file cannot be written, or some weights are missing.
    """
    if str(path) == "-":
        sys.stdout.write(module_text(program.module))
        if used_weights(program.module):
            warn("weights are not written to standard output: -o OUT.mlir writes them")
        return
    names = used_weights(program.module)
    missing = [name for name in names if name not in program.weights]
    module = program.module.clone()
    if names and not missing:
        side = path.with_suffix(".safetensors")
        save_safetensors(side, program.weights, weight_types(program.module))
        module.attributes[WEIGHTS] = StringAttr(side.name)
    elif len(missing) < len(names):
        raise UserError(f"weight '{missing[0]}' is missing, others are there", where=str(path))
    elif not names:
        module.attributes.pop(WEIGHTS, None)
    module.attributes[VERSION] = IntegerAttr(IR_VERSION, i64)
    write_whole(path, module_text(module))


def without_weights(program: Program) -> bool:
    """Whether the program names weights that are not at hand."""
    return any(name not in program.weights for name in used_weights(program.module))


def check_weights(program: Program) -> None:
    """Compare each weight's array with its type in the program.

    Raises:
        UserError: one is missing, or has another shape or dtype.
    """
    for key, type_ in _uses(program.module):
        check_time()
        require_type(key, program.weights[key], to_numpy(type_.element_type), type_.get_shape())


__all__ = [
    "check_weights",
    "module_text",
    "parse",
    "program_of",
    "read_program",
    "save_mlir",
    "used_weights",
    "weight_types",
    "weights_file",
    "without_weights",
]
