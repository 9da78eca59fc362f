"""`optimize(..., sizes=)`: the result keeps its symbolic dims and is right at every size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.compiler.api import Optimized
from isoform.compiler.cli import main
from isoform.compiler.reports.certificate import body_hash, file_entry
from isoform.compiler.search import at_sizes
from isoform.compiler.search.strategies import Strategy
from isoform.dialects.errors import UserError
from isoform.dialects.floats import ROUNDING
from isoform.dialects.program import Program
from isoform.dialects.shape_guards import shape_env, symbols_of
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.conditions import holds
from isoform.passes.rules.graph_form import Tables
from isoform.passes.rules.op_table import OpTable
from isoform.passes.saturation.right_sides import shapes_in
from isoform.passes.search_result import Applied, Limits, SearchResult

# Two products of one input that are added, and a branch that only sizes tell apart from them.
PRODUCTS = """
func.func @main(%x: tensor<?x64xf32, #graph.dims<n, 64>>, %w: tensor<64x64xf32>,
                %v: tensor<64x64xf32>) -> tensor<?x64xf32, #graph.dims<n, 64>>
    attributes {isoform.sizes = {n = 128 : i64}} {
  %a = graph.matmul %x, %w : tensor<?x64xf32, #graph.dims<n, 64>>
  %b = graph.matmul %x, %v : tensor<?x64xf32, #graph.dims<n, 64>>
  %y = graph.add %a, %b : tensor<?x64xf32, #graph.dims<n, 64>>
  func.return %y : tensor<?x64xf32, #graph.dims<n, 64>>
}
"""
# In place of its last line: another result where n is 1.
WRONG_AT_ONE = """%i = graph.iota {size = [n]} : tensor<?xi64, #graph.dims<n>>
  %l = graph.reduce_max %i {axes = [0], keep_dims = false} : tensor<i64>
  %o = graph.constant dense<0> : tensor<i64>
  %e = graph.equal %l, %o : tensor<i1>
  %m = graph.broadcast %e {shape = [n, 64], dims = []} : tensor<?x64xi1, #graph.dims<n, 64>>
  %z = graph.where %m, %a, %y : tensor<?x64xf32, #graph.dims<n, 64>>
  func.return %z"""
# Rows of unlike symbols must never be taken for equal: both are `?`.
UNLIKE = """
func.func @main(%x: tensor<?x64xf32, #graph.dims<m, 64>>, %y: tensor<?x64xf32, #graph.dims<n, 64>>,
                %w: tensor<64x32xf32>)
    -> (tensor<?x32xf32, #graph.dims<m, 32>>, tensor<?x32xf32, #graph.dims<n, 32>>) {
  %a = graph.matmul %x, %w : tensor<?x32xf32, #graph.dims<m, 32>>
  %b = graph.matmul %y, %w : tensor<?x32xf32, #graph.dims<n, 32>>
  func.return %a, %b : tensor<?x32xf32, #graph.dims<m, 32>>, tensor<?x32xf32, #graph.dims<n, 32>>
}
"""


def loaded(text: str, tmp_path: Path) -> Program:
    """The program of a text."""
    (tmp_path / "p.mlir").write_text(text)
    return isoform.load(tmp_path / "p.mlir")


def optimized(text: str, tmp_path: Path, *sizes: Mapping[str, int]) -> Optimized:
    """The result for a target that is only modelled."""
    program = loaded(text, tmp_path)
    return isoform.optimize(program, "h100", "saturate", budget=20, sizes=sizes)


def test_the_result_is_faster_and_serves_every_size(tmp_path: Path) -> None:
    better = optimized(PRODUCTS, tmp_path, {"n": 128}, {"n": 7})
    assert symbols_of(better.main) == ["n"]
    assert [op.name for op in better.main.body.block.ops].count("graph.matmul") == 1
    assert better.report["verdict"]["kind"] == "equal"
    assert [entry["at"] for entry in better.report["sizes"]] == [{"n": 128}, {"n": 7}]
    assert all(entry["after"] < entry["before"] for entry in better.report["sizes"])
    rng, session = np.random.default_rng(0), isoform.compile(better, effort="quick")
    w, v = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    for n in (1, 5, 33):
        x = rng.standard_normal((n, 64)).astype(np.float32)
        (y,) = session(x=x, w=w, v=v).values()
        assert np.allclose(y, x @ w + x @ v, atol=1e-4)


def test_dims_of_unlike_symbols_are_not_equal(tmp_path: Path) -> None:
    better = optimized(UNLIKE, tmp_path, {"m": 64, "n": 64})
    assert better.report["verdict"].get("kind", "equal") == "equal"
    session = isoform.compile(better, effort="quick")
    shapes = {"x": (3, 64), "y": (5, 64), "w": (64, 32)}
    found = session(**{name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    assert [array.shape for array in found.values()] == [(3, 32), (5, 32)]


def test_conditions_tell_unlike_symbols_apart(tmp_path: Path) -> None:
    """Both engines' shapes of variables: as numbers, dims of all symbols are -1."""
    main_function = loaded(UNLIKE, tmp_path).symbolic.main  # type: ignore[attr-defined]
    types = dict(zip("ab", (arg.type for arg in main_function.body.block.args), strict=False))
    tables = Tables(OpTable(), Costs(target_named("h100")))
    with shape_env(main_function).active():
        saturation = shapes_in({name: (type_,) for name, type_ in types.items()})
        substitution = {name: tables.shape(tables.type(type_)) for name, type_ in types.items()}
        for shapes in (saturation, substitution):
            assert holds(("?a.shape[0] == ?a.shape[0]", "?a.shape[1] == ?b.shape[1]"), shapes)
            assert not holds(("?a.shape[0] == ?b.shape[0]",), shapes)
            assert not holds(("?a.shape[0] != ?b.shape[0]",), shapes), "nobody knows"


