"""An index that is data and out of range is one error on every path, never a neighbour's value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from isoform.compiler import api, cli
from isoform.compiler.commands.inputs import write_outputs
from isoform.compiler.targets import cpu
from isoform.compiler.targets.cpu import compile_cpu
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.session import Session
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.types import Array, from_numpy
from isoform.lowering.kernel_to_cpu.program_store import StoredSession
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.onnx_to_graph import import_onnx

KINDS = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")


@dataclass
class Case:
    """One node, its operands, the sizes that bound its indices, and where the indices are data."""

    kind: str
    feeds: dict[str, Array]
    sizes: Array
    attributes: dict[str, int]

    def model(self, constant: bool) -> onnx.ModelProto:
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.feeds.items()
            if not (constant and n == "i")
        ]
        node = helper.make_node(self.kind, list(self.feeds), ["y"], name="n", **self.attributes)
        output = onnx.ValueInfoProto(name="y")
        weights = [numpy_helper.from_array(self.feeds["i"], "i")] if constant else []
        graph = helper.make_graph([node], "g", infos, [output], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def bounds(self) -> Array:
        return np.broadcast_to(self.sizes, self.feeds["i"].shape)

    def meaning(self) -> Array:
        """By the definition, element by element."""
        x, i = (
            self.feeds["x"],
            np.where(self.feeds["i"] < 0, self.feeds["i"] + self.bounds(), self.feeds["i"]),
        )
        axis, batch = self.attributes.get("axis", 0), self.attributes.get("batch_dims", 0)
        if self.kind == "Gather":
            return np.take(x, i, axis=axis)
        if self.kind == "GatherElements":
            grid = list(np.indices(i.shape))
            grid[axis] = i
            return x[tuple(grid)]
        if self.kind == "ScatterElements":
            out, grid = x.copy(), list(np.indices(i.shape))
            grid[axis] = i
            out[tuple(grid)] = self.feeds["u"]
            return out
        if self.kind == "ScatterND":
            out = x.copy()
            for position in np.ndindex(i.shape[:-1]):
                out[tuple(i[position])] = self.feeds["u"][position]
            return out
        shape = (*i.shape[:-1], *x.shape[batch + i.shape[-1] :])
        out = np.empty(shape, x.dtype)
        for position in np.ndindex(i.shape[:-1]):
            out[position] = x[(*position[:batch], *i[position])]
        return out


def drawn(rng: np.random.Generator) -> Case:
    """A node whose indices are all in range and, where they are written to, all different."""
    kind = str(rng.choice(KINDS))
    shape = [int(n) for n in rng.integers(1, 5, rng.integers(1, 4))]
    axis, attributes = int(rng.integers(-len(shape), len(shape))), {}
    sizes: Any
    if kind == "Gather":
        positions, sizes = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))], shape[axis]
    elif kind.endswith("Elements"):
        positions, sizes = [int(rng.integers(1, n + 1)) for n in shape], shape[axis]
    else:
        batch = int(kind == "GatherND" and len(shape) > 1 and rng.random() < 0.5)
        depth = int(rng.integers(1, len(shape) - batch + 1))
        positions = [*shape[:batch], int(rng.integers(1, 4)), depth]
        sizes = shape[batch : batch + depth]
        attributes = {"batch_dims": batch} if batch else {}
    if not kind.endswith("ND"):
        attributes = {"axis": axis}
    dtype = np.int64 if kind.endswith("ND") else rng.choice([np.int32, np.int64])
    high = np.broadcast_to(np.asarray(sizes), positions)
    indices = np.asarray(rng.integers(-high, high), dtype).reshape(positions)
    feeds = {"x": rng.standard_normal(shape).astype(np.float32), "i": indices}
    if kind.startswith("Scatter"):
        if kind == "ScatterElements":
            orders = [rng.permutation(shape[axis])[: positions[axis]] for _ in range(indices.size)]
            columns = np.moveaxis(indices, axis, -1)
            for k, position in enumerate(np.ndindex(columns.shape[:-1])):
                columns[position] = orders[k]
            rest = positions
        else:
            flat = rng.permutation(int(np.prod(sizes)))[: positions[0]]
            feeds["i"] = np.stack(np.unravel_index(flat, sizes), axis=-1).astype(np.int64)
            rest = [len(flat), *shape[len(sizes) :]]
        feeds["u"] = rng.standard_normal(rest).astype(np.float32)
    return Case(kind, feeds, np.asarray(sizes), attributes)


def spoilt(case: Case, rng: np.random.Generator) -> tuple[Case, str]:
    """The same with some indices out of range, and the first as the error names it."""
    indices, bounds = case.feeds["i"].copy(), case.bounds()
    limits = np.iinfo(indices.dtype)
    # Of several columns any may be looked at first.
    most = 1 if case.kind.endswith("ND") else min(2, indices.size)
    for position in rng.choice(indices.size, most, replace=False):
        size = int(bounds.ravel()[position])
        value = rng.choice([size, size + 1, -size - 1, 9 * size, limits.max, limits.min])
        indices.reshape(-1)[position] = value
    outside = (indices < -bounds) | (indices >= bounds)
    position = np.unravel_index(np.flatnonzero(outside)[0], indices.shape)
    named = f"index {indices[position]}", f"{-bounds[position]} to {bounds[position] - 1}"
    return Case(case.kind, {**case.feeds, "i": indices}, case.sizes, case.attributes), "|".join(
        named
    )


def answers(case: Case, constant: bool, threads: int) -> list[Array | str]:
    """What each path gives: an array, or the error. Twice each: an error spoils no later run."""
    found: list[Array | str] = []
    feeds = {n: a for n, a in case.feeds.items() if not (constant and n == "i")}
    for target in ("cpu", "reference"):
        try:
            session = api.compile(import_onnx(case.model(constant)), target, threads, "quick")
        except UserError as error:
            found.append(str(error))
            continue
        for _ in range(2):
            try:
                found.append(session(**feeds)["y"])
            except UserError as error:
                found.append(str(error))
    return found


def check(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k in range(count):
        case, constant = drawn(rng), bool(k % 3 == 0)
        for answer in answers(case, constant, 1 + k % 2):
            assert not isinstance(answer, str), answer
            np.testing.assert_array_equal(answer, case.meaning())
        wrong, named = spoilt(case, rng)
        for answer in answers(wrong, constant, 1 + k % 2):
            assert isinstance(answer, str), (wrong, answer)
            assert "'n'" in answer and "\n" not in answer
            assert all(part in answer for part in named.split("|")), (named, answer)


def test_indices_out_of_range_are_errors_on_every_path() -> None:
    check(60, 0)


@pytest.mark.slow
def test_indices_out_of_range_are_errors_on_every_path_in_full() -> None:
    check(800, 1)


# --- compiled programs ---


def chain(steps: int = 1) -> Program:
    """Rows of a table at positions that are computed, used and overwritten before the end."""
    b = GraphBuilder()
    i = b.input("i", (2, 40), from_numpy(np.dtype(np.int64)))
    table = b.weight("w", np.arange(300, dtype=np.float32).reshape(100, 3))
    with b.at("rows"):
        y = b.gather(table, b.add(i, i), axis=0)
    for k in range(steps):
        y = b.relu(b.mul(y, b.softmax(y, axis=k % 3)))
    b.output("y", y)
    return b.build()


WRONG = np.full((2, 40), 3)
WRONG[1, 7], WRONG[1, 30] = 50, -51


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_wrong_index_is_named_though_its_memory_has_been_used_again(threads: int) -> None:
    session = api.compile(chain(4), threads=threads, effort="quick")
    right = session(np.full((2, 40), 3))["y"]
    for _ in range(5):
        with pytest.raises(UserError) as caught:
            session(WRONG)
        expected = "graph.gather 'rows': index 100 at [1, 7] is out of range: expected -100 to 99"
        assert str(caught.value).startswith(expected)
        np.testing.assert_array_equal(session(np.full((2, 40), 3))["y"], right)


def test_a_stored_program_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    monkeypatch.setattr(cpu, "_package_state", lambda: "frozen")
    program, said = chain(3), list[str]()
    for kind in (CpuSession, StoredSession):
        runner = compile_cpu(program, CpuOptions(1, "quick"))
        assert isinstance(runner, kind)
        with pytest.raises(UserError) as caught:
            Session(program, runner)(WRONG)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_indices_that_an_op_run_on_the_host_makes_are_checked() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] x, float[6,2] t) => (float[3,2] y) {
        k = Constant <value: tensor = int64[1] {3}> ()
        top, positions = TopK(x, k)
        three = Constant <value: tensor = int64 {3}> ()
        moved = Mul(positions, three)
        y = Gather(t, moved)
    }"""
    session = api.compile(import_onnx(onnx.parser.parse_model(text)), effort="quick")
    table = np.zeros((6, 2), np.float32)
    with pytest.raises(UserError, match=r"'y': index 9 at \[0\] is out of range"):
        session(np.asarray([0, 1, 2, 9, 8, 7], np.float32), table)


