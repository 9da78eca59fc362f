"""`isoform bisect A -p PIPELINE`, `isoform bisect A B`: which rewrite made the program wrong?"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ...dialects.context import with_weights
from ...dialects.errors import UsageError, UserError
from ...dialects.files import read_json
from ...dialects.program import Program, pipeline_of
from ...passes.equivalence import compare
from ...passes.same_interface import check_comparable
from ...passes.verify_equivalence import without_time
from ..checks.bisection import Culprit, bisect
from ..pass_manager import make_passes
from ..registry import make_context, multiverse
from .subcommands import print_json
from .verify import load


def bisect_command(arguments: Namespace) -> int:
    """`isoform bisect A [B] [-p PIPELINE]`.

    Returns:
        0 if every pass keeps the program (and B, if given, is equal to it), else 1.
    """
    if (arguments.result is None) == (arguments.passes is None):
        hint = "isoform bisect A -p PIPELINE, or isoform bisect A B"
        raise UsageError("one of B and -p PIPELINE is needed", hint=hint)
    program = load(arguments, arguments.model, arguments.seed)
    result = _result(arguments)
    pipeline = arguments.passes
    if pipeline is None:
        pipeline = _pipeline(arguments.result, result)
    universe = multiverse()
    passes = make_passes(pipeline, universe.all_passes)
    context = with_weights(make_context(universe), program.weights)
    culprit = bisect(program, passes, context, arguments.seed, arguments.budget)
    outcome = (
        None
        if culprit is not None or result is None
        else _why_not_the_program(arguments, program, result)
    )
    _print(arguments, pipeline, culprit, outcome)
    return 0 if culprit is None and outcome is None else 1


def _result(arguments: Namespace) -> Program | None:
    """The program B; None if there is none, or if B is a report or certificate."""
    path = arguments.result
    if path is None or Path(path).suffix.lower() == ".json":
        return None
    return load(arguments, path, arguments.seed)


def _pipeline(path: str, result: Program | None) -> str:
    """The passes that made B, from B itself or from its report or certificate."""
    found = pipeline_of(result.module) if result is not None else _recorded(path)
    if not found:
        hint = "isoform bisect A -p PIPELINE runs one"
        raise UserError("it does not say which passes made it", where=path, hint=hint)
    return found


def _recorded(path: str) -> str:
    """The pipeline of a certificate, or of a report of `optimize`."""
    found: Any = read_json(path)
    body = found.get("body") if isinstance(found, dict) else None
    if isinstance(body, dict) and isinstance(body.get("pipeline"), str):
        return body["pipeline"]
    steps = found.get("passes") if isinstance(found, dict) else None
    if not isinstance(steps, list) or not all(isinstance(s, dict) and "name" in s for s in steps):
        raise UserError(
            "this is neither a certificate nor a report of isoform optimize", where=path
        )
    return ",".join(str(step["name"]) for step in steps)


def _why_not_the_program(arguments: Namespace, program: Program, result: Program) -> str | None:
    """Why B is not the program although its passes keep it, or None."""
    check_comparable(program, result)
    verdict = compare(program, result, seed=arguments.seed, budget=arguments.budget)
    return None if verdict.is_equal else without_time(verdict)


def _print(
    arguments: Namespace, pipeline: str, culprit: Culprit | None, outcome: str | None
) -> None:
    if arguments.json:
        found = None if culprit is None else culprit.as_json()
        print_json({"pipeline": pipeline, "culprit": found, "result": outcome})
    elif culprit is not None:
        print(f"the program differs after {culprit.text()}")
    elif outcome is not None:
        print(f"every pass keeps the program, but the result is not what they make: {outcome}")
    else:
        print("every pass keeps the program")
