"""graph-substitute: search over substitutions by cost. graph-apply-rule: one rule by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import DISTRIBUTED, Allowed, Floats
from ...dialects.shape_guards import shape_env
from ...lowering.targets import target_named
from ..cost.costs import load_costs
from ..rules.floats import allowed_rules, floats_of
from ..rules.graph_form import Graph, Tables, encode
from ..rules.match import GraphMatcher, unusable
from ..rules.op_table import OpTable
from ..rules.rule import Rule
from ..rules.rule_set import rules_named
from ..search_result import Limits
from .apply import Applier, RefusedError
from .layouts import fold_transposes, unfold_transposes
from .search import SubstitutionSettings, both_ways, search_block
from .write import write


@dataclass(frozen=True)
class GraphSubstitute(ModulePass):
    """Search for the cheapest program that rules can reach (docs/substitutions.md).

    `rules` is a rule set or a file. Programs that cost up to `alpha` times the best so far are
    looked at, `programs` of them, for at most `budget` seconds. Costs are those of `target`.
    Transposes that products can read as they are cost nothing, and are folded into them.

    Before:

        %y = graph.matmul %x, %v : tensor<64x64xf32>
        %z = graph.matmul %x, %w : tensor<64x64xf32>

    After (%vw costs nothing, it is computed with the weights):

        %vw = graph.concat %v, %w {axis = 1} : tensor<64x128xf32>
        %yz = graph.matmul %x, %vw : tensor<64x128xf32>
        %y, %z = graph.split %yz {axis = 1, sizes = [64, 64]} : tensor<64x64xf32>, tensor<64x64xf32>
    """

    name = "graph-substitute"
    floats: ClassVar[Floats] = DISTRIBUTED
    rules: str = "default"
    target: str = "cpu"
    alpha: float = 1.05
    programs: int = 1000
    budget: float = 60.0
    cost_file: str | None = None
    fast_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the body of every function.

        Raises:
            UserError: an option is none.
        """
        if self.alpha < 1 or self.programs < 1:
            raise UserError("alpha and programs are at least 1", where="graph-substitute")
        costs = load_costs(target_named(self.target), self.cost_file)
        rules, _ = allowed_rules(rules_named(self.rules), Allowed(self.fast_math))
        settings = SubstitutionSettings(both_ways(rules), self.alpha, self.programs)
        for function, block in _bodies(op):
            sized = costs.of(function)
            with shape_env(function).active():
                unfold_transposes(block)
                found, _, _ = search_block(block, sized, Limits(self.budget), settings, ctx)
                if found.best.parent is not None:
                    write(found.best.graph, block)
                fold_transposes(block)


@dataclass(frozen=True)
class GraphApplyRule(ModulePass):
    """Apply one rule at its matches, whatever the cost. With `back`, apply it from right to left.

    `name` is a rule of `rules` (a rule set or a file). The first `times` matches are rewritten;
    nothing happens where there is none.

    Before (name=transpose-twice):

        %a = graph.transpose %x {perm = [1, 0]} : tensor<4x8xf32>
        %y = graph.transpose %a {perm = [1, 0]} : tensor<8x4xf32>
        %z = graph.relu %y : tensor<8x4xf32>

    After:

        %z = graph.relu %x : tensor<8x4xf32>
    """

    name = "graph-apply-rule"
    floats: ClassVar[Floats] = DISTRIBUTED
    rule: str
    rules: str = "default"
    back: bool = False
    times: int = 1
    fast_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the body of every function.

        Raises:
                UserError: the rule does not exist, or cannot be applied in this direction.
        """
        rule = self._rule()
        for function, block in _bodies(op):
            tables = Tables(OpTable(ctx), load_costs(target_named("cpu")).of(function))
            reason = unusable(rule, tables)
            if reason:
                raise UserError(f"rule '{rule.name}' cannot be applied: {reason}")
            with shape_env(function).active():
                graph = start = encode(block, tables)
                for _ in range(self.times):
                    following = _once(graph, rule)
                    if following is None:
                        break
                    graph = following
                if graph is not start:
                    write(graph, block)

    def _rule(self) -> Rule:
        known = {rule.name: rule for rule in rules_named(self.rules)}
        rule = known.get(self.rule)
        if rule is None:
            hint = did_you_mean(self.rule, known)
            raise UserError(f"no rule '{self.rule}' in '{self.rules}'", hint=hint)
        allowed = Allowed(self.fast_math)
        if not allowed.allows(floats_of(rule)):
            why = allowed.why_not(floats_of(rule))
            raise UserError(f"rule '{rule.name}': {why}", hint="fast-math=true")
        return rule.reversed() if self.back else rule


def _once(graph: Graph, rule: Rule) -> Graph | None:
    """The graph after the first match that can be applied; None if there is none."""
    applier = Applier(graph.tables, (rule,))
    for match in GraphMatcher(graph.tables, (rule,)).everywhere(graph):
        try:
            change = applier.change(graph, match)
        except RefusedError:
            continue
        if not applier.closes_cycle(graph, match, change):
            return graph.after(change)
    return None


def _bodies(op: ModuleOp) -> Iterator[tuple[FuncOp, Block]]:
    """The functions that have one block, and that block."""
    for function in op.walk():
        if isinstance(function, FuncOp) and len(function.body.blocks) == 1:
            yield function, function.body.block
