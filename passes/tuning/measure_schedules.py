"""Trials: a kernel by itself, run by some schedules in turn, here or on another machine.

A `KernelTask` is text: it travels to a worker, which says what processor it is. Every trial is
measured beside the generator's own schedule, and what counts is the ratio: a machine that is busy
for a while, or another one, changes it little.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, UnitAttr
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from ...dialects.algebra import ALGEBRA
from ...dialects.graph import GRAPH, WeightOp
from ...dialects.kernel import KERNEL, ConvOp, GemmOp, KernelOp
from ...dialects.program import Program
from ...dialects.schedule import Schedule
from ...dialects.signature import signature
from ...dialects.types import tensor_type
from ...dialects.weights import Weights
from ...lowering.code_generator import TimedSession
from ...lowering.targets import CPU
from ..plan_memory import PlanMemory
from .measure_alternatives import (
    isolate_contraction,
    isolate_kernel,
    largest_error,
    random_activation,
    random_weight,
)

# A schedule whose results differ by more, relative to the largest magnitude, is no result.
MAX_ERROR = 1e-4
# Seconds of one sample, of kernels that are shorter.
SAMPLE = 2e-4
MAX_REPEATS = 64
# Marks the kernel that is measured; copies around it bring its operands into their layouts.
MEASURED = "isoform.measured"


@dataclass(frozen=True)
class KernelTask:
    """A kernel to tune.

    Attributes:
        text: a program of it alone, its operands drawn at random.
        signature: its canonical text, without a schedule.
    """

    text: str
    signature: str


@dataclass(frozen=True)
class TrialRequest:
    """Schedules to measure in turn, `rounds` times, and the seed of the operands."""

    task: KernelTask
    schedules: tuple[Schedule, ...]
    rounds: int
    seed: int


@dataclass(frozen=True)
class Trial:
    """What a schedule took. Units: seconds; `ratio` is over the generator's schedule, paired.

    `ratio` is None where results differed from those of the generator's schedule. `quartile` is the
    upper one of the paired ratios: below 1 a schedule is faster in most rounds.
    """

    seconds: float
    low: float  # the quartiles
    high: float
    ratio: float | None
    quartile: float
    error: float


@dataclass(frozen=True)
class TrialAnswer:
    """Trials in the order of the request, and where they ran.

    Attributes:
        processor: a key of the processor, the compiler and the code that makes kernels.
        words: that in words.
        default: the generator's own schedule.
    """

    processor: str
    words: str
    default: Trial
    trials: tuple[Trial, ...]


def task_of(op: KernelOp, constants: Container[SSAValue]) -> KernelTask:
    """The kernel by itself, without its schedule."""
    known = {value for value in op.inputs if value in constants}
    alone = isolate_contraction if isinstance(op, ConvOp | GemmOp) else isolate_kernel
    program, copy = alone(op, known, 0)
    copy.properties.pop("schedule", None)
    copy.attributes[MEASURED] = UnitAttr()
    weights = [k for k, value in enumerate(copy.inputs) if isinstance(value.owner, WeightOp)]
    task = KernelTask(str(program.module), f"{signature(copy)} constants {weights}")
    program.module.drop_all_references()
    return task


def op_of(signature: str) -> tuple[KernelOp, set[SSAValue]]:
    """The kernel of a task's signature, and those of its operands that are constants.

    Its operands are arguments of a function.
    """
    text, _, last = signature.rpartition(" constants ")
    body, _, types = text.rpartition(" on ")
    names = re.findall(r"= (%\w+)", body[: body.index("{")].partition(" = ")[2])
    parser = Parser(_context(), types)
    kinds = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    arguments = dict(zip(names, map(str, kinds), strict=True))
    head = ", ".join(f"{name}: {kind}" for name, kind in arguments.items())
    text = f"func.func private @f({head}) {{ {body} func.return }}"
    parsed = Parser(_context(), text).parse_module()
    op = next(op for op in parsed.walk() if isinstance(op, KernelOp))
    return op, {op.inputs[k] for k in json.loads(last)}


def kernel_in(program: Program) -> KernelOp:
    """The kernel of a task's program."""
    ops = program.main.body.block.ops
    return next(op for op in ops if isinstance(op, KernelOp) and MEASURED in op.attributes)


def _context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, Arith, Math, GRAPH, ALGEBRA, KERNEL):
        context.load_dialect(dialect)
    return context


def program_of(task: KernelTask, seed: int) -> Program:
    """The program of a task, its weights drawn."""
    module = Parser(_context(), task.text).parse_module()
    program = Program(module, Weights())
    for position, op in enumerate(program.main.body.block.ops):
        if isinstance(op, WeightOp):
            data = random_weight(tensor_type(op.result), seed + position)
            program.weights.add(op.key, lambda data=data: data)
    return program


def measure_trials(request: TrialRequest) -> TrialAnswer:
    """Compile the schedules together, then run them one at a time, in turn."""
    schedules = (Schedule(), *request.schedules)
    programs = [program_of(request.task, request.seed) for _ in schedules]
    kernels = [kernel_in(program) for program in programs]
    for schedule, kernel, program in zip(schedules, kernels, programs, strict=True):
        schedule.put_on(kernel)
        PlanMemory().apply(Context(), program.module)
    sessions = CPU.generator().sessions(programs)
    try:
        inputs = {n: random_activation(t, request.seed) for n, t in programs[0].inputs.items()}
        outputs = [session.run(inputs) for session in sessions]
        values: list[set[SSAValue]] = [{kernel.result} for kernel in kernels]
        times = _timed(sessions, values, request.rounds)
    finally:
        for session in sessions:
            session.close()
    errors = [largest_error(found, outputs[0]) for found in outputs]
    found = [_trial(own, times[0], error) for own, error in zip(times, errors, strict=True)]
    processor, words = processor_here()
    return TrialAnswer(processor, words, found[0], tuple(found[1:]))


def _timed(
    sessions: Sequence[TimedSession], values: Sequence[set[SSAValue]], rounds: int
) -> list[list[float]]:
    first = [session.time(made) for session, made in zip(sessions, values, strict=True)]
    repeats = [min(MAX_REPEATS, math.ceil(SAMPLE / max(t, 1e-9))) for t in first]
    times: list[list[float]] = [[] for _ in sessions]
    for _ in range(rounds):
        for k, session in enumerate(sessions):
            times[k].append(session.time(values[k], repeats[k]))
    return times


def _trial(own: list[float], default: list[float], error: float) -> Trial:
    low, middle, high = statistics.quantiles(own, n=4)
    _, ratio, quartile = statistics.quantiles(
        (a / b for a, b in zip(own, default, strict=True)), n=4
    )
    right = error <= MAX_ERROR and np.isfinite(error)
    return Trial(middle, low, high, ratio if right else None, quartile, error)


@cache
def processor_here() -> tuple[str, str]:
    """A key of this processor, compiler and code, and the same in words."""
    generator = CPU.generator()
    kind = hashlib.sha256(generator.machine_kind().encode()).hexdigest()[:16]
    return kind, f"{generator.name} {generator.processor}"