def test_a_table_without_rows() -> None:
    b = GraphBuilder()
    i = b.input("i", (2,), from_numpy(np.dtype(np.int64)))
    b.output("y", b.gather(b.input("x", (0, 3)), i, axis=0))
    program, empty = b.build(), np.zeros((0, 3), np.float32)
    for target in ("cpu", "reference"):
        with pytest.raises(UserError, match=r"index 0 at \[0\] is out of range: the dim is empty"):
            api.compile(program, target)(np.zeros(2, np.int64), empty)


def test_run_exits_1_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.save(chain(), tmp_path / "m.mlir")
    write_outputs(tmp_path / "i.npz", {"i": WRONG})
    arguments = ["run", str(tmp_path / "m.mlir"), "--inputs", str(tmp_path / "i.npz")]
    for more in ([], ["--no-optimize", "--effort", "quick"], ["--reference"]):
        assert cli.main([*arguments, "--output", str(tmp_path / "o.npz"), *more]) == 1
        line = capsys.readouterr().err
        assert re.fullmatch(r"isoform: error: .*'rows': index 100 at \[1, 7\].*\n", line)
        assert not (tmp_path / "o.npz").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "float[2,1] x, int64[1,2] i) => (float y) { y = GatherElements <axis = 0> (x, i)",
            "more indices than rows",
        ),
        (
            "float[2,2] x, int64[1,1] i) => (float y) { y = GatherND <batch_dims = 1> (x, i)",
            "batch dims differ",
        ),
    ],
)
def test_indices_of_a_shape_that_reads_beside_the_operand(text: str, words: str) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g ('
    proto = onnx.parser.parse_model(f"{head}{text} }}")
    with pytest.raises(UserError, match=words):
        import_onnx(proto)
