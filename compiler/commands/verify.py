"""`isoform verify A B` and `isoform verify CERTIFICATE`: is this the same program?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...dialects.errors import UsageError, is_quiet
from ...dialects.program import Program
from ...passes.equivalence import Difference, OutputVerdict, Verdict, fresh_seed
from ..frontends.models import load as load_any
from ..frontends.models import load_static
from ..reports.comparison import compared
from ..reports.report_text import precision_line
from .subcommands import print_json


def verify_command(arguments: Namespace) -> int:
    """`isoform verify A B` or `isoform verify CERTIFICATE`.

    Returns:
        0 if the programs are equal, 1 if they differ, nothing is known, or the certificate says
        that the precision was lowered.
    """
    paths: list[str] = arguments.files
    if len(paths) == 1:
        return _certificate(arguments, paths[0])
    if len(paths) > 2:
        raise UsageError("two programs are compared at a time", found=len(paths))
    first, second = (_loaded(arguments, path) for path in paths)
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    verdict = compared(first, second, seed=seed, budget=arguments.budget)
    if arguments.json:
        print_json({"first": paths[0], "second": paths[1], **verdict.as_json()})
    elif not is_quiet():
        print(in_words(verdict))
    return 0 if verdict.is_equal else 1


def _loaded(arguments: Namespace, path: str) -> Program:
    return load_any(path, dict(arguments.shape), arguments.batch, arguments.zoo_seed)


def load(arguments: Namespace, path: str, seed: int) -> Program:
    """The program at a path, dynamic dims bound by --shape."""
    return load_static(path, dict(arguments.shape), arguments.batch, seed)


def _certificate(arguments: Namespace, path: str) -> int:
    if Path(path).suffix.lower() != ".json":
        hint = "isoform verify A B, or isoform verify CERTIFICATE.json"
        raise UsageError("the second program is missing", where=path, hint=hint)
    from ..reports.check_certificate import recheck

    checked = recheck(Path(path), arguments.budget, arguments.seed)
    verdict, body = checked.verdict, checked.body
    precision: dict[str, Any] | None = body.get("precision")
    if arguments.json:
        found = {"certificate": path, "source": body["source"]["name"]}
        found |= {"result": body["result"]["name"], "not_checked": checked.unchecked}
        print_json({**found, **_answer(verdict, precision)})
    else:
        print(f"{path}: source, result and certificate are unchanged")
        if precision is not None:
            print(f"{precision_line(precision)}\nto the source computed so the result is")
        print(in_words(verdict))
        print(f"compared with what the certificate says: {', '.join(checked.compared)}")
        print("as the certificate says, not checked again:")
        print("\n".join(f"  {name}: {value}" for name, value in checked.unchecked.items()))
    return 0 if verdict.is_equal and precision is None else 1


def _answer(verdict: Verdict, precision: Mapping[str, Any] | None) -> dict[str, Any]:
    """A verdict for `--json`. With a lowered precision it is of the source lowered so."""
    if precision is None:
        return verdict.as_json()
    return {"kind": "different", "precision": precision, "to_the_lowered": verdict.as_json()}


# --- a verdict in words -------------------------------------------------------------------------


def in_words(verdict: Verdict) -> str:
    """The kind of the verdict, its claim, and a line for each output."""
    lines = [f"{verdict.kind}: {verdict.text()}"]
    lines += [_output(output) for output in verdict.outputs]
    if verdict.sizes is not None:
        lines.append(verdict.sizes.text())
    if verdict.is_equal:
        lines.append(f"probability of a wrong answer: at most {bound_text(verdict.error_bound)}")
    if verdict.difference is not None:
        lines.append(_witness(verdict.difference))
    lines.append(f"random draws: --seed {verdict.seed} repeats them")
    return "\n".join(lines)


def bound_text(bound: float) -> str:
    """A probability; 0 means that no random draw was needed."""
    return "0 (no random draw was needed)" if bound == 0 else f"{bound:.1e}"


def _output(output: OutputVerdict) -> str:
    methods = f" by {', '.join(output.methods)}" if output.methods else ""
    reason = f": {output.reason}" if output.reason else ""
    return f"output '{output.name}': {output.kind}{methods}{reason}"


def _witness(found: Difference) -> str:
    if not found.witness:
        return "the values are residues modulo a prime: they differ as polynomials"
    if found.steps:
        return (
            "the values are the float64 reference's, on inputs that are "
            f"{len(found.steps)} draws added (--json lists their seeds and factors)"
        )
    if found.pool:
        return (
            "the values are the float64 reference's, on inputs drawn with "
            f"seed {found.seed} from {len(found.pool)} numbers (--json lists them)"
        )
    return (
        "the values are the float64 reference's, on inputs drawn with "
        f"seed {found.seed}, scale {found.scale:g}"
    )


__all__ = ["bound_text", "in_words", "load", "verify_command"]
