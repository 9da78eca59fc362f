"""One part of an FX graph that isoform runs: a program, and how tensors go in and out."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from xdsl.dialects.builtin import TensorType

from ...dialects.builder import GraphBuilder
from ...dialects.dims_attr import DimsAttr
from ...dialects.errors import UserError
from ...dialects.extents import ShapeEnv
from ...dialects.program import Program, pipeline_of
from ...dialects.shape_guards import symbols_of, write_guards_and_sizes
from ...dialects.types import Array
from ...lowering.aten_to_graph.convert import convert_node
from ...lowering.kernel_to_cpu.runtime.execute import Execution
from ..frontends.program_file import save_mlir
from ..frontends.symbolic_program import SymbolicProgram
from ..reports.certificate import CertifiedWork, NamedModel, certify, lasting_rewrites
from ..search.optimizer import Optimized, improve, optimize
from ..targets.cpu import compile_cpu
from ..targets.cpu_options import CpuOptions
from ..targets.dynamic_session import DynamicSession
from ..targets.session import Session
from .arrays import SymbolicPort, TensorPort, as_array
from .fx_graph import node_of, spec_of
from .layouts import Layout
from .options import BackendOptions
from .symbols import Symbols

Port = TensorPort | SymbolicPort
Run = Callable[[Sequence[tuple[Port, Any]]], Mapping[str, Array]]
_numbers = itertools.count()


class Part(torch.nn.Module):
    """A compiled part: called with the tensors of its graph's placeholders."""

    def __init__(
        self,
        graph: Any,
        constants: Sequence[Any],
        options: BackendOptions,
        symbols: Symbols | None = None,
    ) -> None:
        """Compile `graph`; `constants` has a tensor for each placeholder that is a weight.

        Args:
            symbols: of sizes that are no numbers; it is then compiled when it is called.

        Raises:
            UserError: it cannot be converted or compiled.
        """
        super().__init__()
        self.ins: list[tuple[int, Port]] = []
        self.outs: list[Port] = []
        self.single = False
        self.symbols = symbols
        self.program = self._converted(graph, constants)
        if symbols is None:
            self.session: Session = _compiled(self.program, options)
            runner: Any = self.session.runner
            self.execution: Execution = runner.execution
            order = [one.name for one in self.execution.inputs]
            self.ins.sort(key=lambda one: order.index(one[1].name))
            self.run: Run = self._run_in_place
        else:
            self.session = _by_size(self.program, symbols, options)
            self.run = self._run_by_size

    def forward(self, *tensors: Any) -> Any:
        """Run the program."""
        found = self.run([(port, port.placed(tensors[k])) for k, port in self.ins])
        results = [port.tensor(found[port.name]) for port in self.outs]
        return results[0] if self.single else tuple(results)

    def _run_in_place(self, inputs: Sequence[tuple[Port, Any]]) -> Mapping[str, Array]:
        """Run where the tensors lie; an array of one costs more than its address."""
        addresses = [tensor.data_ptr() for _, tensor in inputs]
        return self.execution.run_at([partial(port.array, t) for port, t in inputs], addresses)

    def _run_by_size(self, inputs: Sequence[tuple[Port, Any]]) -> Mapping[str, Array]:
        feeds = {port.name: port.array(tensor) for port, tensor in inputs}
        found = self.session.run(None, feeds)
        return dict(zip(self.program.output_names, found, strict=True))

    def _converted(self, graph: Any, constants: Sequence[Any]) -> Program:
        build, values = GraphBuilder(), dict[str, Any]()
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        for k, (node, constant) in enumerate(zip(placeholders, constants, strict=True)):
            if constant is not None:
                values[node.name] = _weight(build, node.name, constant)
            elif spec_of(node.meta.get("val"), self.symbols) is not None:
                values[node.name] = self._input(build, k, node)
        for node in graph.nodes:
            if node.op == "call_function":
                with build.at(node.name):
                    values[node.name] = convert_node(build, node_of(node, self.symbols), values)
        (output,) = [n for n in graph.nodes if n.op == "output"]
        results = output.args[0]
        self.single = not isinstance(results, (tuple, list))
        for k, node in enumerate([results] if self.single else results):
            self._output(build, f"output{k}", node, values[node.name])
        return build.build("torch.compile")

    def _input(self, build: GraphBuilder, k: int, node: Any) -> Any:
        fake = node.meta["val"]
        spec, strides = spec_of(fake, self.symbols), fake.stride()
        assert spec is not None
        order = self._symbolic_order(fake)
        if order is not None:
            self.ins.append((k, SymbolicPort(node.name, order)))
            shape = [spec.shape[d] for d in order]
            block = build.input(node.name, shape, spec.type.element_type)
            back = [order.index(d) for d in range(len(order))]
            return block if back == sorted(back) else build.op("transpose", block, perm=back)
        layout = Layout.of(spec.shape, strides) or Layout.contiguous(spec.shape)
        self.ins.append((k, TensorPort.of(node.name, layout, fake)))
        block = build.input(node.name, layout.block, spec.type.element_type)
        return layout.unpack(build, block)

    def _output(self, build: GraphBuilder, name: str, node: Any, value: Any) -> None:
        fake = node.meta["val"]
        order = self._symbolic_order(fake)
        if order is not None:
            self.outs.append(SymbolicPort(name, order))
            moved = list(order) != sorted(order)
            build.output(name, build.op("transpose", value, perm=list(order)) if moved else value)
            return
        layout = Layout.of(fake.shape, fake.stride())
        if layout is None or layout.is_broadcast:
            layout = Layout.contiguous(tuple(fake.shape))
        self.outs.append(TensorPort.of(name, layout, fake))
        build.output(name, layout.pack(build, value))

    def _symbolic_order(self, fake: Any) -> tuple[int, ...] | None:
        """The dims as they lie in memory, of a tensor with sizes that are no numbers."""
        symbols, strides = self.symbols, fake.stride()
        if symbols is None or all(isinstance(n, int) for n in (*fake.shape, *strides)):
            return None
        far = [symbols.example(n) for n in strides]
        return tuple(sorted(range(len(far)), key=lambda k: -far[k]))


