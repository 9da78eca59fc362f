"""The commands import, check, run and zoo of `isoform`, and what commands share.

cli.py parses their flags; each other command has a file of its name.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.errors import UserError, one_line
from ...dialects.files import check_outputs
from ...dialects.program import Program
from ...dialects.types import Array
from .. import api
from ..frontends.models import load_static
from ..targets.session import Session
from .inputs import draw_inputs, read_inputs, write_outputs

# How many ops without native code `run` names.
_NAMED = 8


def load_model(arguments: Namespace) -> Program:
    """Load the program that MODEL, --shape, --batch and --seed name.

    Raises:
        UserError: as `api.load`; its shapes are not fixed.
    """
    shapes = dict(arguments.shape)
    return load_static(arguments.model, shapes, arguments.batch, arguments.seed)


def with_weights(path: str | None) -> tuple[str | None, ...]:
    """A file, and the file of weights that an .mlir has beside it."""
    if path is None or Path(path).suffix.lower() != ".mlir":
        return (path,)
    return path, str(Path(path).with_suffix(".safetensors"))


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(value, indent=2))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows as left-aligned columns, two spaces apart."""
    lines = [head, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def import_command(arguments: Namespace) -> int:
    """`isoform import MODEL -o OUT.mlir`."""
    if arguments.output != "-" and Path(arguments.output).suffix.lower() != ".mlir":
        raise UserError("an import is written as OUT.mlir", where=arguments.output)
    check_outputs([arguments.output])
    api.save(load_model(arguments), arguments.output)
    return 0


def check_command(arguments: Namespace) -> int:
    """`isoform check MODEL`: exit status 1 where `isoform run MODEL` would give 1."""
    from .check import check_model, format_check, run_failure

    path = Path(arguments.model)
    if path.suffix.lower() == ".onnx" and path.exists():
        found = check_model(path, dict(arguments.shape))
        failure = run_failure(lambda: load_model(arguments), arguments.seed)
    else:
        program = load_model(arguments)
        found, failure = check_model(program), run_failure(program.clone, arguments.seed)
    found = replace(found, tried=True, failure=failure)
    if arguments.json:
        print_json(found.as_json())
    else:
        print(format_check(found))
    return 0 if found.ok else 1


# --- run ----------------------------------------------------------------------------------------


def run_command(arguments: Namespace) -> int:
    """`isoform run MODEL`."""
    sources = (*with_weights(arguments.model), arguments.inputs)
    check_outputs([arguments.output, arguments.profile], sources)
    if arguments.output is not None and Path(arguments.output).suffix.lower() != ".npz":
        raise UserError("outputs are written as FILE.npz", where=arguments.output)
    find = load_static if arguments.inputs is None else api.load  # arrays bind dynamic dims
    program = find(arguments.model, dict(arguments.shape), arguments.batch, arguments.seed)
    if not arguments.reference and not arguments.no_optimize:
        program = api.improve(program, strict_nan=arguments.strict_nan)
    target = "reference" if arguments.reference else arguments.target
    how = (arguments.threads, arguments.effort, arguments.tolerance)
    flags = {"fast_math": arguments.fast_math, "strict_nan": arguments.strict_nan}
    session = api.compile(program, target, *how, **flags)
    feeds = _feeds(arguments, session)
    session, feeds = session.bound(feeds)
    started = time.perf_counter()
    outputs = dict(zip([o.name for o in session.outputs], session.run(None, feeds), strict=True))
    seconds = time.perf_counter() - started
    if arguments.output is not None:
        write_outputs(Path(arguments.output), outputs)
    _report_run(arguments, session, outputs, seconds)
    if arguments.profile is not None:
        found = session.profile(feeds)
        found.save(arguments.profile)
        print(found.table(), file=sys.stderr)
    return 0


def _feeds(arguments: Namespace, session: Session) -> dict[str, Array]:
    if arguments.inputs is not None:
        return read_inputs(Path(arguments.inputs), session.inputs)
    return draw_inputs(session.program, arguments.seed)


def _report_run(
    arguments: Namespace, session: Session, outputs: Mapping[str, Array], seconds: float
) -> None:
    rows = [summary(name, array) for name, array in outputs.items()]
    if arguments.json:
        calls = getattr(session.runner, "native_calls", None)
        host = [{"op": n, "seconds": s} for n, s in _on_host(session).items()]
        report = {"outputs": rows, "seconds": seconds, "native_calls": calls, "opaque": host}
        print_json(report)
    elif arguments.output is None:
        cells = [[_cell(value) for value in row.values()] for row in rows]
        print(table(["output", "shape", "dtype", "min", "max", "mean"], cells))
    _tell_opaque(_on_host(session), seconds)


def _on_host(session: Session) -> dict[str, float]:
    """Ops without native code, and the seconds that each took."""
    return dict(getattr(session.runner, "host_seconds", {}))


def _tell_opaque(host: Mapping[str, float], seconds: float) -> None:
    """Report on stderr which ops have no native code, slowest first, and their share of time."""
    if not host:
        return
    slowest = sorted(host.items(), key=lambda entry: -entry[1])
    named = [f"{name} {100 * part / seconds:.0f} %" for name, part in slowest[:_NAMED]]
    more = f" and {len(host) - _NAMED} more" if len(host) > _NAMED else ""
    share = 100 * sum(host.values()) / seconds
    print(
        f"isoform: {share:.0f} % of the time went to ops without native code: "
        + one_line(", ".join(named) + more),
        file=sys.stderr,
    )


def summary(name: str, array: Array) -> dict[str, Any]:
    """Name, shape, dtype, least, greatest and mean value (None where empty or not finite)."""
    wide = np.asarray(array).astype(np.float64)
    numbers = (wide.min(), wide.max(), wide.mean()) if wide.size else (np.nan,) * 3
    low, high, mean = (float(v) if np.isfinite(v) else None for v in numbers)
    return {
        "name": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "min": low,
        "max": high,
        "mean": mean,
    }


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "x".join(str(n) for n in value) or "scalar"
    return "-" if value is None else str(value)


# --- zoo ----------------------------------------------------------------------------------------


def zoo_command(arguments: Namespace) -> int:
    """`isoform zoo [NAME] [-o OUT]`."""
    from .. import zoo

    check_outputs([arguments.output])
    if arguments.name is None:
        if arguments.output is not None:
            raise UserError("which model is to be written?", where="-o", hint="isoform zoo NAME -o")
        _print_zoo([row.as_json() for row in zoo.table()], arguments.json)
        return 0
    name = arguments.name.removeprefix("zoo:")
    program = api.load(f"zoo:{name}", batch=arguments.batch, seed=arguments.seed)
    if arguments.output is not None:
        api.save(program, arguments.output)
    elif arguments.json:
        print_json(describe(program))
    else:
        print("\n".join(f"{key}: {value}" for key, value in describe(program).items()))
    return 0


def _print_zoo(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"models": list(rows)})
    elif rows:
        head = list(rows[0])
        print(table(head, [[_cell(row[key]) for key in head] for row in rows]))


def describe(program: Program) -> dict[str, Any]:
    """Inputs, outputs and op counts of a program."""
    ops: dict[str, int] = {}
    for op in program.main.body.block.ops:
        ops[op.name] = ops.get(op.name, 0) + 1
    return {
        "source": program.source,
        "inputs": {name: str(type_) for name, type_ in program.inputs.items()},
        "outputs": {name: str(type_) for name, type_ in program.outputs.items()},
        "ops": dict(sorted(ops.items())),
    }
