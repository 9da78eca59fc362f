"""The file given to other runtimes: the user's own, a library's export, or isoform's export.

An `.onnx` runs unchanged; each runtime binds its dynamic dims to the sizes that isoform uses. A
zoo model that torchvision or transformers has is their export with the same weights
(zoo/originals.py). Only other programs are exported by isoform, and the result says so.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...lowering.onnx_to_graph.loading import load_model
from ...lowering.onnx_to_graph.shape_binding import declared_dims
from ..zoo.originals import Original, original_of, write_original

USERS_FILE = "the file itself"
EXPORTED = "exported by isoform"


@dataclass(frozen=True)
class PeerModel:
    """A model file, its origin, and the program that isoform makes of it.

    Attributes:
        original: the library that has the model, for runtimes that take no file.
    """

    path: Path
    label: str
    program: Program
    original: Original | None = None

    def with_file(self, path: Path) -> PeerModel:
        """Another file with the same inputs and outputs, run in its place."""
        if not path.is_file():
            raise UserError("no such file", where=str(path))
        return PeerModel(path, f"{path.name}, {USERS_FILE}", self.program)

    @cached_property
    def graph(self) -> onnx.GraphProto:
        """The file's declarations, without data stored beside it. Raises UserError."""
        try:
            return load_model(self.path).proto.graph
        except UserError as error:
            raise UserError("this is not an ONNX model", where=str(self.path)) from error

    @cached_property
    def named_dim_sizes(self) -> dict[str, int]:
        """The size that isoform uses for each named dim of the inputs."""
        sizes_by_name: dict[str, int] = {}
        for entry in self.graph.input:
            type_ = self.program.inputs.get(entry.name)
            sizes = () if type_ is None else type_.get_shape()
            for dim, size in zip(declared_dims(entry) or (), sizes, strict=False):
                if isinstance(dim, str):
                    sizes_by_name[dim] = size
        return sizes_by_name

    @cached_property
    def has_dims_without_size(self) -> bool:
        """Whether the file leaves the size of some input dim open: named or absent."""
        return any(
            not dim.HasField("dim_value")
            for entry in self.graph.input
            for dim in entry.type.tensor_type.shape.dim
        )


@contextmanager
def peer_model(program: Program, name: str | Path | None = None) -> Generator[PeerModel]:
    """The model that peers run for a program, whose files live as long as the context.

    Args:
        name: what the program was loaded from, as the user named it.

    Raises:
        UserError: the program is below the graph level, or a file cannot be written.
    """
    path = None if name is None else Path(name)
    if path is not None and path.suffix.lower() == ".onnx" and path.exists():
        yield PeerModel(path, f"{path.name}, {USERS_FILE}", program)
        return
    with TemporaryDirectory(prefix="isoform-") as folder:
        written = Path(folder) / "model.onnx"
        original = original_of(program)
        if original is not None:
            write_original(program, written)
            yield PeerModel(written, original.label, program, original)
            return
        from ...lowering.graph_to_onnx.exporter import export_onnx

        export_onnx(program, written)
        yield PeerModel(written, EXPORTED, program)


__all__ = ["EXPORTED", "USERS_FILE", "PeerModel", "peer_model"]
