"""`isoform optimize`: search, then write the result, its report and its certificate."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from ...dialects.errors import UnboundDims, UsageError, UserError, is_quiet, say
from ...dialects.files import check_outputs, write_whole
from ...dialects.floats import Allowed
from ...dialects.program import Program, add_pipeline, pipeline_of
from ...dialects.types import Array
from .. import api
from ..frontends.models import load as load_any
from ..reports.report_text import report_text
from ..targets.cpu_options import CpuOptions
from ..targets.levels import lower_to, tuned
from ..targets.value_info import ValueInfo
from .calm_block import calm_block
from .explain import show
from .inputs import read_inputs
from .interrupts import STATUS, Interrupts, interrupts
from .size_points import check_with_sizes, size_points
from .subcommands import load_model, print_json, with_weights


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
    program = _loaded(arguments)
    with interrupts("what was found is compared and written; Ctrl-C again stops") as seen:
        _optimize(arguments, program, emit, seen)
    return STATUS if seen.count else 0


def _loaded(arguments: Namespace) -> Program:
    """The model; with --sizes, its dims need no numbers."""
    if not arguments.sizes:
        try:
            return load_model(arguments)
        except UnboundDims as error:
            error.hint = f"{error.hint}, or --sizes DIM=16,128 to keep them"
            raise
    return load_any(arguments.model, dict(arguments.shape), arguments.batch, arguments.seed)


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
            sizes=size_points(arguments.sizes),
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
            write_whole(arguments.report, json.dumps(_report(arguments, better), indent=1) + "\n")
        if arguments.json:
            print_json(better.report)
        elif arguments.output == "-":
            say(report_text(better.report))
        elif not is_quiet():
            show(better.report)


def _report(arguments: Namespace, better: api.Optimized) -> dict[str, Any]:
    """The report with the program at each level; one with symbols, at the first of its sizes."""
    from ..reports.program_graphs import levels_of

    if not arguments.sizes:
        return {**better.report, "levels": levels_of(better, _options(arguments, better))}
    from ..search.at_sizes import shown_at

    first = shown_at(better, size_points(arguments.sizes)[0])
    return {**better.report, "levels": levels_of(first, None)}


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
    if arguments.sizes:
        check_with_sizes(arguments)
        return "graph"
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
