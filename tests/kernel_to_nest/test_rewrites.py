"""Every rewrite of loops keeps what a nest computes."""

from collections.abc import Callable

import numpy as np
import pytest
from support.nest_values import run_nest
from xdsl.parser import Parser

from isoform.compiler.registry import make_context
from isoform.dialects.nest import AccumulateOp, AllocOp, ForOp, LoadOp, NestOp, StoreOp
from isoform.lowering.kernel_to_nest import rewrites, staging
from isoform.lowering.kernel_to_nest.guards import cut_inside, regions
from isoform.lowering.kernel_to_nest.reductions import in_turns, take_lanes, vectorise_reduction

Loops = dict[str, ForOp]

# y[i, j] = x[j, i] + z[j], 10 x 13
TURN = """
nest.kernel (%x: memref<130xf64>, %z: memref<13xf64>, %y: memref<130xf64>) {
  nest.for %i < 10 {
    nest.for %j < 13 {
      %0 = nest.load %x[10 * %j + %i] : memref<130xf64>
      %1 = nest.load %z[%j] : memref<13xf64>
      %2 = arith.addf %0, %1 : f64
      nest.store %2, %y[13 * %i + %j] : memref<130xf64>
    }
  }
}"""

# y[m, n] = sum(k: 11) x[m, k] * z[k, n], 6 x 5
PRODUCT = """
nest.kernel (%x: memref<66xf64>, %z: memref<55xf64>, %y: memref<30xf64>) {
  nest.for %m < 6 {
    nest.for %n < 5 {
      %t = nest.alloc : memref<1xf64, "registers">
      %0 = nest.identity sum : f64
      nest.store %0, %t[0] : memref<1xf64, "registers">
      nest.for %k < 11 {
        %1 = nest.load %x[11 * %m + %k] : memref<66xf64>
        %2 = nest.load %z[5 * %k + %n] : memref<55xf64>
        %3 = arith.mulf %1, %2 : f64
        nest.accumulate sum %3, %t[0] : memref<1xf64, "registers">
      }
      %4 = nest.load %t[0] : memref<1xf64, "registers">
      nest.store %4, %y[5 * %m + %n] : memref<30xf64>
    }
  }
}"""

# y[i, j] = x[i - 1, j - 2], 0.5 outside, x being 4 x 9, y 6 x 12; w tells which rows are inside
SHIFT = """
nest.kernel (%x: memref<36xf64>, %z: memref<1xf64>, %y: memref<72xf64>) {
  nest.for %i < 6 {
    nest.for %j < 12 {
      %0 = nest.load %x[9 * %i + %j - 11] if [%i - 1, %j - 2] < [4, 9] else 0.5 : memref<36xf64>
      %1 = nest.inside if [%i - 1] < [4] : f64
      %2 = arith.addf %0, %1 : f64
      nest.store %2, %y[12 * %i + %j] : memref<72xf64>
    }
  }
}"""

# y[i] = max(k: 37) x[i, k], 3 x 37
LARGEST = """
nest.kernel (%x: memref<111xf64>, %z: memref<1xf64>, %y: memref<3xf64>) {
  nest.for %i < 3 {
    %t = nest.alloc : memref<1xf64, "registers">
    %0 = nest.identity max : f64
    nest.store %0, %t[0] : memref<1xf64, "registers">
    nest.for %k < 37 {
      %1 = nest.load %x[37 * %i + %k] : memref<111xf64>
      nest.accumulate max %1, %t[0] : memref<1xf64, "registers">
    }
    %2 = nest.load %t[0] : memref<1xf64, "registers">
    nest.store %2, %y[%i] : memref<3xf64>
  }
}"""


def parse(text: str) -> NestOp:
    module = Parser(make_context(), text).parse_module()
    (nest,) = module.body.block.ops
    assert isinstance(nest, NestOp)
    return nest


def loops_of(nest: NestOp) -> Loops:
    return {op.iterator.name_hint or "": op for op in nest.walk() if isinstance(op, ForOp)}


def values(nest: NestOp) -> np.ndarray:
    """The result on whole numbers: sums in any order are the same."""
    nest.verify()
    rng = np.random.default_rng(0)
    *operands, result = (
        rng.integers(-9, 10, a.type.get_shape()).astype(np.float64)  # pyright: ignore
        for a in nest.body.block.args
    )
    result[...] = np.nan
    run_nest(nest, operands, result)
    return result


def _interchange(at: Loops) -> None:
    rewrites.interchange(at["i"])


def _reorder(at: Loops) -> None:
    outer, inner = rewrites.split(at["i"], 5)
    rewrites.reorder([at["j"], inner, outer])


def _vectorise(at: Loops) -> None:
    rewrites.vectorise(at["j"], 4)


def _split_bound(at: Loops) -> None:
    rewrites.split_bound(at["j"], 4)
    rewrites.split_bound(at["i"], 5)


def _split_branch(at: Loops) -> None:
    outer, runs = rewrites.split_branch(at["j"], 6)
    rewrites.interchange(at["i"])
    assert [run.size for run in runs] == [6, 1] and outer.size == 3


def _cut_and_tile(at: Loops) -> None:
    parts = rewrites.cut_at(at["j"], [3, 9, 40])
    assert [part.size for part in parts] == [3, 6, 4]
    rewrites.tile_together(parts, 5, "serial")


