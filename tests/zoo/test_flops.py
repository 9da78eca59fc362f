"""Operation counts are read off the scopes, and are what one counts by hand."""

import pytest
from xdsl.dialects.builtin import f16, f32, i64

from isoform.dialects.builder import GraphBuilder
from isoform.lowering.graph_to_algebra import lower
from isoform.passes.cost.flops import bytes_of, flops_of, macs_of

CONV = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
POOL = {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4, "dilations": [1, 1]}
CASES = [
    # op, operand shapes, properties, multiply-adds, all operations
    ("matmul", [(4, 5), (5, 6)], {}, 120, 240),
    ("matmul", [(2, 4, 5), (2, 5, 6)], {}, 240, 480),
    ("conv", [(1, 4, 8, 8), (6, 4, 3, 3)], CONV, 6 * 64 * 36, 2 * 6 * 64 * 36),
    ("conv", [(1, 4, 8, 8), (6, 4, 3, 3), (6,)], CONV, 13824, 2 * 13824 + 384),
    ("conv", [(1, 4, 8, 8), (4, 1, 3, 3)], CONV | {"groups": 4}, 4 * 64 * 9, 2 * 4 * 64 * 9),
    ("conv_transpose", [(1, 4, 8, 8), (4, 6, 4, 4)],
     CONV | {"strides": [2, 2], "output_padding": [0, 0]}, 256 * 96, 2 * 256 * 96),
    ("conv_transpose", [(1, 3, 7, 5), (3, 2, 3, 3)],
     CONV | {"strides": [3, 2], "output_padding": [0, 0]}, 3 * 35 * 18, 2 * 3 * 35 * 18),
    ("conv_transpose", [(1, 4, 5, 5), (4, 3, 3, 3)], CONV | {"groups": 2, "output_padding": [0, 0]},
     4 * 25 * 27, 2 * 4 * 25 * 27),
    ("add", [(3, 4), (3, 4)], {}, 0, 12),
    ("mul", [(3, 4), (3, 4)], {}, 0, 12),
    ("relu", [(3, 4)], {}, 0, 12),
    ("sigmoid", [(3, 4)], {}, 0, 48),
    ("transpose", [(3, 4)], {"perm": [1, 0]}, 0, 0),
    ("concat", [(3, 4)] * 1, {"axis": 0}, 0, 0),
    ("reduce_sum", [(3, 4)], {"axes": [1]}, 0, 9),
    ("max_pool", [(1, 2, 4, 4)], POOL, 0, 2 * 4 * 3),
    ("gather", [(3, 4), ((5,), i64)], {"axis": 0}, 0, 0),
]  # fmt: skip


def build_op(name: str, shapes, properties):
    b = GraphBuilder()
    typed = [s if s and isinstance(s[0], tuple) else (s, f32) for s in shapes]
    values = [b.input(f"x{k}", *pair) for k, pair in enumerate(typed)]
    result = b.op(name, *values, **properties)
    b.output("y", result)
    return b.build(), result.owner


@pytest.mark.parametrize(("name", "shapes", "properties", "macs", "flops"), CASES)
def test_counts(name: str, shapes, properties, macs: int, flops: int) -> None:
    program, op = build_op(name, shapes, properties)
    assert (macs_of(op), flops_of(op)) == (macs, flops)
    if name != "gather":
        lower(op)
        lowered = list(program.main.body.block.ops)
        assert (sum(map(macs_of, lowered)), sum(map(flops_of, lowered))) == (macs, flops)


def test_bytes_are_of_distinct_operands_and_of_results() -> None:
    b = GraphBuilder()
    x, h = b.input("x", (3, 4)), b.input("h", (3, 4), f16)
    assert bytes_of(b.add_(x, x).owner) == 48 + 48
    assert bytes_of(b.relu(h).owner) == 24 + 24
    assert bytes_of(b.matmul(x, b.transpose(x, perm=[1, 0])).owner) == 48 + 48 + 36


def test_counting_leaves_no_uses_behind() -> None:
    b = GraphBuilder()
    x = b.input("x", (3, 4))
    op = b.softmax(x, axis=1).owner
    assert flops_of(op) > 0
    assert [use.operation for use in x.uses] == [op]