def test_what_is_right_at_the_sizes_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search whose program reads the first two rows: right for n = 2, faster, wrong elsewhere."""
    text = """
    func.func @main(%x: tensor<?x64xf32, #graph.dims<n, 64>>) -> tensor<f32>
        attributes {isoform.guards = ["n >= 2"]} {
      %y = graph.add %x, %x : tensor<?x64xf32, #graph.dims<n, 64>>
      %s = graph.reduce_sum %y {axes = [0, 1], keep_dims = false} : tensor<f32>
      func.return %s : tensor<f32>
    }
    """
    wrong = text.replace(
        "%y = graph.add %x, %x : tensor<?x64xf32, #graph.dims<n, 64>>",
        """%r = graph.slice %x {starts = [0, 0], sizes = [2, 64], steps = [1, 1]} : tensor<2x64xf32>
      %y = graph.add %r, %r : tensor<2x64xf32>""",
    )

    def search(program: Program, costs: Costs, limits: Limits, _: object) -> SearchResult:
        found = loaded(wrong, tmp_path).symbolic  # type: ignore[attr-defined]
        return SearchResult(
            found, "finished", [Applied("planted", "main", "exact", -1.0, ROUNDING)]
        )

    planted = Strategy("planted", "graph", 1.0, search, ROUNDING)
    monkeypatch.setattr(at_sizes, "chosen", lambda *_: (planted,))
    monkeypatch.setattr(at_sizes.SizedSearch, "seconds", lambda *_: [[1.0, 0.5]])
    better = isoform.optimize(loaded(text, tmp_path), "h100", sizes=[{"n": 2}])
    assert better.report["verdict"]["kind"] == "different"
    assert better.report["message"].startswith("rewrites not kept: Different")
    assert not better.report["rewrites"] and "graph.slice" not in str(better.module)


def test_a_gain_at_one_size_alone_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        at_sizes.SizedSearch, "seconds", lambda *_: [[1.0, 0.5], [1.0, 1.02]], raising=True
    )
    better = optimized(PRODUCTS, tmp_path, {"n": 128}, {"n": 7})
    assert not better.report["searches"][0]["kept"]
    assert not any(entry.get("search") for entry in better.report["rewrites"])


def test_a_search_that_needs_numbers_says_so(tmp_path: Path) -> None:
    program = loaded(PRODUCTS, tmp_path)
    better = isoform.optimize(program, "h100", "derive", sizes=[{"n": 16}])
    (entry,) = (e for e in better.report["rejected"] if e["rule"] == "derive")
    assert entry["reason"] == "below the graph level extents are numbers: --shape binds them"


def test_strict_nan_leaves_out_what_moves_infinities(tmp_path: Path) -> None:
    program = loaded(PRODUCTS, tmp_path)
    more = {"strict_nan": True, "sizes": [{"n": 128}, {"n": 7}]}
    better = isoform.optimize(program, "h100", "saturate", 20, **more)  # type: ignore[arg-type]
    assert not better.report["rewrites"]


def test_no_search_begins_after_one_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(program: Program, *_: object) -> SearchResult:
        return SearchResult(program.clone(), "interrupted")

    planted = tuple(Strategy(name, "graph", 1.0, search, ROUNDING) for name in "ab")
    monkeypatch.setattr(at_sizes, "chosen", lambda *_: planted)
    better = isoform.optimize(loaded(PRODUCTS, tmp_path), "h100", sizes=[{"n": 2}])
    assert [entry["strategy"] for entry in better.report["searches"]] == ["a"]
    assert better.report["stop_reason"] == "interrupted"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "add --shape n=NUMBER, or --sizes DIM=16,128 to keep them"),
        (["--sizes", "n=0"], "a size is at least 1"),
        (["--sizes", "n=1", "--sizes", "n=2"], "a dim is given twice"),
        (["--sizes", "n=1,2", "--sizes", "m=1,2,3"], "the lists differ in length"),
        (["--sizes", "m=3"], "the program has no symbolic dim 'm'"),
        (["--sizes", "n=3", "--emit", "kernel"], "is at the graph level"),
        (["--sizes", "n=3", "--precision", "bf16"], "are for fixed shapes"),
        (["--sizes", "n=3", "-o", "out.onnx"], "symbolic dims are written as IR"),
        (["--sizes", "n=3", "-o", "out.txt"], "symbolic dims are written as IR"),
    ],
)
def test_what_excludes_sizes_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    (tmp_path / "p.mlir").write_text(PRODUCTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(["optimize", "p.mlir", "--target", "h100", *flags]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.mlir"]


def test_the_command_writes_a_program_with_symbols(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(PRODUCTS)
    files = [str(tmp_path / name) for name in ("p.mlir", "o.mlir", "r.json")]
    asked = ["--target", "h100", "--strategy", "saturate", "--budget", "20"]
    flags = ["--sizes", "n=64,9", "-o", files[1], "--report", files[2], "-q"]
    assert main(["optimize", files[0], *asked, *flags]) == 0
    assert main(["verify", files[0], files[1], "-q"]) == 0
    assert main(["explain", files[2], "-q"]) == 0
    assert main(["view", files[2], "-o", str(tmp_path / "page.html"), "-q"]) == 0
    assert symbols_of(isoform.load(files[1]).symbolic.main) == ["n"]  # type: ignore[attr-defined]


def test_a_certificate_is_for_every_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.mlir").write_text(PRODUCTS)
    source, result, proof = (str(tmp_path / name) for name in ("p.mlir", "o.mlir", "c.json"))
    asked = ["--target", "h100", "--strategy", "saturate", "--budget", "20", "--sizes", "n=64,9"]
    assert main(["optimize", source, *asked, "-o", result, "--certificate", proof, "-q"]) == 0
    assert main(["verify", proof]) == 0
    assert "sizes: n" in capsys.readouterr().out
    document = json.loads(Path(proof).read_text())
    assert document["body"]["verdict"]["sizes"]["symbols"] == ["n"]

    def forged(change: Callable[[dict[str, Any]], None]) -> str:
        body = json.loads(Path(proof).read_text())["body"]
        change(body)
        other = {"body": body, "body_sha256": body_hash(body), "made": document["made"]}
        (tmp_path / "forged.json").write_text(json.dumps(other))
        assert main(["verify", str(tmp_path / "forged.json")]) == 1
        return capsys.readouterr().err

    assert "other sizes" in forged(lambda b: b["verdict"]["sizes"].update(guards=["n >= 2"]))
    assert "other sizes" in forged(lambda b: b["verdict"].pop("sizes"))
    # Another result where n is 1, in a file that the certificate was made to name.
    Path(result).write_text(PRODUCTS.replace("func.return %y", WRONG_AT_ONE))
    entry = [file_entry(Path(result), tmp_path)]
    assert "Different at n=1" in forged(lambda b: b["result"].update(files=entry))


def test_an_onnx_of_symbolic_dims_is_refused(tmp_path: Path) -> None:
    program = loaded(PRODUCTS, tmp_path).symbolic  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="written of fixed shapes"):
        isoform.save(program, tmp_path / "o.onnx")
    assert not (tmp_path / "o.onnx").exists()


def test_what_is_remembered_of_a_search_is_of_its_sizes() -> None:
    costs = Costs(target_named("h100"))
    keys = {one.key for one in (costs, costs.at({"n": 1}), costs.at({"n": 2}), costs.at({"m": 1}))}
    assert len(keys) == 4
