"""`--sizes NAME=N,N`: sizes that stand for all those of a program with symbolic dims."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from ...dialects.errors import UsageError


def size_points(given: list[tuple[str, tuple[int, ...]]]) -> list[dict[str, int]]:
    """Sizes of all dims, from a list for each dim, read side by side; a single size stays.

    Example:
        --sizes seq=16,128 --sizes batch=1     seq=16 batch=1, then seq=128 batch=1

    Raises:
        UsageError: a dim is given twice, has no size or 0, or two lists differ in length.
    """
    if not given:
        return []
    lists = dict(given)
    if len(lists) < len(given):
        raise UsageError("a dim is given twice", where="--sizes")
    if not all(numbers and all(numbers) for numbers in lists.values()):
        raise UsageError("a size is at least 1", where="--sizes", hint="--sizes seq=16,128")
    counts = {len(numbers) for numbers in lists.values()} - {1}
    if len(counts) > 1:
        hint = "lists are read side by side: --sizes seq=16,128 --sizes batch=1,4"
        raise UsageError("the lists differ in length", where="--sizes", hint=hint)
    return [
        {name: numbers[k if len(numbers) > 1 else 0] for name, numbers in lists.items()}
        for k in range(max(counts, default=1))
    ]


def check_with_sizes(arguments: Namespace) -> None:
    """Raise UsageError for flags of `optimize` that need fixed shapes."""
    to_file = arguments.output not in (None, "-")
    if to_file and Path(arguments.output).suffix.lower() != ".mlir":
        raise UsageError("symbolic dims are written as IR", where="-o", hint="-o OUT.mlir")
    if arguments.emit not in (None, "graph"):
        raise UsageError("a program with symbolic dims is at the graph level", where="--emit")


__all__ = ["check_with_sizes", "size_points"]
