"""One part of an FX graph that isoform runs: a program, and how tensors go in and out."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from ...dialects.builder import GraphBuilder
from ...dialects.program import Program, pipeline_of
from ...lowering.aten_to_graph.convert import convert_node
from ..frontends.program_file import save_mlir
from ..reports.certificate import CertifiedWork, NamedModel, certify, lasting_rewrites
from ..search.optimizer import Optimized, improve, optimize
from ..targets.cpu import compile_cpu
from ..targets.cpu_options import CpuOptions
from ..targets.session import Session
from .arrays import TensorPort, as_array
from .fx_graph import node_of, spec_of
from .layouts import Layout
from .options import BackendOptions

_numbers = itertools.count()


class Part(torch.nn.Module):
    """A compiled part: called with the tensors of its graph's placeholders."""

    def __init__(self, graph: Any, constants: Sequence[Any], options: BackendOptions) -> None:
        """Compile `graph`; `constants` has a tensor for each placeholder that is a weight."""
        super().__init__()
        self.ins: list[tuple[int, TensorPort]] = []
        self.outs: list[TensorPort] = []
        self.single = False
        self.program = self._converted(graph, constants)
        self.session = _compiled(self.program, options)

    def forward(self, *tensors: Any) -> Any:
        """Run the program."""
        feeds = {port.name: port.array(tensors[k]) for k, port in self.ins}
        found = self.session.runner.run(feeds)
        results = [port.tensor(found[port.name]) for port in self.outs]
        return results[0] if self.single else tuple(results)

    def _converted(self, graph: Any, constants: Sequence[Any]) -> Program:
        build, values = GraphBuilder(), dict[str, Any]()
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        for k, (node, constant) in enumerate(zip(placeholders, constants, strict=True)):
            if constant is not None:
                values[node.name] = _weight(build, node.name, constant)
            elif spec_of(node.meta.get("val")) is not None:
                values[node.name] = self._input(build, k, node)
        for node in graph.nodes:
            if node.op == "call_function":
                with build.at(node.name):
                    values[node.name] = convert_node(build, node_of(node), values)
        (output,) = [n for n in graph.nodes if n.op == "output"]
        results = output.args[0]
        self.single = not isinstance(results, (tuple, list))
        for k, node in enumerate([results] if self.single else results):
            self._output(build, f"output{k}", node, values[node.name])
        return build.build("torch.compile")

    def _input(self, build: GraphBuilder, k: int, node: Any) -> Any:
        fake = node.meta["val"]
        spec, strides = spec_of(fake), fake.stride()
        assert spec is not None
        layout = Layout.of(spec.shape, strides) or Layout.contiguous(spec.shape)
        self.ins.append((k, TensorPort.of(node.name, layout, strides)))
        block = build.input(node.name, layout.block, spec.type.element_type)
        return layout.unpack(build, block)

    def _output(self, build: GraphBuilder, name: str, node: Any, value: Any) -> None:
        fake = node.meta["val"]
        layout = Layout.of(fake.shape, fake.stride())
        if layout is None or layout.is_broadcast:
            layout = Layout.contiguous(tuple(fake.shape))
        self.outs.append(TensorPort.of(name, layout, fake.stride()))
        build.output(name, layout.pack(build, value))


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