def _fuse(at: Loops) -> None:
    first, rest = rewrites.cut(at["j"], 6)
    _, one = rewrites.cut(rest, 1)
    rewrites.fuse(first, one)


def _drop(at: Loops) -> None:
    rewrites.split(at["i"], 10)
    outer = at["i"].parent_block()
    assert outer is not None
    rewrites.drop_single(outer)
    assert at["i"].parent is None


def _stage(at: Loops) -> None:
    """Blocks of 4 lanes by 5 rows, read along the rows."""
    rows, _ = rewrites.split(at["i"], 5)
    inner = rewrites.only_op(rows)
    assert inner is not None
    lane = rewrites.interchange(inner)
    for piece in rewrites.cut_at(lane, [12]):
        _, run = rewrites.split(piece, min(4, piece.size))
        block = rewrites.interchange(run)
        rewrites.mark(run, "vector", 8)
        load = next(op for op in run.block.ops if isinstance(op, LoadOp))
        staging.ask_ahead(load, block, run, 3)
        staging.stage_transposed(load, block, run)


def _sink(at: Loops) -> None:
    """A register block: k outside of rows, columns and lanes."""
    rewrites.split(at["m"], 3)
    vector, lane = rewrites.split_bound(at["n"], 4)
    rewrites.mark(lane, "vector", 4)
    rows = vector.parent_op()
    assert isinstance(rows, ForOp)
    for loop in (lane, vector, rows):
        rewrites.sink(loop)


def _in_turns(at: Loops) -> None:
    vector, lane = rewrites.split_bound(at["n"], 4)
    rewrites.mark(lane, "vector", 4)
    rewrites.sink(lane)
    (total,) = (op for op in vector.block.ops if isinstance(op, AllocOp))
    start, deep, *_ = (op for op in vector.block.ops if isinstance(op, ForOp))
    in_turns(deep, total, start, 3)
    rewrites.sink(vector)


def _distribute(at: Loops) -> None:
    _, inner = rewrites.split_bound(at["n"], 2)
    assert len(rewrites.distribute(inner)) == 3


def _specialise(at: Loops) -> None:
    parts = [part for region in regions(at["j"]) for part in cut_inside(region, 4)]
    assert [p.size for p in parts] == [4, 4, 4, 12]
    assert not any(op.guards for op in parts[1].block.ops if isinstance(op, LoadOp))
    for part in parts:
        rewrites.vectorise(part, 4)


def _lanes(chains: int) -> Callable[[Loops], None]:
    def rewrite(at: Loops) -> None:
        taken = at["k"].block.last_op
        assert isinstance(taken, AccumulateOp)
        total, places, place = taken.buffer, list(taken.places), taken.indices[0]
        found = vectorise_reduction(at["k"], 4, chains)
        lane = take_lanes("max", found.totals[total], total, places, place, 4)
        rewrites.insert_after(found.last, lane)

    return rewrite


CASES: list[tuple[str, str, Callable[[Loops], None]]] = [
    ("interchange", TURN, _interchange),
    ("reorder", TURN, _reorder),
    ("vectorise", TURN, _vectorise),
    ("split_bound", TURN, _split_bound),
    ("split_branch", TURN, _split_branch),
    ("cut and tile together", TURN, _cut_and_tile),
    ("fuse", TURN, _fuse),
    ("drop_single", TURN, _drop),
    ("stage_transposed", TURN, _stage),
    ("sink", PRODUCT, _sink),
    ("in_turns", PRODUCT, _in_turns),
    ("distribute", PRODUCT, _distribute),
    ("specialise", SHIFT, _specialise),
    ("lanes in one chain", LARGEST, _lanes(1)),
    ("lanes in two chains", LARGEST, _lanes(2)),
    ("lanes in eight chains", LARGEST, _lanes(8)),
]


@pytest.mark.parametrize(("name", "text", "rewrite"), CASES, ids=[name for name, *_ in CASES])
def test_a_rewrite_keeps_the_values(name: str, text: str, rewrite: Callable[[Loops], None]) -> None:
    nest = parse(text)
    wanted = values(nest)
    before = str(nest)
    rewrite(loops_of(nest))
    assert str(nest) != before, "the rewrite changed nothing"
    np.testing.assert_array_equal(values(nest), wanted)


@pytest.mark.parametrize(("name", "text", "rewrite"), CASES, ids=[name for name, *_ in CASES])
def test_what_rewrites_make_is_read_back_as_printed(
    name: str, text: str, rewrite: Callable[[Loops], None]
) -> None:
    nest = parse(text)
    rewrite(loops_of(nest))
    assert str(parse(str(nest))) == str(nest)


def test_sunk_totals_lie_in_registers_lane_by_lane() -> None:
    nest = parse(PRODUCT)
    _sink(loops_of(nest))
    (alloc,) = (op for op in nest.walk() if isinstance(op, AllocOp))
    assert alloc.result.type.get_shape() == (3 * 2 * 4,)  # pyright: ignore
    (deep,) = (op for op in nest.walk() if isinstance(op, ForOp) and op.size == 11)
    assert [op for op in deep.walk() if isinstance(op, AccumulateOp)]
    assert not [op for op in deep.walk() if isinstance(op, StoreOp)]


def test_positions_that_are_left_out_change_no_masked_total() -> None:
    nest = parse(LARGEST)
    _lanes(1)(loops_of(nest))
    masked = [op for op in nest.walk() if isinstance(op, AccumulateOp) and op.masked is not None]
    assert len(masked) == 1
