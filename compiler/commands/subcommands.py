"""The subcommands of `isoform`; cli.py parses their flags."""

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

from ...dialects.errors import UsageError, UserError, is_quiet, one_line, say
from ...dialects.files import check_outputs, write_whole
from ...dialects.floats import Allowed
from ...dialects.program import Program, add_pipeline, pipeline_of
from ...dialects.types import Array
from .. import api
from ..frontends.models import load_static
from ..reports.in_words import explain
from ..targets.cpu_options import CpuOptions
from ..targets.levels import lower_to, tuned
from ..targets.session import Session
from ..targets.value_info import ValueInfo
from .calm_block import calm_block
from .explain import show
from .inputs import draw_inputs, read_inputs, write_outputs
from .interrupts import STATUS, Interrupts, interrupts

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


# --- optimize -----------------------------------------------------------------------------------


def optimize_command(arguments: Namespace) -> int:
    """`isoform optimize MODEL -o OUT`."""
    emit = _emit_level(arguments)
    sources = (arguments.rules, arguments.cost_file, arguments.precision_inputs, *arguments.plugin)
    # OUT may take the place of MODEL, what is written about it may not.
    about = (arguments.report, arguments.certificate)
    check_outputs([*with_weights(arguments.output), *about], sources)
    check_outputs(about, with_weights(arguments.model))
    if arguments.certificate is not None and arguments.output in (None, "-"):
        raise UsageError("a certificate is of a written result", hint="say where with -o OUT")
    program = load_model(arguments)
    with interrupts("what was found is compared and written; Ctrl-C again stops") as seen:
        _optimize(arguments, program, emit, seen)
    return STATUS if seen.count else 0


def _optimize(arguments: Namespace, program: Program, emit: str, seen: Interrupts) -> None:
    """Search and write the outputs; after Ctrl-C, with what was found until then."""
    with calm_block(f"{program.source} for {arguments.target}", arguments.budget):
        better = api.optimize(
            program,
            target=arguments.target,
            strategy=arguments.strategy,
            budget=arguments.budget,
            seed=arguments.seed,
            cost_file=arguments.cost_file,
            threads=arguments.threads,
            effort=arguments.effort,
            tolerance=arguments.tolerance,
            level=emit,
            fast_math=arguments.fast_math,
            strict_nan=arguments.strict_nan,
            rules=arguments.rules,
            allow_unproved=arguments.allow_unproved,
            pipeline=arguments.pipeline,
            precision=arguments.precision,
            precision_error=arguments.precision_error,
            precision_inputs=_precision_inputs(arguments, program),
        )
    if arguments.output is not None:
        with seen.writing():
            written = _to_write(arguments, better, emit)
        if Path(arguments.output).suffix.lower() == ".onnx":
            _compare_there(arguments, program, better, written)
        with seen.writing():
            api.save(written, arguments.output)
        if arguments.certificate is not None:
            _certify_unless_interrupted(arguments, better, written)
    with seen.writing():
        if arguments.report is not None:
            from ..reports.program_graphs import levels_of

            whole = {**better.report, "levels": levels_of(better, _options(arguments, better))}
            write_whole(arguments.report, json.dumps(whole, indent=1) + "\n")
        if arguments.json:
            print_json(better.report)
        elif arguments.output == "-":
            say(explain(better.report))
        elif not is_quiet():
            show(better.report)


def _precision_inputs(arguments: Namespace, program: Program) -> dict[str, Array] | None:
    """The arrays that errors of lower precision are measured on, where they are given."""
    if arguments.precision_inputs is None:
        return None
    if arguments.precision is None:
        raise UsageError("--precision-inputs needs --precision", hint="--precision bf16")
    infos = [ValueInfo.of(n, t, n in program.defaults) for n, t in program.inputs.items()]
    return read_inputs(Path(arguments.precision_inputs), infos)


def _certify_unless_interrupted(
    arguments: Namespace, better: api.Optimized, written: Program
) -> None:
    try:
        _certify(arguments, better, written)
    except KeyboardInterrupt:
        text = "interrupted: no certificate was written"
        better.report["message"] = "; ".join(x for x in (better.report["message"], text) if x)


def _compare_there(
    arguments: Namespace, program: Program, better: api.Optimized, written: Program
) -> None:
    """Add to the report how fast onnxruntime runs the file about to be written."""
    from ..checks import written_onnx as there

    started = time.perf_counter()
    asked = {"batch": arguments.batch, "seed": arguments.seed, "threads": arguments.threads}
    usual = {"batch": 1, "seed": 0, "threads": 1}
    flags = {key: value for key, value in asked.items() if value != usual[key]}
    shapes = dict(arguments.shape)
    command = there.repeat_command(arguments.model, arguments.output, shapes, flags)
    found = there.compare_in_onnxruntime(
        program, arguments.model, written, arguments.threads, arguments.seed, command
    )
    report = better.report
    report["onnxruntime"] = found
    report["stages_s"]["onnxruntime"] = time.perf_counter() - started
    lines = (report["message"], there.slower_there(found))
    report["message"] = "; ".join(line for line in lines if line)


def _to_write(arguments: Namespace, better: api.Optimized, emit: str) -> Program:
    """The result at the level it is written at; for kernels, with the measured choices."""
    options = _options(arguments, better)
    if emit != "kernel" or options is None:
        return lower_to(better, emit)
    written = tuned(better, options)
    add_pipeline(written.module, f"tune{{effort={options.effort} tolerance={options.tolerance}}}")
    return written


def _options(arguments: Namespace, better: api.Optimized) -> CpuOptions | None:
    """How the result's kernels were chosen by measuring; None where they were not."""
    if better.cost["kind"] != "measured" or arguments.effort == "quick":
        return None
    floats = Allowed(arguments.fast_math, arguments.strict_nan)
    return CpuOptions(arguments.threads, arguments.effort, arguments.tolerance, floats=floats)


def _certify(arguments: Namespace, better: api.Optimized, written: Program) -> None:
    """Compare what was written with the source and write the certificate."""
    from ..reports import certificate as of
    from ..targets.cpu import algorithms

    source = of.NamedModel(arguments.model, dict(arguments.shape), arguments.batch, arguments.seed)
    rewrites = [*of.lasting_rewrites(better.report), *algorithms(written)]
    passes, precision = pipeline_of(written.module), of.lowered_precision(better.report)
    work = of.CertifiedWork(passes, rewrites, arguments.seed, arguments.tolerance, precision)
    # A user who lets the search take longer has a large model, which takes longer to compare, too.
    budget = max(60.0, arguments.budget)
    verdict = of.certify(source, Path(arguments.output), work, Path(arguments.certificate), budget)
    better.report["verdict"] = verdict.as_json()
    if not verdict.is_equal:
        print(f"isoform: {arguments.certificate}: {verdict.text()}", file=sys.stderr)


def _emit_level(arguments: Namespace) -> str:
    """The level the output is written at; wrong combinations fail before any work."""
    to_file = arguments.output not in (None, "-")
    suffix = Path(arguments.output).suffix.lower() if to_file else ".mlir"
    if suffix not in (".mlir", ".onnx"):
        raise UserError("an output is FILE.mlir or FILE.onnx", where=arguments.output)
    if suffix == ".onnx":
        if arguments.emit not in (None, "graph"):
            hint = "OUT.mlir holds every level"
            raise UserError("an .onnx holds the graph level only", where="--emit", hint=hint)
        return "graph"
    return arguments.emit or "kernel"


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
