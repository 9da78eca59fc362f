"""What isoform makes of a model, and whether it runs: `isoform check`.

The table never fails on unknown ops or unbound dims. Whether the model runs is found by doing what
`run` does: import, compilation, and a run where something may still fail then.

Every node of the model is native (one graph op, or loop nests), composed (several ops), folded (a
shape computation, no op left), opaque (run by onnx.reference) or unsupported. No optimisation
crosses a node that is kept as `graph.opaque`, whether loop nests or onnx.reference run it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation

from ...dialects.control import ControlOp, YieldOp
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.graph.data import GatherOp
from ...dialects.kernel import KernelOp
from ...dialects.program import Program, where
from ...dialects.types import Array, tensor_type
from ...passes.cost.flops import bytes_of, flops_of, times_of
from ..reports.check_schema import CHECK
from ..reports.json_schema import first_fault

if TYPE_CHECKING:
    import onnx

    from ...lowering.kernel_to_cpu.constants import Constants
    from ...lowering.onnx_to_graph.import_survey import Survey
    from ...lowering.onnx_to_graph.loading import OnnxModel
    from ...lowering.onnx_to_graph.subgraphs import NodeOutcome

KINDS = ("native", "composed", "folded", "opaque", "unsupported")


@dataclass(frozen=True)
class OpRow:
    """One op type: how many nodes became what, and the graph ops they use."""

    op: str
    count: int  # of nodes
    kinds: dict[str, int]  # number of nodes by kind
    graph_ops: tuple[str, ...]
    reasons: tuple[str, ...] = ()  # why nodes are what they are, where there is more to say
    flops: int = 0  # scalar operations of the graph ops; loop nests and the host count none
    bytes: int = 0  # read and written by them


@dataclass(frozen=True)
class Blocker:
    """A node that no optimisation crosses, or that cannot be converted."""

    node: str  # its name
    op: str  # its type
    kind: str  # "opaque" or "unsupported"
    reason: str


@dataclass(frozen=True)
class DynamicInput:
    """An input with dims that `--shape` must bind; None is an unnamed dim."""

    name: str
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Check:
    """The answer of `isoform check`; where a run was `tried`, with the error it ended in."""

    model: str  # its name
    opsets: dict[str, int]  # version by domain
    ops: tuple[OpRow, ...]
    dtypes: dict[str, int]  # number of values by element type
    dynamic: tuple[DynamicInput, ...] = ()
    flags: tuple[str, ...] = ()  # of `--shape`, that would bind the dims
    blockers: tuple[Blocker, ...] = ()
    problems: tuple[str, ...] = field(default=())  # other reasons why it cannot be run
    tried: bool = False  # whether it was run
    failure: str | None = None  # the error it ended in
    assumed: tuple[str, ...] = ()  # inputs whose values decide the ops; true was taken

    @property
    def totals(self) -> dict[str, int]:
        """Nodes of each kind."""
        return {kind: sum(row.kinds.get(kind, 0) for row in self.ops) for kind in KINDS}

    @property
    def ok(self) -> bool:
        """Whether the model runs; where that was not tried, whether each node can."""
        if self.tried:
            return self.failure is None
        return not self.problems and self.totals["unsupported"] == 0

    def shares(self, row: OpRow) -> tuple[float, float]:
        """A row's share of all FLOPs and of all bytes; 0 of nothing."""
        flops, bytes_ = (sum(getattr(r, name) for r in self.ops) for name in ("flops", "bytes"))
        return row.flops / max(flops, 1), row.bytes / max(bytes_, 1)

    def as_json(self) -> dict[str, Any]:
        """Plain data for JSON (check_schema.py); numbers stay numbers."""
        found: dict[str, Any] = {**asdict(self), "totals": self.totals, "ok": self.ok}
        for entry, row in zip(found["ops"], self.ops, strict=True):
            entry["flops_share"], entry["bytes_share"] = self.shares(row)
        plain = json.loads(json.dumps(found))
        fault = first_fault(plain, CHECK)
        assert fault is None, fault
        return plain

    def as_text(self) -> str:
        """A table of the ops, then what blocks optimisation and which dims are unbound."""
        head = ["op", "nodes", *KINDS, "FLOPs", "bytes", "as"]
        rows = [
            [
                row.op,
                str(row.count),
                *(str(row.kinds.get(k, 0) or "") for k in KINDS),
                *(f"{share:.1%}" if share else "" for share in self.shares(row)),
                "; ".join([_short(row.graph_ops), *row.reasons]),
            ]
            for row in self.ops
        ]
        total = ["total", str(sum(r.count for r in self.ops))]
        rows.append([*total, *(str(n or "") for n in self.totals.values()), "", "", ""])
        lines = [*_columns([head, *rows]), ""]
        lines.append(
            "types: " + ", ".join(f"{name} ({n} values)" for name, n in self.dtypes.items())
        )
        lines += [f"dynamic: input '{d.name}' has {_dims(d.dims)}" for d in self.dynamic]
        if self.flags:
            lines.append(f"to bind them, add: {' '.join(self.flags)}  (1 was assumed here)")
        lines += [
            f"decided by input '{name}' (true was assumed here): a session takes each value"
            for name in self.assumed
        ]
        lines += [
            f"{b.kind}: {b.op} '{b.node}'{': ' + b.reason if b.reason else ''}"
            for b in self.blockers
        ]
        lines += [f"problem: {text}" for text in self.problems]
        if not self.blockers and not self.problems:
            lines.append("nothing blocks optimisation")
        if self.tried:
            lines.append("it runs" if self.ok else f"it does not run: {self.failure}")
        return "\n".join(lines)


