"""Schedule spaces: valid points give right results, invalid ones are refused with a reason."""

import random

import numpy as np
import pytest
from support.ragged import KINDS

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import GemmOp, KernelOp
from isoform.dialects.program import Program
from isoform.dialects.schedule import Schedule
from isoform.lowering.algebra_to_kernel.constant import constant_values
from isoform.lowering.kernel_to_cpu.generator import CpuGenerator
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.products.conv_space import ConvProblem, table_for
from isoform.lowering.kernel_to_cpu.products.conv_spec import ConvSpec
from isoform.lowering.kernel_to_cpu.products.gemm_spec import GemmSpec
from isoform.lowering.kernel_to_cpu.products.product_space import PRODUCT, ProductProblem
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.schedule_space import Space

GROUP = 8  # kernels in one program, to compile them together
PAIRS = 1000


def kernels(program: Program, isa: Isa) -> list[tuple[KernelOp, Space]]:
    """The kernels that have a schedule space, and it."""
    constants = constant_values(program.module)
    found = [op for op in program.main.body.block.ops if isinstance(op, KernelOp)]
    spaces = [
        (op, CpuGenerator(isa).space(op, constants)) for op in found if op.result not in constants
    ]
    return [(op, space) for op, space in spaces if space is not None]


def check(kind, seed: int, count: int, isa: Isa) -> int:
    """Run kernels of a kind by random schedules, compare; the number of pairs."""
    r, b = random.Random(seed), GraphBuilder()
    for k in range(count):
        b.output(f"y{k}", kind(b, r, f"v{k}_"))
    program = b.build()
    placed, pairs = place(program), 0
    texts: list[str] = []
    for op, space in kernels(placed, isa):
        schedule = space.drawn(r)
        assert space.refusal(space.default) is None
        if schedule is not None:
            schedule.put_on(op)
            texts.append(f"{space.kind}: {schedule.text}")
            pairs += 1
    inputs = draw_inputs(program, seed)
    session = CpuSession(placed, threads=1 + seed % 2, isa=isa)
    found, expected = session.run(inputs), reference.run(program, inputs)
    session.close()
    for name, wanted in expected.items():
        atol = 2e-5 * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        got = found[name].astype(wanted.dtype)
        told = "\n".join([name, *texts])
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=atol, err_msg=told)
    return pairs


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_kernels_by_random_schedules(kind):
    assert check(kind, 0, 4, Isa.host()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("isa", [isa.name for isa in runnable()])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_thousand_random_pairs(kind, isa):
    """On the best instruction set; a fifth of them on the lower ones."""
    wanted = -(-PAIRS // len(KINDS))
    wanted = wanted if isa == runnable()[-1].name else wanted // 5
    seed = done = 0
    while done < wanted:
        seed += 1
        done += check(kind, seed, GROUP, Isa.named(isa))


def product(schedule: str = "") -> Program:
    """One product of 40 rows by constant weights, with a schedule; buffers placed."""
    b = GraphBuilder()
    w = b.weight("w", np.ones((96, 64), np.float32))
    b.output("y", b.matmul(b.input("x", (40, 96)), w))
    placed = place(b.build())
    op = next(op for op in placed.main.body.block.ops if isinstance(op, GemmOp))
    Schedule.parse(schedule).put_on(op)
    return placed


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("rows=14 vectors=4", "rows=14 vectors=4 needs 61 registers, and there are 32"),
        ("rows=15", "rows is one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, not 15"),
        ("depth=97", "depth is a whole number from 1 to 96, not 97"),
        ("right=copied prefetch=1", "prefetch=1 needs right=packed"),
        ("order=columns", "order is one of rows, panels, not columns"),
        ("row=4", "a product has no entry 'row'; it has rows, vectors, right"),
    ],
)
def test_an_invalid_schedule_is_refused_with_its_reason(schedule, reason):
    with pytest.raises(UserError, match="an invalid schedule") as caught:
        CpuSession(product(schedule), isa=Isa.named("avx512"))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_copy_that_overflows_the_stack_is_refused():
    problem = ProductProblem(
        GemmSpec((), 4096, 64, 4096, (4096, 1), (64, 1), (64, 1)), Isa.named("avx512"), True
    )
    reason = PRODUCT.space(problem).refusal(Schedule.parse("left=copied row_blocks=200 depth=4096"))
    assert reason is not None
    assert "bytes, at most 1048576 are allowed" in reason


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("image_rows=3", "image_rows is one of 1, 2, 4, 8, not 3"),
        ("image_rows=8 rows=2", "image_rows=8 of 8 pixels are more than 8 blocks of rows=2"),
        ("image_rows=2 rows=4 chunk=3", "chunk=3: image_rows=2 are 4 blocks"),
    ],
)
def test_rows_of_an_image_are_cut_as_they_can_be(schedule, reason):
    geometry = ((8, 8), (3, 3), (1, 1), (1, 1))
    spec = ConvSpec(1, *geometry, 1, 16, 32, (1600, 160, 16), (2048, 256, 32))
    isa = Isa.named("avx512")
    found = table_for(spec, isa).space(ConvProblem(spec, isa)).refusal(Schedule.parse(schedule))
    assert found is not None
    assert reason in found


def test_a_schedule_is_canonical_text_and_an_attribute():
    schedule = Schedule.parse("vectors=2 rows=6 right=packed")
    assert schedule.text == "right=packed rows=6 vectors=2"
    assert Schedule.parse(schedule.text) == schedule
    placed = product(schedule.text)
    read = parse(str(placed.module))
    op = next(op for op in read.main.body.block.ops if isinstance(op, GemmOp))
    assert Schedule.on(op) == schedule
    assert 'schedule {right = "packed", rows = 6 : i64, vectors = 2 : i64}' in str(read.module)
    with pytest.raises(UserError, match="NAME=VALUE"):
        Schedule.parse("rows")


def test_points_of_a_search_are_valid_and_drawn_the_same_again():
    placed = product()
    ((_, space),) = kernels(placed, Isa.host())
    draws = [[space.drawn(random.Random(seed)) for seed in range(20)] for _ in range(2)]
    assert draws[0] == draws[1]
    start, r = space.default, random.Random(0)
    for _ in range(100):
        made = space.mutated(start, r)
        assert made is not None
        assert made != start
        assert space.refusal(made) is None
        crossed = space.crossed(start, made, r)
        assert crossed is None or space.refusal(crossed) is None
        start = made
