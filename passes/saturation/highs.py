"""HiGHS on one integer program: here, or where that may take long in a process with hard limits.

Where work is counted (work_clock.py), its limit is a number of branch-and-bound nodes. Elsewhere it
is time: HiGHS looks at its limit between steps, and at tens of thousands of columns one step (a
round of cuts) takes seconds. A large program is solved by a child, `python -m
isoform.passes.saturation.highs SECONDS MEBIBYTES
NODES`, arrays in and out as npz, killed where it overruns.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...dialects.types import Array
from ..work_clock import charge, is_counted, wall_seconds

_BOUND = 1e-6
"""Of costs: sums in another order differ by less."""

_SMALL = 3000
"""Whole-numbered columns of a program whose steps are short enough to be solved here."""

_SECONDS_A_COLUMN = 4e-4
"""Of the root; of a node a tenth: between half and twice as much on the zoo's models."""

_MAX_NODES = 2**31 - 1

_HEURISTICS = ("feasibility_jump", "rins", "rens", "root_reduced_cost", "zi_round")

_CHILD_SHARE = 0.75
"""Of the time, what the child tells HiGHS: so it mostly answers before it is killed."""


@dataclass(frozen=True)
class IntegerProgram:
    """min cost x, row_lower <= A x <= row_upper, lower <= x <= upper; A by rows.

    Attributes:
        whole: which columns are whole numbers.
        first: a solution to start from.
    """

    cost: Array
    lower: Array
    upper: Array
    whole: Array
    row_lower: Array
    row_upper: Array
    start: Array
    index: Array
    value: Array
    first: Array


@dataclass(frozen=True)
class SolverResult:
    """The best solution found (None without one), a lower bound, whether that proves it."""

    values: Array | None
    bound: float
    optimal: bool  # whether the bound proves it optimal
    nodes: int = 0  # of branch and bound, that were looked at


NOTHING = SolverResult(None, 0.0, False)


def solve_within(program: IntegerProgram, seconds: float, mebibytes: float) -> SolverResult:
    """Solve; nothing is the answer where a limit comes first."""
    if not is_counted():
        return _solve(program, seconds, mebibytes, _MAX_NODES)
    root = max(int(program.whole.sum()), 1) * _SECONDS_A_COLUMN
    nodes = min(int((seconds / root - 1) * 10), _MAX_NODES)
    if nodes < 1:
        return NOTHING
    found = _solve(program, wall_seconds(seconds), mebibytes, nodes)
    charge(root * (1 + found.nodes / 10))
    return found


def _solve(program: IntegerProgram, seconds: float, mebibytes: float, nodes: int) -> SolverResult:
    if int(program.whole.sum()) <= _SMALL:
        return run_highs(program, seconds, nodes, heuristics=False)
    data = io.BytesIO()
    np.savez(data, **asdict(program))
    command = [sys.executable, "-m", __name__, str(seconds * _CHILD_SHARE)]
    command += [str(mebibytes), str(nodes)]
    try:
        done = subprocess.run(
            command, input=data.getvalue(), capture_output=True, timeout=seconds, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return NOTHING
    found: Mapping[str, Array] = np.load(io.BytesIO(done.stdout))
    values = found["values"]
    return SolverResult(
        values if values.size else None,
        float(found["bound"]),
        bool(found["optimal"]),
        int(found["nodes"]),
    )


def run_highs(
    program: IntegerProgram, seconds: float, nodes: int = _MAX_NODES, heuristics: bool = True
) -> SolverResult:
    """Solve in this process; once more, from nothing, where the answer misses its own bound.

    HiGHS 1.16 may call a warm start optimal that is not.

    Args:
        heuristics: look for solutions by rounding and smaller programs; the root of a small program
            mostly solves it, and they take a third of the time.
    """
    begun = time.perf_counter()
    found = _run(program, seconds, nodes, heuristics, warm=True)
    if not found.optimal or found.values is None:
        return found
    cost = float(np.dot(program.cost, found.values))
    if cost <= found.bound + _BOUND * max(abs(cost), 1.0):
        return found
    left = seconds - (time.perf_counter() - begun)
    again = _run(program, left, nodes, heuristics, warm=False)
    return found if again.values is None else again


def _run(
    program: IntegerProgram, seconds: float, nodes: int, heuristics: bool, warm: bool
) -> SolverResult:
    """Solve once, from the known solution or from none."""
    import highspy

    solver = _silent(highspy)
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    solver.setOptionValue("time_limit", max(seconds, 0.01))
    solver.setOptionValue("mip_max_nodes", nodes)
    solver.setOptionValue("mip_rel_gap", 1e-7)
    for name in _HEURISTICS if not heuristics else ():
        solver.setOptionValue(f"mip_heuristic_run_{name}", False)
    solver.passModel(_model(highspy, program))
    if warm:
        solution = highspy.HighsSolution()
        solution.col_value = program.first
        solver.setSolution(solution)
    solver.run()
    info = solver.getInfo()
    values = np.array(solver.getSolution().col_value)
    has = len(values) == len(program.cost) and info.primal_solution_status == 2
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    bound, used = max(float(info.mip_dual_bound), 0.0), max(int(info.mip_node_count), 0)
    return SolverResult(values if has else None, bound, optimal, used)


def _silent(highspy: Any) -> Any:
    """A solver that does not print its name to stdout, as HiGHS does with callbacks enabled."""

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            """Do nothing: no callback is used."""

    return Silent()


def _model(highspy: Any, program: IntegerProgram) -> Any:
    lp, kind = highspy.HighsLp(), highspy.HighsVarType
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.row_lower)
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.integrality_ = [kind.kInteger if w else kind.kContinuous for w in program.whole]
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_col_, matrix.num_row_ = lp.num_col_, lp.num_row_
    matrix.start_, matrix.index_, matrix.value_ = program.start, program.index, program.value
    return lp


def _bound_memory(mebibytes: float) -> None:
    """Let this process take so much more and then fail, where the system can say so."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return
    most = now + int(mebibytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Solve the program on standard input."""
    seconds, mebibytes, nodes = map(float, sys.argv[1:])
    found: Mapping[str, Array] = np.load(io.BytesIO(sys.stdin.buffer.read()))
    _bound_memory(mebibytes)
    # Where nodes are counted, what heuristics take is not known beforehand.
    program, most = IntegerProgram(**{k: found[k] for k in found}), int(nodes)
    answer = run_highs(program, seconds, most, heuristics=most == _MAX_NODES)
    values = np.empty(0) if answer.values is None else answer.values
    data = io.BytesIO()
    np.savez(data, values=values, bound=answer.bound, optimal=answer.optimal, nodes=answer.nodes)
    sys.stdout.buffer.write(data.getvalue())


if __name__ == "__main__":
    main()
