"""Search the bodies of loops and branches, each as a program, before the program around them.

Bodies are not measured by themselves: the model decides, and the result as a whole is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...dialects.control import ControlOp, as_program, body_module
from ...dialects.program import Program, main_of
from ...passes.work_clock import now
from ..targets.levels import level_of, run_passes
from .orders import search_in_best_order
from .records import ComparisonRequest, Searched
from .strategies import Strategy

# Of the time that is left, what the searches of all bodies take before those of the program begin.
_BODIES = 0.4
_WHY = "a body is not measured by itself"


def search_with_bodies(
    program: Program, strategies: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """What the searches find in the bodies, and then in the program."""
    graph = [s for s in strategies if s.level == "graph"]
    bodies = list(_bodies(program)) if graph and level_of(program) == "graph" else []
    if not bodies:
        return search_in_best_order(program, strategies, request)
    found = Searched(program.clone())
    bodies = list(_bodies(found.program))
    end = now() + request.left * _BODIES
    for number, (op, k) in enumerate(bodies):
        begun = now()
        until = begun + max(end - begun, 0.0) / (len(bodies) - number)
        part = replace(request, end=until, unmeasured=_WHY)
        inner = search_in_best_order(Program(body_module(op, k), program.weights), graph, part)
        if inner.program.weights is program.weights and inner.rewrites:
            _put_back(op, k, inner.program.module)
            found = found.followed_by(replace(inner, program=found.program))
        if inner.stop_reason == "interrupted":
            return found.followed_by(replace(inner, program=found.program))
    if found.rewrites:  # they may leave more that no iteration changes
        run_passes(found.program, "hoist-invariants", verify_result=False)
    return found.followed_by(search_in_best_order(found.program, strategies, request))


def _bodies(program: Program) -> Iterator[tuple[ControlOp, int]]:
    """All bodies, the innermost first."""
    for op in reversed(list(program.main.walk())):
        if isinstance(op, ControlOp):
            yield from ((op, k) for k in range(len(op.bodies)))


def _put_back(op: ControlOp, number: int, module: ModuleOp) -> None:
    """Replace a body by the program that was made of it."""
    made = main_of(module).body
    with as_program(op, number) as own:
        region = main_of(own).body
        old = region.block
        region.detach_block(old)
        old.erase()
        block = made.block
        made.detach_block(block)
        region.add_block(block)
