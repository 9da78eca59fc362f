"""`isoform optimize MODEL --sizes NAME=N,N`: a model with symbolic dims that keeps them."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from ...dialects.errors import UsageError, is_quiet, say
from ...dialects.files import write_whole
from .. import api
from ..frontends.models import load as load_any
from .calm_block import calm_block
from .explain import show
from .in_words import explain
from .interrupts import STATUS, interrupts

Sizes = dict[str, int]


def optimize_at_sizes_command(arguments: Namespace) -> int:
    """Search at the sizes given, prove the result at every size, and write it.

    Raises:
        UserError: the flags exclude each other, or as `api.optimize`.
    """
    _check(arguments)
    sizes = points(arguments.sizes)
    program = load_any(arguments.model, dict(arguments.shape), arguments.batch, arguments.seed)
    with interrupts("the search ends, nothing is written") as seen:
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
                fast_math=arguments.fast_math,
                strict_nan=arguments.strict_nan,
                rules=arguments.rules,
                pipeline=arguments.pipeline,
                precision=arguments.precision,
                sizes=sizes,
            )
        with seen.writing():
            if arguments.output is not None:
                api.save(better, arguments.output)
            if arguments.report is not None:
                write_whole(arguments.report, json.dumps(better.report, indent=1) + "\n")
            if arguments.json:
                print(json.dumps(better.report, indent=2))
            elif arguments.output == "-":
                say(explain(better.report))
            elif not is_quiet():
                show(better.report)
    return STATUS if seen.count else 0


def points(given: list[tuple[str, tuple[int, ...]]]) -> list[Sizes]:
    """Sizes of all dims, from lists by dim that are read side by side; a single one stays.

    Example:
        --sizes seq=16,128 --sizes batch=1     seq=16 batch=1, then seq=128 batch=1

    Raises:
        UsageError: a dim is given twice, has no size or 0, or two lists differ in length.
    """
    lists = dict(given)
    if len(lists) < len(given):
        raise UsageError("a dim is given twice", where="--sizes")
    if not all(numbers and all(numbers) for numbers in lists.values()):
        raise UsageError("sizes are at least 1", where="--sizes", hint="--sizes seq=16,128")
    counts = {len(numbers) for numbers in lists.values()} - {1}
    if len(counts) > 1:
        hint = "lists are read side by side: seq=16,128 batch=1,4"
        raise UsageError("lists of different length", where="--sizes", hint=hint)
    return [
        {name: numbers[k if len(numbers) > 1 else 0] for name, numbers in lists.items()}
        for k in range(max([1, *counts]))
    ]


def _check(arguments: Namespace) -> None:
    suffix = Path(arguments.output or "-").suffix.lower()
    if arguments.emit not in (None, "graph") or suffix not in ("", ".mlir", ".onnx"):
        raise UsageError("a program with symbolic dims is at the graph level", where="--emit")
    if arguments.certificate is not None:
        hint = "isoform verify MODEL OUT proves the result again"
        raise UsageError("certificates are of fixed shapes", where="--certificate", hint=hint)


__all__: tuple[str, ...] = ("optimize_at_sizes_command", "points")
