"""A program before and after `optimize` as graphs of nodes, at each level: a report's `levels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from ...dialects.program import Program, return_of
from ...lowering.targets import target_named
from ...passes.cost.costs import Costs, load_costs
from ..api import Optimized
from ..pipelines import BUFFERS, CPU_BUFFERS
from ..targets.cpu_options import CpuOptions
from ..targets.levels import LEVELS, level_of, lower_to, run_passes, tuned
from .changes import paired
from .printed_ops import PrintedOp, printed_ops

SIDES = ("before", "after")
# Nodes by position of the op; inputs by -1 - position, outputs by name.
Graph: TypeAlias = "dict[int | str, dict[str, Any]]"


def levels_of(better: Optimized, options: CpuOptions | None = None) -> dict[str, dict[str, Any]]:
    """The graphs of a result of `optimize` and of the program it was made from."""
    assert better.original is not None
    costs = load_costs(target_named(better.report["target"]))
    return levels(better.original, better, costs, options)


def levels(
    before: Program, after: Program, costs: Costs, options: CpuOptions | None = None
) -> dict[str, dict[str, Any]]:
    """Nodes of both programs at each level; None where a program is below that level.

    Args:
        before: lowered with the kernels that are chosen without measuring.
        options: how the kernels of `after` are chosen by measuring; None where they are not.
    """
    found: dict[str, dict[str, Any]] = {}
    for level in LEVELS:
        programs = (_at(before, level, costs), _at(after, level, costs, options))
        ops = [None if p is None else printed_ops(p, costs) for p in programs]
        graphs = [
            None if p is None or printed is None else _graph(p, printed)
            for p, printed in zip(programs, ops, strict=True)
        ]
        if ops[0] is not None and ops[1] is not None:
            _pair(graphs, paired(ops[0], ops[1]))
        found[level] = {
            side: None if graph is None else {"nodes": list(graph.values())}
            for side, graph in zip(SIDES, graphs, strict=True)
        }
    return found


def _pair(graphs: Sequence[Graph | None], pairs: Mapping[int, int]) -> None:
    """Note on each node the position of the one that is the same on the other side."""
    first, second = (graph or {} for graph in graphs)
    places = [{key: k for k, key in enumerate(graph)} for graph in (first, second)]
    ends = {key: key for key in first if isinstance(key, str) and key in second}
    inputs = {key: key for key in first if isinstance(key, int) and key < 0 and key in second}
    for here, there in {**pairs, **ends, **inputs}.items():
        if here in first and there in second:
            first[here]["pair"], second[there]["pair"] = places[1][there], places[0][here]


def _at(
    program: Program, level: str, costs: Costs, options: CpuOptions | None = None
) -> Program | None:
    """The program at a level; None if it is below."""
    if LEVELS.index(level_of(program)) > LEVELS.index(level):
        return None
    target = costs.target.name
    if level != "kernel":
        return lower_to(program, level, target)
    low = tuned(program, options) if options is not None else lower_to(program, level, target)
    low = low.clone() if low is program else low
    run_passes(low, ",".join(CPU_BUFFERS if target == "cpu" else BUFFERS), verify_input=False)
    return low


def _graph(program: Program, ops: Sequence[PrintedOp]) -> Graph:
    """The ops that are no weights as nodes, between inputs and outputs; `reads` are positions."""
    at = {-1 - k: k for k in range(len(program.inputs))}
    nodes: Graph = {
        -1 - k: {"op": "input", "place": name, "ir": f"%{name} : {type_}", "when": "free"}
        for k, (name, type_) in enumerate(program.inputs.items())
    }
    for k, op in enumerate(ops):
        if op.when == "source":
            continue
        at[k] = len(nodes)
        nodes[k] = {
            "op": op.name,
            "place": op.place,
            "ir": op.text,
            "when": op.when,
            "seconds": op.seconds,
            "shapes": [list(shape) for shape in op.shapes],
            "reads": [at[read] for read in op.reads if read in at],
            "rules": list(op.rules),
        }
    return nodes | _outputs(program, at)


def _outputs(program: Program, at: Mapping[int, int]) -> Graph:
    block = program.main.body.block
    position: dict[SSAValue, int] = {
        result: k for k, op in enumerate(block.ops) for result in op.results
    }
    position |= {value: -1 - k for k, value in enumerate(block.args)}
    values = return_of(program.module).arguments
    return {
        name: {
            "op": "output",
            "place": name,
            "ir": f"{name} : {type_}",
            "when": "free",
            "reads": [at[position[value]]] if position[value] in at else [],
        }
        for (name, type_), value in zip(program.outputs.items(), values, strict=True)
    }
