"""Import a torch module, or name the line of it that no program can hold.

`torch.export` raises where Python asks for a tensor's value. Its graph is converted by the table of
ATen ops; a module with other ops, or a scripted one, goes through torch's ONNX exporter. That one
runs the module once and records what it did: it would keep a branch on data silently, so
`torch.export` has the first word.
"""

from __future__ import annotations

import inspect
import logging
import re
import tempfile
import traceback
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ...dialects.errors import UserError, one_line, warn
from ...dialects.program import Program
from ...dialects.weights import Weights
from ...lowering.aten_to_graph.aten import UnsupportedAten
from .models import load

# Ops in an exported graph that show where the module asked for a tensor's value.
_CHECKS = ("_assert_async", "_assert_scalar")
# Two runs that differ by more than this, relatively, count as different.
_CLOSE = 1e-3


def import_module(module: Any, args: Any, dynamic_shapes: Any = None) -> Program:
    """Import `module`, in evaluation mode and for the shapes of `args`.

    Args:
        dynamic_shapes: as torch.export takes it; the program is then a `DynamicExport`.

    Inputs are called as `forward` calls them (`d_key`, `t_0` inside a dict or a tuple), outputs by
    their keys, `output`, or `output_0` and so on.

    Raises:
        UserError: torch is not installed or refuses to export; the module's Python depends on a
            tensor's value (`where` is its line), changes what it is given, is random or keeps
            state; an argument is not a tensor.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError("torch is not installed", hint="pip install 'isoform[torch]'") from error
    inputs = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    name, training = type(module).__name__, module.training
    if training:
        warn("it is in training mode: exported as in evaluation mode (.eval())", name)
    module.eval()
    try:
        with torch.no_grad(), _quietly(torch):
            return _Export(torch, module, inputs, name).program(dynamic_shapes)
    except UserError:
        raise
    except Exception as error:
        message = one_line(str(error))[:300]
        location = _users_line(error, torch) or name
        raise UserError(f"torch cannot export it: {message}", where=location) from error
    finally:
        module.train(training)


@contextmanager
def _quietly(torch: Any) -> Generator[None]:
    """Silence torch's prints and logs, and keep encoders off their fused path.

    The exporter without onnxscript is deprecated, but needs only torch.
    """
    level, fast = logging.root.manager.disable, torch.backends.mha.get_fastpath_enabled()
    logging.disable(logging.CRITICAL)
    torch.backends.mha.set_fastpath_enabled(False)
    dropped = StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(dropped), redirect_stderr(dropped):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        logging.disable(level)


class _Export:
    """One export: names of inputs and outputs, and the checks before it."""

    def __init__(self, torch: Any, module: Any, inputs: tuple[Any, ...], name: str) -> None:
        self.torch, self.module, self.name = torch, module, name
        self.tree: Any = torch.utils._pytree
        self.given, self.inputs = inputs, [a for _, a in self.leaves(inputs)]
        self.scripted = isinstance(module, torch.jit.ScriptModule)  # which keeps its branches

    def leaves(self, value: Any) -> list[tuple[str, Any]]:
        """The tensors in nested tuples, lists and dicts, each with its path."""
        from ..torch_backend.exported import joined

        found, _ = self.tree.tree_flatten_with_path(value)
        return [(joined(path), leaf) for path, leaf in found if leaf is not None]

    def program(self, dynamic_shapes: Any) -> Program:
        """The program by the table of ATen ops, or else through ONNX."""
        from ..torch_backend.exported import output_names
        from ..torch_backend.import_exported import program_of

        names = self.input_names()
        found = None if self.scripted else self.exported(dynamic_shapes)
        if found is not None:
            self.check(found)
        outputs = self.leaves(self.twice_the_same(names))
        labels = output_names([key for key, _ in outputs], names)
        if found is None:
            return self.through_onnx(names, labels)
        try:
            return program_of(found, names, labels, self.name)
        except UnsupportedAten as error:
            if dynamic_shapes is not None:
                raise
            try:
                return self.through_onnx(names, labels)
            except Exception as failed:
                raise error from failed

    def through_onnx(self, names: Sequence[str], labels: Sequence[str]) -> Program:
        """The program of the file that torch's ONNX exporter writes."""
        with tempfile.TemporaryDirectory(prefix="isoform-") as folder:
            path = Path(folder) / "module.onnx"
            self.torch.onnx.export(
                self.flat(), tuple(self.inputs), str(path), opset_version=17, dynamo=False,
                input_names=list(names), output_names=list(labels),
            )  # fmt: skip
            _complete(path, names, self.inputs)
            program = load(path)
            program.weights = Weights(dict(program.weights.items()))
        program.source = self.name
        return program

    def input_names(self) -> list[str]:
        """A name for each tensor. Raises UserError where an argument is something else."""
        from ..torch_backend.exported import distinct

        try:
            bound = inspect.signature(self.module.forward).bind(*self.given)
        except TypeError as error:
            raise UserError(f"the example inputs do not fit: {error}", where=self.name) from error
        found: list[str] = []
        for key, leaf in self.leaves(dict(bound.arguments)):
            if not isinstance(leaf, self.torch.Tensor):
                raise UserError(
                    f"argument '{key}' is not a tensor but {type(leaf).__name__}: its value would"
                    " be built in",
                    where=self.name,
                    hint="give a tensor, or keep the value in the module",
                )
            found.append(key)
        return distinct(found)

    # --- checks ---

    def exported(self, dynamic_shapes: Any) -> Any:
        """The module as torch.export sees it. Raises UserError at a line it cannot follow."""
        torch = self.torch
        try:
            return torch.export.export(
                self.module, self.given, dynamic_shapes=dynamic_shapes, strict=False
            )
        except Exception as error:
            location = _users_line(error, torch) or self.name
            if "data-dependent" not in str(error):
                message = one_line(str(error))[:300]
                raise UserError(f"torch cannot export it: {message}", where=location) from error
            raise UserError(
                "this depends on the value of a tensor: the program would keep what the example"
                " inputs decide",
                where=location,
                hint="use torch.where, or sizes in place of values",
            ) from error

    def check(self, program: Any) -> None:
        """Raise UserError where a value becomes a Python number or decides a shape or an error."""
        torch = self.torch
        symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)
        for node in program.graph.nodes:
            if node.op != "call_function":
                continue
            location = _line(node.meta.get("stack_trace"), torch) or self.name
            if any(check in str(node.target) for check in _CHECKS):
                raise UserError("an assertion about data cannot be compiled", where=location)
            values = self.tree.tree_leaves(node.meta.get("val"))
            tensors = [v for v in values if isinstance(v, torch.Tensor)]
            if any(isinstance(v, symbols) and _unbacked(v) for v in values):
                raise UserError(
                    "a tensor is made a Python number here: its value would be built in",
                    where=location,
                    hint="keep it a tensor",
                )
            if any(_unbacked(t) for t in tensors):
                raise UserError("shapes would depend on data", where=location)

    def twice_the_same(self, names: Sequence[str]) -> Any:
        """The module's results. Raises UserError where two runs differ or change their inputs."""
        copies = [self.tree.tree_map(self._copied, self.given) for _ in range(2)]
        runs = [self.module(*copy) for copy in copies]
        for name, before, (_, after) in zip(
            names, self.inputs, self.leaves(copies[0]), strict=True
        ):
            if not self.torch.equal(before, after):
                raise UserError(f"forward changes its input '{name}' in place", where=self.name)
        for (_, a), (_, b) in zip(*map(self.leaves, runs), strict=True):
            if not isinstance(a, self.torch.Tensor):
                raise UserError(f"a result is not a tensor but {type(a).__name__}", where=self.name)
            x, y = (t.detach().double().numpy() for t in (a, b))
            if not np.allclose(x, y, rtol=_CLOSE, atol=_CLOSE, equal_nan=True):
                raise UserError(
                    "two runs on the same inputs differ: it is random or keeps state",
                    where=self.name,
                )
        return runs[0]

    def _copied(self, value: Any) -> Any:
        return value.clone() if isinstance(value, self.torch.Tensor) else value

    def flat(self) -> Any:
        """The module on a flat list of tensors, giving a flat list."""
        if self.scripted:
            return self.module
        export = self

        class Flat(self.torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.module = export.module

            def forward(self, *tensors: Any) -> tuple[Any, ...]:
                left = iter(tensors)
                given = export.tree.tree_map(
                    lambda leaf: None if leaf is None else next(left), export.given
                )
                return tuple(leaf for _, leaf in export.leaves(self.module(*given)))

        return Flat().eval()


def _complete(path: Path, names: Sequence[str], tensors: Sequence[Any]) -> None:
    """Put unread inputs, which the exporter leaves out, back in their places."""
    model = onnx.load(path)
    known: Mapping[str, onnx.ValueInfoProto] = {info.name: info for info in model.graph.input}
    infos = [
        known.get(name)
        or onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(tensor.numpy().dtype), tensor.shape
        )
        for name, tensor in zip(names, tensors, strict=True)
    ]
    del model.graph.input[:]
    model.graph.input.extend(infos)
    onnx.save(model, path)


def _unbacked(value: Any) -> bool:
    """Whether a number or a shape depends on data."""
    from torch.fx.experimental.symbolic_shapes import (  # pyright: ignore[reportMissingImports]
        free_unbacked_symbols,
    )

    return bool(free_unbacked_symbols(value))


# --- locations ----------------------------------------------------------------------------------


def _users_line(error: BaseException, torch: Any) -> str | None:
    """`file:line` of the innermost frame outside torch and isoform."""
    frames = traceback.extract_tb(error.__traceback__)
    return _last(((f.filename, f.lineno) for f in frames), torch)


def _line(stack: str | None, torch: Any) -> str | None:
    """`file:line` of the innermost line of a node's stack, which only holds lines of `forward`."""
    found = re.findall(r'File "([^"]+)", line (\d+)', stack or "")
    return _last(found, torch)


def _last(lines: Any, torch: Any) -> str | None:
    ours, theirs = str(Path(__file__).parents[1]), str(Path(torch.__file__).parent)
    left = [f"{f}:{n}" for f, n in lines if not f.startswith((ours, theirs, "<"))]
    return left[-1] if left else None
