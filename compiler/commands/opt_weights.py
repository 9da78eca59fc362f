"""The weights of `isoform-opt`: passes read those that a module names, and `-o` writes them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from ...dialects.context import with_weights
from ...dialects.errors import warn
from ...dialects.weights import Weights, load_safetensors, save_safetensors
from ..frontends.program_file import WEIGHTS, weight_types


class ModuleWeights:
    """The weights of one module, and the file they are in.

    Args:
        arguments: `weights` is a file that stands for the one that the module names; `input_file`
            is what the module's name is relative to.

    Attributes:
        file: the file that was read; None where it is not at hand.

    Raises:
        UserError: the file of `--weights` is missing, or one is broken.
    """

    def __init__(self, module: ModuleOp, arguments: Namespace) -> None:
        given: str | None = arguments.weights
        self.is_given = given is not None
        self.file = _named(module, arguments.input_file) if given is None else Path(given)
        self.weights = Weights() if self.file is None else load_safetensors(self.file)
        self._read = frozenset(self.weights)

    def context(self, context: Context) -> Context:
        """The context of the passes."""
        return context if self.file is None else with_weights(context, self.weights)

    def store(self, module: ModuleOp, output: str | None) -> None:
        """Make the module name a file that holds its weights, beside the output.

        The file that was read stays the module's where it stands there too and lacks nothing;
        otherwise OUT.safetensors is written. To standard output nothing is written.

        Raises:
            UserError: the file cannot be written.
        """
        used = weight_types(module)
        if self.file is None or not used:
            return
        made = [name for name in used if name in self.weights and name not in self._read]
        if output is None or output == "-":
            if made:
                text = f"{len(made)} weights that passes made are not in {self.file}"
                warn(f"{text}: -o OUT.mlir writes them")
            return
        if any(name not in self.weights for name in used):
            return
        path = Path(output)
        if not made and not self.is_given and _folder(path) == _folder(self.file):
            module.attributes[WEIGHTS] = StringAttr(self.file.name)
            return
        side = path.with_suffix(".safetensors")
        save_safetensors(side, self.weights, used)
        module.attributes[WEIGHTS] = StringAttr(side.name)


def _folder(path: Path) -> Path:
    return path.resolve().parent


def _named(module: ModuleOp, input_file: str | None) -> Path | None:
    """The file that a module names, in the folder of the input or below, if it exists."""
    name = module.attributes.get(WEIGHTS)
    if not isinstance(name, StringAttr):
        return None
    folder = Path() if input_file in (None, "-") else Path(str(input_file)).parent
    file = folder / name.data
    inside = file.resolve().is_relative_to(folder.resolve())
    return file if inside and file.is_file() else None
