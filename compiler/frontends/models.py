"""Find the program that a name stands for: a file or a zoo model."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from xdsl.dialects.builtin import TensorType

from ...dialects.errors import UserError, did_you_mean
from ...dialects.files import similar_name
from ...dialects.program import Program, where
from ...dialects.shape_guards import symbols_of
from ...dialects.types import element_count, is_static
from ...dialects.weights import Weights
from .program_file import program_of, read_program
from .source import SourceText
from .symbolic_program import with_shapes

# In the place of a file: standard input.
STDIN = "-"

# A process cannot address more bytes.
MOST_ELEMENTS = 1 << 47

Shapes = Mapping[str, Sequence[int]]


def load(
    path_or_name: str | Path, shapes: Shapes | None = None, batch: int = 1, seed: int = 0
) -> Program:
    """Load a program: an `.onnx`, `.mlir` or (from torch.export) `.pt2` file, or `zoo:NAME`.

    An `.mlir` or `.stablehlo` file that has ops of StableHLO, as jax.export writes it, is imported.
    `-` is standard input: IR text, whose weights are looked for in the working folder, or ONNX.

    An ONNX model whose shapes depend on what it is given (dims without a number that `shapes` does
    not bind, sizes that are inputs) is a `DynamicProgram`. `compile` takes it; what needs fixed
    shapes raises the error that names what to bind.

    Args:
        path_or_name: the weights of an `.mlir` are in the file that it names, if that exists.
        shapes: shapes of an ONNX model's inputs by name, or the numbers of its symbolic dims, each
            as a sequence of one.
        batch: batch size of a zoo model.
        seed: seed of a zoo model's weights.

    Raises:
        UserError: there is no such file or model, or it cannot be read.
    """
    if not isinstance(path_or_name, str | os.PathLike):  # pyright: ignore
        hint = "import_onnx of isoform.lowering.onnx_to_graph takes a ModelProto"
        found = type(path_or_name).__name__
        raise UserError("a model is a path or zoo:NAME", found=found, hint=hint)
    name = str(path_or_name)
    if name.startswith("zoo:"):
        return _zoo(name.removeprefix("zoo:"), shapes, batch, seed)
    if batch != 1:
        hint = "--shape binds the dims of a file"
        raise UserError("only models of the zoo have a batch size", where=name, hint=hint)
    if name == STDIN:
        return _stdin(shapes or {})
    path = Path(path_or_name)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        hint = f"did you mean 'zoo:{name}'?" if name in _zoo_names() else None
        raise UserError(
            "a model is FILE.onnx, FILE.mlir, FILE.pt2 or zoo:NAME", where=name or "''", hint=hint
        )
    if not path.exists():
        text = "the link leads nowhere" if path.is_symlink() else "no such file"
        raise UserError(text, where=name, hint=similar_name(path))
    program = reader(path, shapes or {})
    if not program.is_dynamic:
        _check_sizes(program)
    return program


def _check_sizes(program: Program) -> None:
    """Refuse tensors that no machine can hold. Raises UserError."""
    for op in program.module.walk():
        for value in (*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)):
            type_ = value.type
            if (
                isinstance(type_, TensorType)
                and is_static(type_)
                and element_count(type_) > MOST_ELEMENTS
            ):
                text = f"no machine can hold {type_}"
                raise UserError(text, where=f"{program.source}: {where(op)}")


def load_static(
    path_or_name: str | Path, shapes: Shapes | None = None, batch: int = 1, seed: int = 0
) -> Program:
    """As `load`, for what needs fixed shapes.

    Raises:
        UserError: as `load`; a dim is not bound (the hint is the flag to type).
    """
    found = load(path_or_name, shapes, batch, seed)
    require_static(found)
    return found


def require_static(program: Program) -> None:
    """Raise the error of a program with symbolic dims, which names the flags that bind them."""
    if program.is_dynamic:
        _ = program.module


def _stdin(shapes: Shapes) -> Program:
    """The program on standard input: IR text if it is text, otherwise ONNX."""
    data = sys.stdin.buffer.read()
    if not data:
        raise UserError("nothing is there", where="stdin")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return _with_shapes(program_of(SourceText("stdin", text), Path("stdin")), shapes)
    with tempfile.TemporaryDirectory(prefix="isoform-") as folder:
        path = Path(folder) / "stdin.onnx"
        path.write_bytes(data)
        program = _onnx(path, shapes)
        program.weights = Weights(dict(program.weights.items()))  # the file is about to go
    program.source = "stdin"
    return program


def _onnx(path: Path, shapes: Shapes) -> Program:
    from ...lowering.onnx_to_graph import load_dynamic, load_model

    return load_dynamic(load_model(path), shapes)


def _mlir(path: Path, shapes: Shapes) -> Program:
    return _with_shapes(read_program(path), shapes)


def _with_shapes(program: Program, shapes: Shapes) -> Program:
    if symbols_of(program.main):
        return with_shapes(program, shapes)
    for name, dims in shapes.items():
        _check_shape(program, name, dims)
    return program


def _exported(path: Path, shapes: Shapes) -> Program:
    if not has_torch():
        hint = "pip install 'isoform[torch]'"
        raise UserError(
            "reading it needs torch, which is not installed", where=str(path), hint=hint
        )
    from ..torch_backend.import_exported import load_exported

    program = load_exported(path)
    for name, dims in shapes.items() if not program.is_dynamic else ():
        _check_shape(program, name, dims)
    return program


def has_torch() -> bool:
    """Whether torch is installed; a folder of this name is none."""
    spec = find_spec("torch")
    return spec is not None and spec.origin is not None


_READERS: dict[str, Callable[[Path, Shapes], Program]] = {
    ".onnx": _onnx,
    ".mlir": _mlir,
    ".stablehlo": _mlir,
    ".pt2": _exported,
}


def _zoo_names() -> list[str]:
    from ..zoo import MODELS

    return [model.name for model in MODELS]


def _zoo(name: str, shapes: Shapes | None, batch: int, seed: int) -> Program:
    from .. import zoo

    program = zoo.build(name, batch, seed)
    for key, dims in (shapes or {}).items():
        _check_shape(program, key, dims)
    return program


def _check_shape(program: Program, name: str, dims: Sequence[int]) -> None:
    """Refuse other shapes for a static program."""
    known = program.inputs
    if name not in known:
        raise UserError(
            f"there is no input '{name}'", where="--shape", hint=did_you_mean(name, known)
        )
    if tuple(dims) != known[name].get_shape():
        raise UserError(
            f"input '{name}' has a fixed shape",
            where="--shape",
            expected=list(known[name].get_shape()),
            found=list(dims),
        )