def check_model(
    model: str | os.PathLike[str] | onnx.ModelProto | Program,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Check:
    """Classify every node of a model (a file, a parsed model, or a program).

    Raises:
        UserError: the file cannot be read, or is not a valid graph.
    """
    if isinstance(model, Program):
        return _check_program(model)
    if isinstance(model, str | os.PathLike) and Path(model).suffix.lower() == ".mlir":
        from ..frontends.program_file import read_program

        return _check_program(read_program(Path(model)))
    from ...lowering.onnx_to_graph.import_survey import Survey
    from ...lowering.onnx_to_graph.loading import load_model

    loaded = load_model(model)
    fixed, assumed = _fixed(loaded, shapes or {}), dict[str, Array]()
    while True:
        survey = Survey(loaded, fixed, assumed)
        survey.survey(shapes or {})
        conditions = _conditions(survey)
        if not conditions - assumed.keys():
            found = _check_survey(survey)
            if found.totals["unsupported"]:  # an import bounds sizes that no input alone decides
                survey = Survey(loaded, fixed, assumed, bounded=True)
                survey.survey(shapes or {})
                found = min(found, _check_survey(survey), key=lambda c: c.totals["unsupported"])
            return replace(found, assumed=tuple(assumed))
        assumed |= {name: np.array(True) for name in sorted(conditions)}


def _conditions(survey: Survey) -> set[str]:
    """Single booleans that decide what is computed: a session has a program for each value."""
    import onnx

    found = [e for e in survey.inputs if e.name in survey.deciding and e.dims == ()]
    return {e.name for e in found if e.number == onnx.TensorProto.BOOL}


def _fixed(model: OnnxModel, shapes: Mapping[str, Sequence[int]]) -> Collection[str]:
    """The initialisers that are inputs too; an import makes them constants."""
    from ...lowering.onnx_to_graph.default_inputs import overridable
    from ...lowering.onnx_to_graph.importer import imported

    try:
        return imported(model, shapes)[1] if overridable(model) else ()
    except UserError:
        return ()


def run_failure(load: Callable[[], Program], seed: int = 0) -> str | None:
    """The error that `isoform run` ends in, or None.

    Nothing is measured. The program runs once, on inputs drawn from the seed, only where a run may
    still fail: opaque nodes refuse some values, and an index may be out of range.
    """
    from .. import api
    from .inputs import draw_inputs

    try:
        program = api.improve(load())
        with api.compile(program, effort="quick") as session:
            if any(isinstance(op, OpaqueOp | GatherOp) for op in program.main.body.block.ops):
                session.run(None, draw_inputs(session.program, seed))
    except UserError as error:
        return str(error)
    return None


def format_check(check: Check) -> str:
    """The text of `isoform check`."""
    return check.as_text()


def _check_survey(survey: Survey) -> Check:
    return Check(
        model=survey.model.source,
        opsets=survey.model.opsets,
        ops=_rows(
            survey.outcomes, survey.made, partial(_node_of, _inner_nodes(survey.model.proto))
        ),
        dtypes=_dtypes(survey.build.block),
        dynamic=tuple(
            DynamicInput(entry.name, entry.dims) for entry in survey.inputs if not entry.is_static
        ),
        flags=tuple(survey.flags),
        blockers=tuple(
            Blocker(o.name, o.op_type, o.kind, o.reason)
            for o in survey.outcomes
            if o.kind in ("opaque", "unsupported")
        ),
        problems=tuple(survey.problems),
    )


def _rows(
    outcomes: Sequence[NodeOutcome],
    made: Mapping[int, Sequence[Operation]],
    name_of: Callable[[Operation], str],
) -> tuple[OpRow, ...]:
    """One row per op type, the most frequent first.

    Args:
        made: the ops of each outcome, by its number.
        name_of: the op type whose work an op in a body is.
    """
    kinds: dict[str, Counter[str]] = {}
    ops: dict[str, dict[str, None]] = {}
    work, reasons = Counter[tuple[str, str]](), dict[str, dict[str, None]]()
    named = {_op_type(o.domain, o.op_type) for o in outcomes}
    for number, o in enumerate(outcomes):
        name = _op_type(o.domain, o.op_type)
        kinds.setdefault(name, Counter())[o.kind] += 1
        ops.setdefault(name, {}).update(dict.fromkeys(o.ops))
        if o.reason and o.kind in ("native", "opaque"):
            reasons.setdefault(name, {})[o.reason] = None
        for op in made.get(number, ()):
            for inner, times in _repeated(op):
                owner = name if inner is op else name_of(inner)
                owner = owner if owner in named else name
                work[owner, "flops"] += times * flops_of(inner)
                work[owner, "bytes"] += times * bytes_of(inner)
    rows = [
        OpRow(
            n,
            sum(k.values()),
            dict(k),
            tuple(ops[n]),
            tuple(reasons.get(n, ())),
            work[n, "flops"],
            work[n, "bytes"],
        )
        for n, k in kinds.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.op)))


