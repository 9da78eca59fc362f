"""`isoform check` says what `isoform run` does: the same exit status, and the error it ends in."""

import json
import re
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from isoform.compiler import api, cli
from isoform.dialects.builder import GraphBuilder


@lru_cache
def corpus() -> list[tuple[str, onnx.ModelProto]]:
    """ONNX's node cases as they are: whatever decides shapes is an input in many of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(((case.name, case.model) for case in collect_testcases(None)), key=str)


def agree(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> int:
    """The exit status of both; what check says of the failure is what run prints."""
    capsys.readouterr()
    wanted = cli.main(["run", str(path), "--effort", "quick", *more])
    line = capsys.readouterr().err.strip().splitlines()[-1:] if wanted else []
    found = cli.main(["check", str(path), "--json", *more])
    printed = capsys.readouterr()
    assert found == wanted, (path.name, line, printed)
    if wanted and printed.out:
        answer = json.loads(printed.out)
        assert not answer["ok"]
        assert line == [f"isoform: error: {answer['failure']}"]
    elif wanted:
        assert line == printed.err.strip().splitlines()[-1:]
    return found


def sweep(
    models: list[tuple[str, onnx.ModelProto]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> set[int]:
    found: set[int] = set()
    for name, model in models:
        onnx.save(model, tmp_path / f"{name}.onnx")
        found.add(agree(tmp_path / f"{name}.onnx", capsys))
    return found


def test_on_a_sample_of_the_node_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(corpus()[::61], tmp_path, capsys) == {0, 1}


@pytest.mark.slow
def test_on_all_node_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(corpus(), tmp_path, capsys) == {0, 1}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


def test_dims_that_are_not_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parsed("g (float[n,2] x) => (float[n,2] y) { y = Relu(x) }"), tmp_path / "m.onnx")
    assert agree(tmp_path / "m.onnx", capsys) == 1
    assert agree(tmp_path / "m.onnx", capsys, "--shape", "x=3,2") == 0
    assert cli.main(["check", str(tmp_path / "m.onnx")]) == 1
    assert (
        "it does not run: input 'x' has dims [n, 2] (add --shape x=1,2)" in capsys.readouterr().out
    )


def test_what_fails_only_when_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """g (float[1,2] x, int64[3] i) => (float[1,3] y) {
        two = Constant <value: tensor = int64 {2}> ()
        k = Add(i, two)
        y = Gather <axis = 1> (x, k)
    }"""
    onnx.save(parsed(text), tmp_path / "m.onnx")
    assert agree(tmp_path / "m.onnx", capsys) == 1
    assert cli.main(["check", str(tmp_path / "m.onnx")]) == 1
    assert "it does not run: graph.gather 'y': index " in capsys.readouterr().out


def test_defaults_that_shapes_depend_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parsed("g (float[4] x, int64[2] s) => (float[2,2] y) { y = Reshape(x, s) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.asarray([2, 2]), "s"))
    onnx.save(proto, tmp_path / "m.onnx")
    assert agree(tmp_path / "m.onnx", capsys) == 0
    answer = cli.main(["check", str(tmp_path / "m.onnx"), "--json"])
    assert answer == 0 and json.loads(capsys.readouterr().out)["totals"]["unsupported"] == 0


def test_a_program_whose_weights_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = GraphBuilder()
    b.output("y", b.add(b.input("x", (20,)), b.weight("w", np.ones(20, np.float32))))
    api.save(b.build(), tmp_path / "m.mlir")
    assert agree(tmp_path / "m.mlir", capsys) == 0
    (tmp_path / "m.safetensors").unlink()
    assert agree(tmp_path / "m.mlir", capsys) == 1


def test_run_says_which_ops_have_no_native_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """g (float[9] x, int64[9] n) => (float[2] y, float[9] z) {
        [best] y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1,
          mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], pool_int64s = [2, 3]> (n)
        z = Relu(x)
    }"""
    onnx.save(parsed(text), tmp_path / "m.onnx")
    arguments = ["run", str(tmp_path / "m.onnx"), "--effort", "quick"]
    assert cli.main(arguments) == 0
    line = capsys.readouterr().err
    said = "of the time went to ops without native code"
    assert re.fullmatch(rf"isoform: \d+ % {said}: TfIdfVectorizer 'best' \d+ %\n", line)
    assert cli.main([*arguments, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["opaque"]
    assert entry["op"] == "TfIdfVectorizer 'best'"
    assert entry["seconds"] > 0
