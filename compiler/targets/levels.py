"""The levels of a program (graph, algebra, kernel) and the lowering between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.passes import ModulePass

from ...dialects.context import WeightContext, with_weights
from ...dialects.errors import UserError, in_debug_mode
from ...dialects.program import Program, add_pipeline, keep_names
from ...dialects.weights import Weights
from ..checks.rewrite_limit import Observer
from ..pass_manager import AfterPass, PassRun, run_pipeline
from ..registry import make_context

if TYPE_CHECKING:
    from .cpu_options import CpuOptions

LEVELS = ("graph", "algebra", "kernel")
# Weights, constants and weights-only ops stay graph ops at every level, at cost 0.
_NEUTRAL = ("graph.weight", "graph.constant")


def weight_context(weights: Weights) -> WeightContext:
    """A context that knows every dialect, and the weights."""
    return with_weights(make_context(), weights)


def run_passes(
    program: Program,
    passes: str | Sequence[ModulePass],
    after_pass: AfterPass | None = None,
    observer: Observer | None = None,
    *,
    verify_input: bool = True,
    verify_result: bool = True,
) -> tuple[PassRun, ...]:
    """Apply passes of our own to a program in place; verify it before the first and after the last.

    With ISOFORM_DEBUG=1 it is verified after every pass.

    Args:
        verify_input: not if it is what a pipeline of our own left.
        verify_result: not if another pipeline follows that verifies.

    Raises:
        UserError: a pass refuses the program.
    """
    context = weight_context(program.weights)
    return run_pipeline(
        program.module,
        passes,
        context,
        verify_each=in_debug_mode(),
        verify_input=verify_input or in_debug_mode(),
        verify_result=verify_result or in_debug_mode(),
        after_pass=after_pass,
        observer=observer,
    )


def level_of(program: Program) -> str:
    """The highest level that any op of the program has."""
    found = {
        op.name.partition(".")[0] for op in program.main.body.block.ops if op.name not in _NEUTRAL
    }
    return next((level for level in LEVELS if level in found), "graph")


def lower_to(program: Program, level: str, target: str = "cpu", *, verify: bool = True) -> Program:
    """The program at `level`: the program itself if it is there, otherwise a lowered copy.

    Args:
        target: what will run it; layouts are assigned for "cpu" only.
        verify: whether the result is verified: not if another pipeline follows that does.

    Raises:
        UserError: `level` is above the program's own, or unknown.
    """
    if level not in LEVELS:
        raise UserError(f"unknown level '{level}'", where="--emit", hint=f"{', '.join(LEVELS)}")
    here = level_of(program)
    if here == level:
        return program
    if LEVELS.index(here) > LEVELS.index(level):
        raise UserError(f"the program is at the {here} level already", where=f"--emit {level}")
    lowered = program.clone()
    keep_names(lowered)
    passes = _pipeline(level, target)
    run_passes(lowered, passes, verify_result=verify)
    add_pipeline(lowered.module, passes)
    return lowered


def _pipeline(level: str, target: str) -> str:
    """LOWER_TO_KERNEL of a target, or its part down to the algebra level, as a pipeline."""
    from ..pipelines import LAYOUTS, LOWER_TO_KERNEL

    passes = LOWER_TO_KERNEL
    if level == "algebra":
        passes = passes[: passes.index("graph-to-algebra") + 1]
    return ",".join(p for p in passes if target == "cpu" or p not in LAYOUTS)


def priced(program: Program, target: str) -> Program:
    """The kernels that a target runs for a program; its cost is theirs."""
    from ..pipelines import BUFFERS, CPU_BUFFERS

    lowered = lower_to(program, "kernel", target, verify=False)
    lowered = lowered.clone() if lowered is program else lowered
    passes = CPU_BUFFERS if target == "cpu" else BUFFERS
    run_passes(lowered, ",".join(passes), verify_input=False)
    return lowered


def place(program: Program, options: CpuOptions | None = None, *, target: str = "cpu") -> Program:
    """A kernel-level copy of the program with buffers placed in memory: the input of a runtime.

    Args:
        options: how its kernels are tuned; None measures nothing.
        target: what will run it; some kernels exist for "cpu" only.
    """
    from ..pipelines import FAST_MATH, FOR_CPU, PLACE, PLACE_ON_CPU

    given = level_of(program) == "kernel"
    if target == "cpu":
        placed = tuned(program, options, verify=False)
    else:
        placed = lower_to(program, "kernel", target, verify=False)
    placed = placed.clone() if placed is program else placed
    passes = (*FOR_CPU, *PLACE_ON_CPU) if target == "cpu" else PLACE
    fast = FAST_MATH if options is not None and options.floats.fast_math else ()
    run_passes(placed, ",".join((*passes, *fast)), verify_input=given)
    if options is not None and options.uses_tuned and target == "cpu":
        run_passes(placed, "use-tuned", verify_input=False)
    return placed


def tuned(program: Program, options: CpuOptions | None, *, verify: bool = True) -> Program:
    """The program at the kernel level, with kernels chosen by measurement on this machine.

    Args:
        verify: as of `lower_to`.
    """
    lowered = lower_to(program, "kernel", verify=verify and options is None)
    if options is None:
        return lowered
    from ...passes.tuning import Tune
    from ...passes.tuning.database import database_path

    lowered = lowered.clone() if lowered is program else lowered
    shared = None if options.cost_file is not None else database_path()
    choose = Tune(
        effort=options.effort,
        tolerance=options.tolerance,
        strict_nan=options.floats.strict_nan,
        cost_file=options.cost_file,
        database=None if shared is None else str(shared),
    )
    run_passes(lowered, (choose,), verify_input=False, verify_result=verify)
    return lowered