def _weight(build: GraphBuilder, name: str, tensor: Any) -> Any:
    spec = spec_of(tensor)
    assert spec is not None
    held = tensor.detach()
    source = lambda: as_array(held.contiguous())  # noqa: E731
    return build.weight(name, source, spec.shape, spec.type.element_type)


def _compiled(program: Program, options: BackendOptions) -> Session:
    """The program, rewritten (or searched, with a budget) and compiled for torch's threads."""
    chosen = CpuOptions(torch.get_num_threads(), options.effort, options.tolerance)
    better: Program
    if options.budget:
        how = (chosen.threads, chosen.effort, chosen.tolerance)
        better = optimize(program, "cpu", "optimize", options.budget, 0, None, *how)
        if options.certificate is not None:
            _write(options, program, better)
    else:
        better = improve(program)
    return Session(better, compile_cpu(better, chosen))


def _by_size(program: Program, symbols: Symbols, options: BackendOptions) -> Session:
    """What runs a program with symbols: compiled for a size, or for many (docs/dynamic-shapes.md).

    Raises:
        UserError: a size is none of an input's.
    """
    known = set(symbols_of(program.main))
    if any(s not in known for name in _sizes_in(program) for s in name.symbols()):
        raise UserError("a size that is no input's")
    guards = {g: place for g, place in symbols.env.guards.items() if known.issuperset(g.symbols)}
    sizes = {name: n for name, n in symbols.env.sizes.items() if name in known}
    write_guards_and_sizes(program.main, ShapeEnv(sizes, guards))
    found = SymbolicProgram(program, (improve,))
    chosen = CpuOptions(torch.get_num_threads(), options.effort, options.tolerance)
    return DynamicSession(found, lambda one: Session(one, compile_cpu(one, chosen)))


def _sizes_in(program: Program) -> Iterator[DimsAttr]:
    for op in program.main.walk():
        for result in op.results:
            if isinstance(result.type, TensorType) and isinstance(result.type.encoding, DimsAttr):
                yield result.type.encoding


def _write(options: BackendOptions, program: Program, better: Optimized) -> None:
    """Write source, result and certificate: `isoform verify --check part0.json` checks it again."""
    assert options.certificate is not None
    options.certificate.mkdir(parents=True, exist_ok=True)
    place = options.certificate / f"part{next(_numbers)}"
    source, result = place.with_suffix(".source.mlir"), place.with_suffix(".mlir")
    save_mlir(program, source)
    save_mlir(better, result)
    rewrites = lasting_rewrites(better.report)
    work = CertifiedWork(pipeline_of(better.module), rewrites, better.report["seed"])
    certify(NamedModel(str(source)), result, work, place.with_suffix(".json"))
