"""`optimize --precision`: which products are lowered, what the report and certificate say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.compiler.cli import main
from isoform.compiler.reports.certificate import body_hash
from isoform.compiler.reports.json_schema import first_fault
from isoform.compiler.reports.report_schema import REPORT
from isoform.compiler.reports.report_text import report_text
from isoform.compiler.search import optimizer
from isoform.compiler.search import precision as search
from isoform.compiler.search.precision import Chosen, Precision, choose
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare
from isoform.passes.precision import KINDS

QUICK: dict[str, Any] = {"target": "h100", "strategy": "saturate", "effort": "quick"}


def net(count: int = 4) -> Program:
    """A chain of products."""
    rng, b = np.random.default_rng(0), isoform.GraphBuilder()
    y = b.input("x", (4, 16))
    for k in range(count):
        w = rng.standard_normal((16, 16)) * np.exp(rng.standard_normal((16, 16))) / 4
        with b.at(f"product{k}"):
            y = b.relu(b.matmul(y, b.weight(f"w{k}", w.astype(np.float32))))
    b.output("y", y)
    return b.build()


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost model has no lower precision: a lowered program counts as twice as fast here."""
    monkeypatch.setattr(optimizer, "program_seconds", lambda programs, request: [1.0, 0.5])
    monkeypatch.setattr(optimizer, "_modelled", lambda before, after, costs: (1.0, 0.5))


def error_of(program: Program, chosen: Chosen) -> float:
    """How far outputs are off on the drawn inputs, of the program as the pass lowers it."""
    from isoform.compiler.targets.cpu_options import CpuOptions
    from isoform.compiler.targets.levels import run_passes

    made = program.clone()
    run_passes(made, chosen.pipeline)
    return search.output_error(program, made, chosen.asked, 0, CpuOptions(1, "quick"))


@pytest.mark.parametrize("to", KINDS)
def test_as_many_products_are_lowered_as_the_bound_allows(to: str) -> None:
    program = net()
    every = choose(program, Precision(to, 10.0), 0, 1)
    assert every.numbers == (0, 1, 2, 3)
    assert every.entry["error"] == pytest.approx(error_of(program, every), rel=1e-3)
    none = choose(program, Precision(to, 0.0), 0, 1)
    assert none.numbers == () and len(none.entry["kept"]) == 4 and none.pipeline == ""
    least = min(row["error"] for row in every.entry["lowered"])
    some = choose(program, Precision(to, (least + every.entry["error"]) / 2), 0, 1)
    assert 0 < len(some.numbers) < 4
    assert error_of(program, some) <= some.asked.error
    worst = max(row["error"] for row in some.entry["lowered"])
    assert worst <= min(row["error"] for row in some.entry["kept"])


def test_errors_are_measured_on_the_inputs_given() -> None:
    program = net()
    zeros = {"x": np.zeros((4, 16), np.float32)}
    assert choose(program, Precision("bf16", 0.0, zeros), 0, 1).numbers == (0, 1, 2, 3)
    same = [choose(program, Precision("bf16", 0.02), 5, 1).entry for _ in range(2)]
    assert same[0] == same[1] and same[0]["seeds"] == [5, 6, 7]


def test_wrong_requests_are_said_in_a_line() -> None:
    with pytest.raises(UserError, match="no precision 'fb16'"):
        Precision("fb16")
    with pytest.raises(UserError, match="an error is a number from 0 up"):
        Precision("bf16", float("nan"))
    with pytest.raises(UserError, match="exclude each other"):
        isoform.optimize(net(), precision="bf16", pipeline="cse")
    lacking = Program(net().module)
    with pytest.raises(UserError, match="the weights file is needed"):
        isoform.optimize(lacking, precision="bf16", **QUICK)


@pytest.mark.usefixtures("faster")
@pytest.mark.parametrize("to", KINDS)
def test_report_and_certificate_say_that_the_precision_was_lowered(to: str) -> None:
    program = net(1 if to == "int8-dynamic" else 4)  # ranges after ranges take long to compare
    better = isoform.optimize(program, precision=to, precision_error=0.1, **QUICK)
    entry = better.report["precision"]
    assert entry["applied"] and entry["lowered"] and entry["error"] <= 0.1
    assert first_fault(json.loads(json.dumps(better.report)), REPORT) is None
    proofs = [r for r in better.report["rewrites"] if r["rule"] == "lower-precision"]
    assert len(proofs) == len(entry["lowered"])
    assert {(r["proof"], r["floats"]) for r in proofs} == {("measured", "values")}
    assert f"products are computed in {to}; outputs are off by" in report_text(better.report)
    assert compare(program, better, seed=1).kind == "different"
    document = json.loads(json.dumps(better.certificate))
    assert document["body"]["precision"]["to"] == to
    assert isoform.check_certificate(document, program, better).is_equal  # to the lowered source
    document["body"]["precision"]["passes"] += ",fast-math"
    document["body_sha256"] = body_hash(document["body"])
    with pytest.raises(UserError, match="'fast-math' is no part of lowering"):
        isoform.check_certificate(document, program, better)


@pytest.mark.usefixtures("faster")
def test_the_command_does_not_call_the_result_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / n) for n in ("net.mlir", "out.mlir", "c.json", "x.npz")]
    source, out, certificate, inputs = names
    isoform.save(net(), source)
    np.savez(inputs, x=np.ones((4, 16), np.float32))
    flags = ["--target", "h100", "--effort", "quick", "--strategy", "saturate", "--emit", "graph"]
    lower = ["--precision", "bf16", "--precision-error", "0.1", "--precision-inputs", inputs]
    command = ["optimize", source, "-o", out, "--certificate", certificate]
    assert main([*command, *flags, *lower]) == 0
    said = capsys.readouterr().out
    assert "not the same program: 4 of 4 products are computed in bf16" in said
    assert "on the inputs given, 0.1 are allowed" in said
    assert main(["verify", source, out]) == 1
    assert capsys.readouterr().out.startswith("different")
    assert main(["verify", certificate]) == 1
    said = capsys.readouterr().out
    assert "not the same program: 4 of 4 products" in said
    assert "to the source computed so the result is\nequal" in said
    assert main(["verify", certificate, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["kind"] == "different"
    assert main(["optimize", source, "--precision-inputs", inputs]) == 2
    assert "--precision-inputs needs --precision" in capsys.readouterr().err


def test_a_lower_precision_that_is_no_faster_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "program_seconds", lambda programs, request: [1.0, 0.98])
    better = isoform.optimize(net(), precision="bf16", precision_error=1.0, **QUICK)
    assert not better.report["precision"]["applied"]
    assert "bf16" not in str(better.module)
    assert "was not kept, it takes 0.980 of the time" in report_text(better.report)
    assert "precision" not in better.certificate["body"]


@pytest.mark.usefixtures("faster")
def test_what_will_run_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the final program is further off than the chosen set was, the input is returned."""
    monkeypatch.setattr(search, "output_error", lambda *_: 0.3)
    better = isoform.optimize(net(), precision="bf16", precision_error=0.1, **QUICK)
    assert not better.report["precision"]["applied"]
    assert (
        better.report["message"] == "rewrites not kept: outputs are off by 3.0e-01, more than 0.1"
    )
    assert "bf16" not in str(better.module)
