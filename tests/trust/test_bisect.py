"""`isoform bisect`: the first pass, and in it the first rewrite, that changes what is computed."""

import json
from pathlib import Path

import pytest
from support.small_network import MODELLED, Command

from isoform.compiler import api
from isoform.compiler.checks.bisection import bisect
from isoform.compiler.pass_manager import make_passes
from isoform.compiler.targets.levels import weight_context


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_the_wrong_rewrite_is_named_by_pass_number_rule_and_place(
    relus: Path, planted: Path, isoform: Command, number: int
) -> None:
    passes = f"cse,relu-to-clip{{wrong={number}}},canonicalize"
    arguments = ("bisect", relus, "-p", passes, "--plugin", planted)
    status, out, err = isoform(*arguments)
    assert (status, err) == (1, "")
    expected = f"pass 2 'relu-to-clip', rewrite {number} of 5, rule ClipRelu, at graph.relu "
    assert out.startswith(f"the program differs after {expected}")
    assert ("'third'" in out) == (number == 3)
    assert "output 'r' at [" in out
    culprit = json.loads(isoform(*arguments, "--json")[1])["culprit"]
    assert (culprit["pass"], culprit["first"], culprit["last"]) == ("relu-to-clip", number, number)


def test_a_right_pipeline_is_said_to_be_right(relus: Path, planted: Path, isoform: Command) -> None:
    passes = "relu-to-clip,canonicalize,graph-to-algebra,algebra-to-kernel,fuse-kernels"
    status, out, _ = isoform("bisect", relus, "-p", passes, "--plugin", planted)
    assert (status, out) == (0, "every pass keeps the program\n")


def test_a_pass_that_rewrites_without_patterns_is_named_as_a_whole(
    relus: Path, planted: Path, isoform: Command
) -> None:
    status, out, _ = isoform("bisect", relus, "-p", "cse,drop-relu", "--plugin", planted)
    assert status == 1
    assert "pass 2 'drop-relu', as a whole" in out


def test_the_first_of_several_wrong_passes_is_found(
    relus: Path, planted: Path, isoform: Command
) -> None:
    passes = "drop-relu,relu-to-clip{wrong=1}"
    _, out, _ = isoform("bisect", relus, "-p", passes, "--plugin", planted)
    assert out.startswith("the program differs after pass 1 'drop-relu'")


def test_the_program_that_is_bisected_is_left_alone(relus: Path) -> None:
    program = api.load(relus)
    before = str(program.module)
    assert bisect(program, make_passes("canonicalize,cse"), weight_context(program.weights)) is None
    assert str(program.module) == before


@pytest.mark.parametrize("name", ["r.mlir", "r.onnx"])
def test_a_result_says_itself_which_passes_made_it(
    net: Path, tmp_path: Path, isoform: Command, name: str
) -> None:
    result = tmp_path / name
    assert isoform("optimize", net, "-o", result, *MODELLED)[0] == 0
    status, out, _ = isoform("bisect", net, result, "--json")
    found = json.loads(out)
    assert (status, found["culprit"], found["result"]) == (0, None, None)
    assert "fold-batch-norm" in found["pipeline"]
    assert ("algebra-to-kernel" in found["pipeline"]) == (name == "r.mlir")


def test_a_result_that_its_passes_do_not_make_is_noticed(
    net: Path, tmp_path: Path, isoform: Command
) -> None:
    result = tmp_path / "r.mlir"
    assert isoform("optimize", net, "-o", result, "--emit", "graph", *MODELLED)[0] == 0
    result.write_text(result.read_text().replace("graph.relu", "graph.abs"))
    status, out, _ = isoform("bisect", net, result)
    assert status == 1
    assert out.startswith("every pass keeps the program, but the result is not what they make: ")


def test_reports_and_certificates_name_the_passes_too(
    net: Path, tmp_path: Path, isoform: Command
) -> None:
    result, report, certificate = (tmp_path / n for n in ("r.mlir", "report.json", "c.json"))
    more = ("--report", report, "--certificate", certificate)
    assert isoform("optimize", net, "-o", result, *more, *MODELLED)[0] == 0
    for path in (report, certificate):
        status, out, _ = isoform("bisect", net, path)
        assert (status, out) == (0, "every pass keeps the program\n")


def test_what_to_pass_is_said_where_the_passes_are_not_known(
    net: Path, relus: Path, tmp_path: Path, isoform: Command
) -> None:
    status, _, err = isoform("bisect", relus, net)
    assert status == 1
    assert err.endswith(
        "net.mlir: it does not say which passes made it (isoform bisect A -p PIPELINE runs one)\n"
    )
    status, _, err = isoform("bisect", net)
    assert status == 2
    assert "one of B and -p PIPELINE is needed" in err
    broken = tmp_path / "broken.json"
    for text in ("[]", "{}", '{"passes": [1]}', "{"):
        broken.write_text(text)
        status, _, err = isoform("bisect", net, broken)
        assert status == 1
        assert err.count("\n") == 1
