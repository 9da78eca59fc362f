"""Read a list of operators to tune: one a line, as `conv n=1 c=64 f=64 size=56x56 kernel=3x3`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError, did_you_mean
from ...dialects.files import read_whole
from ...dialects.program import Program

Sizes = Mapping[str, tuple[int, ...]]
# What each operator needs, and what it may have, with its default.
OPERATORS: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {
    "conv": (("c", "f", "size", "kernel"), {"n": 1, "stride": 1, "pad": 0, "group": 1}),
    "conv_transpose": (("c", "f", "size", "kernel"), {"n": 1, "stride": 1, "pad": 0}),
    "matmul": (("m", "k", "n"), {"batch": 1, "constant": 1}),
}


def read_operators(path: Path) -> Program:
    """A program with an output for each operator of a file.

    Raises:
        UserError: the file cannot be read, is empty, or a line is no operator.
    """
    try:
        text = read_whole(path).decode()
    except UnicodeDecodeError as error:
        raise UserError("this is no text", where=str(path)) from error
    builder = GraphBuilder()
    lines = [(k, line.partition("#")[0].split()) for k, line in enumerate(text.splitlines(), 1)]
    lines = [(k, words) for k, words in lines if words]
    if not lines:
        raise UserError("the file lists no operators", where=str(path))
    for k, words in lines:
        where = f"{path}:{k}"
        made = _add(builder, f"v{k}", words[0], _sizes(words, where), where)
        builder.output(f"y{k}", made)
    return builder.build(str(path))


def _sizes(words: list[str], where: str) -> Sizes:
    """The numbers of a line by name, with the defaults of its operator."""
    if words[0] not in OPERATORS:
        hint = did_you_mean(words[0], OPERATORS) or f"operators are {', '.join(OPERATORS)}"
        raise UserError(f"unknown operator '{words[0]}'", where=where, hint=hint)
    needed, defaults = OPERATORS[words[0]]
    found: dict[str, tuple[int, ...]] = {name: (value,) for name, value in defaults.items()}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        parts = value.split("x")
        if not equals or not all(part.isdecimal() for part in parts):
            raise UserError("expected NAME=NUMBER or NAME=AxB", where=where, found=word)
        if name not in (*needed, *defaults):
            known = ", ".join((*needed, *defaults))
            raise UserError(f"'{words[0]}' has no '{name}'", where=where, hint=f"it has {known}")
        found[name] = tuple(int(part) for part in parts)
    missing = next((name for name in needed if name not in found), None)
    if missing is not None:
        raise UserError(f"'{words[0]}' needs {missing}=", where=where)
    return found


def _add(b: GraphBuilder, name: str, kind: str, sizes: Sizes, where: str) -> SSAValue:
    one = {key: value[0] for key, value in sizes.items()}
    if kind == "matmul":
        batch = (one["batch"],) if one["batch"] > 1 else ()
        left = b.input(f"{name}a", (*batch, one["m"], one["k"]))
        right = (*batch, one["k"], one["n"])
        constant = one["constant"] > 0
        return b.matmul(left, _weight(b, name, right) if constant else b.input(f"{name}b", right))
    size, kernel = sizes["size"], sizes["kernel"]
    rank = len(size)
    spread = {
        n: list(sizes[n] * rank if len(sizes[n]) == 1 else sizes[n]) for n in ("stride", "pad")
    }
    kernel = kernel * rank if len(kernel) == 1 else kernel
    if any(len(values) != rank for values in (kernel, *spread.values())):
        raise UserError("kernel, stride and pad have a number for each of size", where=where)
    x = b.input(f"{name}x", (one["n"], one["c"], *size))
    geometry: dict[str, Any] = {
        "strides": spread["stride"],
        "pads": spread["pad"] * 2,
        "dilations": [1] * rank,
    }
    if kind == "conv_transpose":
        w = _weight(b, name, (one["c"], one["f"], *kernel))
        return b.conv_transpose(x, w, output_padding=[0] * rank, **geometry)
    w = _weight(b, name, (one["f"], one["c"] // max(1, one["group"]), *kernel))
    return b.conv(x, w, groups=one["group"], **geometry)


def _weight(b: GraphBuilder, name: str, shape: tuple[int, ...]) -> SSAValue:
    data = np.random.default_rng(0).standard_normal(shape) / math.sqrt(max(1, math.prod(shape[1:])))
    return b.weight(f"{name}w", data.astype(np.float32))
