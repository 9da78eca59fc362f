"""A search of one's own: isoform optimize m.mlir --plugin custom_search.py --strategy reorder

It proposes programs, prices them by the cost model, and returns the cheapest. `optimize` compares
what it returns with what it was given, measures it where the target runs here, and keeps it if it
is faster. This one tries both orders of each chain of three products, (a b) c and a (b c).
"""

from dataclasses import replace

from xdsl.dialects.builtin import TensorType

from isoform import Program
from isoform.compiler.search.strategies import Strategy
from isoform.dialects.floats import ROUNDING
from isoform.dialects.graph.contraction import MatmulOp
from isoform.passes.cost.costs import Costs
from isoform.passes.search_result import Applied, Limits, Measure, SearchResult


def chains(program: Program) -> list[tuple[MatmulOp, MatmulOp]]:
    """The products whose left operand is a product that nothing else reads."""
    found = [op for op in program.main.body.block.ops if isinstance(op, MatmulOp)]
    pairs = [(op, op.a.owner) for op in found]
    return [
        (op, inner)
        for op, inner in pairs
        if isinstance(inner, MatmulOp) and inner.result.has_one_use() and _is_plain(op, inner)
    ]


def _is_plain(*ops: MatmulOp) -> bool:
    shapes = [
        v.type.get_shape() for op in ops for v in op.operands if isinstance(v.type, TensorType)
    ]
    flags = [flag.value.data for op in ops for flag in (op.transpose_a, op.transpose_b)]
    return all(len(shape) == 2 for shape in shapes) and not any(flags)


def reordered(program: Program, number: int) -> Program:
    """A copy in which chain `number`, (a b) c, is a (b c)."""
    copy = program.clone()
    op, inner = chains(copy)[number]
    right = MatmulOp(inner.b, op.b)
    whole = MatmulOp(inner.a, right.result)
    block = op.parent
    assert block is not None
    block.insert_ops_before([right, whole], op)
    op.result.replace_all_uses_with(whole.result)
    whole.result.name_hint = op.result.name_hint
    op.detach()
    inner.detach()
    return copy


def search(program: Program, costs: Costs, limits: Limits, measure: Measure | None) -> SearchResult:
    """Take one reordering after the other, as long as the model gains."""
    best, found = program.clone(), SearchResult(program.clone(), "finished")
    while True:
        now = costs.program(best).seconds
        tried = [reordered(best, number) for number in range(len(chains(best)))]
        better = [(costs.program(t).seconds, k, t) for k, t in enumerate(tried)]
        if not better or min(better)[0] >= now:
            return replace(found, program=best)
        seconds, _, best = min(better)
        found.applied.append(Applied("reorder", "main", "exact", seconds - now, ROUNDING))


STRATEGIES = [Strategy("reorder", "graph", 1.0, search, ROUNDING)]
