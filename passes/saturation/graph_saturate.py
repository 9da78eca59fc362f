"""graph-saturate: apply all rules at once in an e-graph and take the cheapest program out of it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Region
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from ...dialects.errors import UserError, did_you_mean
from ...dialects.files import write_whole
from ...dialects.floats import DISTRIBUTED, Allowed, Floats
from ...dialects.shape_guards import shape_env
from ...lowering.targets import target_named
from ..cost.costs import load_costs
from ..rules.floats import allowed_rules
from ..rules.op_table import OpTable
from ..rules.rule import Rule
from ..rules.rule_set import rules_named, verified_rules
from .cycles import CYCLES, Cycles
from .extract import METHODS, Method
from .limits import Caps
from .price import NodePrices, parse_costs
from .search import SaturationSettings, saturate_block

_METHODS: dict[str, Method] = {method: method for method in METHODS}
_CYCLES: dict[str, Cycles] = {cycles: cycles for cycles in CYCLES}


@dataclass(frozen=True)
class GraphSaturate(ModulePass):
    """Saturate an e-graph with rewrite rules and extract the cheapest program (docs/saturation.md).

    `rules` is a rule set or a file; rules with several outputs take part in the first `k_multi`
    rounds. A round has room for `match_limit` matches; the rules that may have the most are left
    out of one that would have more. `extract` is ilp (HiGHS, never worse than the others), dag or
    tree (greedy). `cycles` is guarded, or in-ilp for comparison. The
    costs are those of `target`; for the ops of another `dialect` they are `op-costs` ("toy.mul=4"),
    1 for the rest. `check` compares every e-node with its class in exact arithmetic. `e_graph` is a
    file that the saturated e-graphs are written to, in xDSL's dialect `equivalence`. `egglog_rules`
    is a file of rules written in egglog, which are added; each of their instances is checked, and
    those that cannot be proved need `allow_unproved`. `replay` is a file that the run is written to
    as a program of egglog, its answers as rows. Where no time or memory limit stops it, the same
    input gives the same output.

    Before:

        %y = graph.matmul %x, %v : tensor<64x64xf32>
        %z = graph.matmul %x, %w : tensor<64x64xf32>

    After (with rules of merges; %vw costs nothing, it is computed with the weights):

        %vw = graph.concat %v, %w {axis = 1} : tensor<64x128xf32>
        %yz = graph.matmul %x, %vw : tensor<64x128xf32>
        %y, %z = graph.split %yz {axis = 1, sizes = [64, 64]} : tensor<64x64xf32>, tensor<64x64xf32>
    """

    name = "graph-saturate"
    floats: ClassVar[Floats] = DISTRIBUTED
    anchor: ClassVar[str] = "builtin.module"
    rules: str = "default"
    target: str = "cpu"
    k_multi: int = 1
    node_limit: int = 50_000
    iterations: int = 15
    budget: float = 60.0
    memory_limit: float = 2048.0
    match_limit: int = 200_000
    extract: str = "ilp"
    cycles: str = "guarded"
    dialect: str = "graph"
    op_costs: tuple[str, ...] = field(default=())
    cost_file: str | None = None
    check: bool = False
    e_graph: str | None = None
    egglog_rules: str | None = None
    allow_unproved: bool = False
    replay: str | None = None
    fast_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Saturate the body of every function.

        Raises:
            UserError: an option is none, a check found an e-node unequal to its class, a rule of
                `egglog_rules` is refuted or not proved, or a file cannot be written.
        """
        settings = self._settings()
        table = OpTable(ctx)
        costs = load_costs(target_named(self.target), self.cost_file)
        own = parse_costs(self.op_costs)
        printed, replays = list[FuncOp](), list[str]()
        for function in op.walk():
            if isinstance(function, FuncOp) and len(function.body.blocks) == 1:
                prices = NodePrices(table, costs.of(function), own)
                with shape_env(function).active():
                    outcome = saturate_block(function.body.block, table, prices, settings)
                replays.append(outcome.replay)
                if outcome.e_graph is not None:
                    body = Region(outcome.e_graph)
                    copy = FuncOp(function.sym_name.data, function.function_type, body)
                    printed.append(copy)
        if self.replay is not None:
            if len(replays) != 1:
                raise UserError("a replay is of one function", where="replay", found=len(replays))
            write_whole(self.replay, replays[0])
        if self.e_graph is not None:
            write_whole(self.e_graph, _generic(ModuleOp(printed)))

    def _settings(self) -> SaturationSettings:
        method = _METHODS.get(self.extract)
        cycles = _CYCLES.get(self.cycles)
        if method is None:
            hint = did_you_mean(self.extract, METHODS) or ", ".join(METHODS)
            raise UserError(f"unknown extraction '{self.extract}'", where="extract", hint=hint)
        if cycles is None:
            hint = did_you_mean(self.cycles, CYCLES) or ", ".join(CYCLES)
            raise UserError(f"unknown cycle handling '{self.cycles}'", where="cycles", hint=hint)
        caps = Caps(
            self.node_limit,
            self.iterations,
            self.k_multi,
            self.budget,
            self.memory_limit,
            self.match_limit,
        )
        return SaturationSettings(
            rules=allowed_rules(rules_named(self.rules), Allowed(self.fast_math))[0],
            caps=caps,
            cycles=cycles,
            method=method,
            dialect=self.dialect,
            check=self.check,
            added=self._added(),
            printed=self.e_graph is not None,
            replayed=self.replay is not None,
        )

    def _added(self) -> tuple[Rule, ...]:
        """The rules of `egglog_rules`, each with its verdict."""
        if self.egglog_rules is None:
            return ()
        flag = "allow-unproved=true"
        found = verified_rules(self.egglog_rules, self.allow_unproved, flag)
        return allowed_rules(found, Allowed(self.fast_math))[0]


def _generic(module: ModuleOp) -> str:
    """Text that reads back although values are used above their ops: with all types."""
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue() + "\n"
