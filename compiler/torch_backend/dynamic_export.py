"""An exported program with symbols for sizes: a program with symbols, or one for each shape."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from ...dialects.errors import UserError, one_line, say
from ...dialects.extent_text import read_extent
from ...dialects.extents import Dims, ShapeEnv, extent
from ...dialects.program import Program
from ...dialects.shape_guards import shape_env, write_guards_and_sizes
from ...dialects.types import Array, to_numpy
from ...dialects.weights import Weights
from ...lowering.aten_to_graph.aten import DType
from ..targets.value_info import ValueInfo
from .exported import Exported
from .symbols import Symbols

Step = Callable[[Program], Program]


# It is converted with symbols at most so often: each time, guards may allow one size only.
MOST_SYMBOLIC = 4


class DynamicExport(Program):
    """It is converted with torch's symbols as ours, and where that fails for the shapes that come.

    Whatever needs the program itself (its module) raises an error.
    """

    is_dynamic = True

    def __init__(self, exported: Exported, steps: tuple[Step, ...] = ()) -> None:
        self.exported = exported
        self.steps = steps
        self.weights = Weights()
        self.source = exported.source
        self._symbolic: list[Program] = []
        self._needs_numbers = False

    def __getattr__(self, name: str) -> NoReturn:
        if name == "module":
            raise UserError(
                "its sizes are symbols", where=self.source, hint="export it for fixed shapes"
            )
        raise AttributeError(f"'DynamicExport' has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"DynamicExport({self.source}: {', '.join(map(str, self.value_infos()[0]))})"

    def then(self, step: Step) -> DynamicExport:
        """The same, with one more step done with each program that `bind` makes."""
        return DynamicExport(self.exported, (*self.steps, step))

    def value_infos(self) -> tuple[tuple[ValueInfo, ...], tuple[ValueInfo, ...]]:
        """Inputs and outputs; symbols by their names."""
        nodes = {n.name: n for n in self.exported.graph.nodes}
        specs = self.exported.exported.graph_signature.output_specs
        results = [
            (label, nodes[e.arg.name]) for label, e in zip(self.output_names, specs, strict=True)
        ]
        inputs = [(label, nodes[place]) for place, label in self.exported.inputs.items()]
        return _infos(inputs), _infos(results)

    @property
    def input_names(self) -> list[str]:
        return list(self.exported.inputs.values())

    @property
    def output_names(self) -> list[str]:
        return self.exported.outputs

    def key(self, arrays: Mapping[str, Array]) -> Hashable:
        """The arrays' shapes."""
        return tuple((name, arrays[name].shape) for name in sorted(arrays))

    def bind(self, arrays: Mapping[str, Array]) -> Program:
        """The program for arrays of these shapes.

        Raises:
            UserError: sizes are not what the export allows; also what a conversion raises.
        """
        program = self.exported.program(*self._typed({n: a.shape for n, a in arrays.items()}))
        return self.finished(program)

    def symbolic_dims(self) -> dict[str, Dims]:
        """The dims of each input, with torch's symbols."""
        env = ShapeEnv()
        return {
            info.name: tuple(
                d if isinstance(d, int) else extent(read_extent(str(d)), env)
                for d in info.shape or ()
            )
            for info in self.value_infos()[0]
        }

    def with_symbols(self, examples: Mapping[str, tuple[int, ...]]) -> Program | None:
        """The program with symbols for these shapes of inputs and others; None if there is none.

        Raises:
            UserError: sizes are not what the export allows.
        """
        sizes = {str(name): n for name, n in self._sizes(examples).items()}
        for program in self._symbolic:
            if shape_env(program.main).broken(sizes) is None:
                return program
        if self._needs_numbers or len(self._symbolic) >= MOST_SYMBOLIC:
            return None
        symbols = Symbols(sizes, self.exported.exported.range_constraints)
        try:
            with symbols.env.active():
                found = self.exported.program(self.exported.graph, {}, symbols)
        except (UserError, TypeError, ValueError) as error:  # code that takes numbers alone
            say(f"{self.source or 'forward'}: converted for each shape ({one_line(str(error))})")
            self._needs_numbers = True
            return None
        write_guards_and_sizes(found.main, symbols.env)
        self._symbolic.append(found)
        return found

    def finished(self, program: Program) -> Program:
        """A program made of one with symbols, after the steps."""
        for step in self.steps:
            program = step(program)
        return program

    def _sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[Any, int]:
        """The number of each symbol."""
        sizes: dict[Any, int] = {}
        for node in self.exported.graph.nodes:
            label = self.exported.inputs.get(node.name) if node.op == "placeholder" else None
            fake = node.meta.get("val")
            if label is not None and isinstance(fake, torch.Tensor):
                self._check(label, fake.shape, shapes[label], sizes)
        return sizes

    def _typed(self, shapes: Mapping[str, Sequence[int]]) -> tuple[Any, dict[str, str]]:
        """A copy of the graph with the types that it has for these shapes; names of its nodes."""
        module = self.exported.exported.graph_module
        graph = torch.fx.Graph()
        copies: dict[Any, Any] = {}
        graph.output(graph.graph_copy(module.graph, copies))
        copied = torch.fx.GraphModule(module, graph)
        given: list[Any] = []
        sizes: dict[Any, int] = {}
        for node in module.graph.nodes:
            if node.op != "placeholder":
                continue
            if node.name in self.exported.stored:
                given.append(self.exported.stored[node.name][1].detach())
                continue
            label = self.exported.inputs.get(node.name)
            fake = node.meta.get("val")
            if label is None or not isinstance(fake, torch.Tensor):
                given.append(fake)
                continue
            self._check(label, fake.shape, shapes[label], sizes)
            given.append(torch.empty(tuple(shapes[label]), dtype=fake.dtype))
        try:
            FakeTensorProp(copied, FakeTensorMode(allow_non_fake_inputs=True)).propagate(*given)
        except (RuntimeError, ValueError) as error:
            message = one_line(str(error))[:200]
            raise UserError(f"torch refuses these sizes: {message}", where=self.source) from error
        return graph, {old.name: new.name for old, new in copies.items()}

    def _check(
        self, label: str, declared: Any, found: Sequence[int], sizes: dict[Any, int]
    ) -> None:
        """Compare a shape with the symbols of the export; `sizes` are the numbers known."""
        for k, (dim, size) in enumerate(zip(declared, found, strict=True)):
            where = f"input '{label}', dim {k}"
            if isinstance(dim, int):
                known = dim
            else:
                self._solve(dim.node.expr, size, sizes, where)
                known = int(dim.node.expr.subs(sizes))
            if known != size:
                raise UserError("another size is needed", where=where, expected=known, found=size)

    def _solve(self, expression: Any, size: int, sizes: dict[Any, int], where: str) -> None:
        """Find the symbol of `n` or `2 * n` from a size, if it is not known."""
        unknown = [symbol for symbol in expression.free_symbols if symbol not in sizes]
        if not unknown:
            return
        roots = sympy.solve(expression.subs(sizes) - size, unknown[0]) if len(unknown) == 1 else []
        if len(roots) != 1 or not roots[0].is_Integer:
            raise UserError("no such size", where=where, expected=expression, found=size)
        allowed = self.exported.exported.range_constraints.get(unknown[0])
        if allowed is not None and not allowed.lower <= roots[0] <= allowed.upper:
            span = f"{unknown[0]} from {allowed.lower} to {allowed.upper}"
            raise UserError("a size is out of range", where=where, expected=span, found=roots[0])
        sizes[unknown[0]] = int(roots[0])


def _infos(values: Sequence[tuple[str, Any]]) -> tuple[ValueInfo, ...]:
    found: list[ValueInfo] = []
    for label, node in values:
        fake = node.meta["val"]
        element = DType(str(fake.dtype).removeprefix("torch.")).element
        dims = tuple(n if isinstance(n, int) else str(n) for n in fake.shape)
        found.append(ValueInfo(label, to_numpy(element), dims))
    return tuple(found)