def _op_type(domain: str, op_type: str) -> str:
    return f"{domain}::{op_type}" if domain else op_type


def _repeated(op: Operation, times: int = 1) -> Iterator[tuple[Operation, int]]:
    """An op and how often it runs; of a loop or branch the ops of the body with most to do."""
    if not isinstance(op, ControlOp):
        yield op, times
        return
    block = max((r.block for r in op.bodies), key=lambda b: sum(flops_of(o) for o in b.ops))
    for inner in block.ops:
        if not isinstance(inner, WeightOp | ConstantOp | YieldOp):
            yield from _repeated(inner, times * times_of(op))


def _inner_nodes(model: onnx.ModelProto) -> dict[str, str]:
    """The op type of each node in a subgraph, by the name that its ops have."""
    found: dict[str, str] = {}
    waiting = [g for node in model.graph.node for a in node.attribute for g in (a.g, *a.graphs)]
    while waiting:
        for node in waiting.pop().node:
            name = node.name or next((o for o in node.output if o), "")
            found[name] = _op_type("" if node.domain == "ai.onnx" else node.domain, node.op_type)
            waiting += [g for a in node.attribute for g in (a.g, *a.graphs)]
    return found


def _node_of(nodes: Mapping[str, str], op: Operation) -> str:
    place = op.location
    return nodes.get(place.desc.data, "") if isinstance(place, NameLoc) else ""


def _dtypes(block: Block) -> dict[str, int]:
    """How many values have each element type, inputs and weights included."""
    values = [*block.args, *(r for op in block.ops for r in op.results)]
    return dict(Counter(str(tensor_type(v).element_type) for v in values).most_common())


# Ops of these dialects run; those of others do where they are defined by our ops.
_OURS = ("graph.", "algebra.", "kernel.", "control.")


def _check_program(program: Program) -> Check:
    """A row for each op of a program that is graph ops (or lower ones) already."""
    from ...lowering.kernel_to_cpu.constants import Constants
    from ...lowering.onnx_to_graph.subgraphs import NodeOutcome

    outcomes: list[NodeOutcome] = []
    constants = Constants(program)
    made: dict[int, list[Operation]] = {}
    for op in program.main.body.walk():
        if isinstance(op, ReturnOp | YieldOp):
            continue
        runs = isinstance(op, GraphOp | KernelOp) or op.name.startswith(_OURS)
        outside = op.parent is program.main.body.block  # a loop counts what is in its body
        if runs and outside and not isinstance(op, WeightOp | ConstantOp):
            made[len(outcomes)] = [op]
        if isinstance(op, OpaqueOp):
            kind = _kind(op, constants)
            outcomes.append(NodeOutcome(op.op_type.data, "", where(op), kind, (op.name,)))
        else:
            kind = "native" if runs else "unsupported"
            outcomes.append(NodeOutcome(op.name, "", where(op), kind, (op.name,)))
    return Check(
        model=program.source,
        opsets={},
        ops=_rows(outcomes, made, lambda op: op.name),
        dtypes=_dtypes(program.main.body.block),
        blockers=tuple(
            Blocker(o.name, o.op_type, o.kind, "") for o in outcomes if o.kind != "native"
        ),
    )


def _kind(op: OpaqueOp, constants: Constants) -> str:
    """Whether loop nests run a kept node, or onnx.reference."""
    from ...lowering.node_to_nest.find import find_nests

    operands, results = ([tensor_type(v) for v in vs] for vs in (op.inputs, op.outputs))
    nests = find_nests(op.properties, operands, results, lambda k: constants.get(op.inputs[k]))
    return "opaque" if nests is None else "native"


def _short(ops: Sequence[str], limit: int = 6) -> str:
    names = [name.removeprefix("graph.") for name in ops]
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _dims(dims: Sequence[int | str | None] | None) -> str:
    if dims is None:
        return "an unknown rank"
    return "dims [" + ", ".join("?" if d is None else str(d) for d in dims) + "]"
