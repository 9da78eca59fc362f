"""What the user lets rewrites do to floats: the flags, what they change, what reports say."""

from pathlib import Path

import numpy as np
import pytest

import isoform
from isoform.compiler.cli import main
from isoform.compiler.opt import main as opt
from isoform.compiler.search.optimizer import improve, rewritten
from isoform.compiler.targets.cpu import program_key
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.dialects.errors import UserError
from isoform.dialects.floats import BITS, GUARDED, ROUNDING, VALUES, Allowed, Label
from isoform.dialects.program import Program
from isoform.passes.convolution.winograd import Winograd

MAGIC = 1.5 * 2.0**23


def rounding_idiom() -> Program:
    """(x + c) - c, which rounds x to whole numbers."""
    b = isoform.GraphBuilder()
    x = b.input("x", (1, 4, 6, 6))
    c = b.broadcast(b.constant(np.float32(MAGIC)), shape=[1, 4, 6, 6], dims=[])
    b.output("y", b.sub(b.add(x, c), c))
    return b.build()


def conv_norm() -> Program:
    """A convolution and its batch norm: Winograd applies, and the norm can be folded."""
    rng = np.random.default_rng(0)
    b = isoform.GraphBuilder()
    x = b.input("x", (1, 32, 28, 28))
    w = b.weight("w", rng.standard_normal((32, 32, 3, 3), np.float32))
    y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    names = ("scale", "bias", "mean", "variance")
    stats = [b.weight(n, np.abs(rng.standard_normal(32, np.float32)) + 0.5) for n in names]
    b.output("y", b.relu(b.op("batch_norm", y, *stats)))
    return b.build()


def names_of(program: Program) -> list[str]:
    return [op.name for op in program.main.body.block.ops]


def test_values_change_only_with_fast_math() -> None:
    program = rounding_idiom()
    x = np.linspace(-3, 3, 144, dtype=np.float32).reshape(1, 4, 6, 6)
    plain = isoform.compile(program, threads=1, effort="quick")
    fast = isoform.compile(program, threads=1, effort="quick", fast_math=True)
    assert np.array_equal(plain(x=x)["y"], np.round(x))
    assert np.array_equal(fast(x=x)["y"], x)
    assert plain.algorithms == []  # every kernel is the direct one
    assert [(n["rule"], n["floats"]) for n in fast.algorithms] == [("fast-math", "values")]
    again = isoform.compile(program, threads=1, effort="quick", fast_math=True)
    assert again.algorithms == fast.algorithms


def test_what_the_user_allows_gives_compiled_programs_different_cache_keys() -> None:
    program = rounding_idiom()
    ways = (Allowed(), Allowed(fast_math=True), Allowed(strict_nan=True))
    assert len({program_key(program, CpuOptions(1, floats=way)) for way in ways}) == 3


def test_strict_nan_keeps_the_batch_norm_and_the_direct_convolution() -> None:
    program = conv_norm()
    assert "graph.batch_norm" not in names_of(improve(program))
    assert "graph.batch_norm" in names_of(improve(program, strict_nan=True))
    session = isoform.compile(program, threads=1, strict_nan=True)
    assert session.algorithms == []
    x = np.random.default_rng(1).standard_normal((1, 32, 28, 28)).astype(np.float32)
    x[0, 3, 10, 10] = np.inf
    want = isoform.compile(program, "reference")(x=x)["y"]
    assert np.array_equal(np.isfinite(session(x=x)["y"]), np.isfinite(want))


def test_ops_that_are_merged_or_dropped_are_told_too() -> None:
    b = isoform.GraphBuilder()
    x, y = b.input("x", (4, 4)), b.input("y", (4, 4))
    b.output("z", b.max(b.matmul(x, y), b.exp(b.matmul(x, y))))
    report = rewritten(b.build(), "h100").report
    assert [
        (e["rule"], e["floats"], "graph.matmul" in str(e["before"])) for e in report["rewrites"]
    ] == [("merge-equal", "bits", True)]
    assert {step["name"]: step["rewrites"] for step in report["passes"]}["merge-equal"] == 1


def test_a_report_labels_every_rewrite_and_says_what_is_left_out() -> None:
    report = isoform.optimize(conv_norm(), target="h100", budget=3600, effort="quick").report
    assert report["rewrites"]
    labels = {label.value for label in Label}
    assert all(entry["floats"] in labels and entry["infinities"] for entry in report["rewrites"])
    assert not any(entry["floats"] == "values" for entry in report["rewrites"])
    options = {"target": "h100", "budget": 3600.0, "effort": "quick", "strict_nan": True}
    strict = isoform.optimize(conv_norm(), **options).report  # pyright: ignore[reportArgumentType]
    # Other values say in words what happens to infinities.
    assert all(entry["infinities"] == "kept" for entry in strict["rewrites"])
    left_out = {e["rule"] for e in strict["rejected"] if e["reason"].startswith("--strict-nan")}
    assert left_out >= {"fold-batch-norm", "derive", "mutate"}


def test_a_report_names_fast_math() -> None:
    options = {"target": "h100", "budget": 3600.0, "fast_math": True, "strategy": "derive"}
    report = isoform.optimize(rounding_idiom(), **options).report  # pyright: ignore
    assert [e["rule"] for e in report["rewrites"] if e["floats"] == "values"] == ["fast-math"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-p", "fast-math"], "'fast-math': it may change values: it needs --fast-math"),
        (
            ["-p", "winograd", "--strict-nan"],
            f"--strict-nan: {Winograd.floats.infinities}",
        ),
        (["-p", "cse", "--strict-nan", "--fast-math"], "exclude each other"),
    ],
)
def test_isoform_opt_refuses_what_is_not_allowed(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.mlir"
    file.write_text("func.func @main() { func.return }\n")
    assert opt([str(file), *flags]) == 1
    assert words in capsys.readouterr().err


def test_the_command_line_takes_one_of_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "zoo:dcgan", "--fast-math", "--strict-nan"]) == 1
    assert "exclude each other" in capsys.readouterr().err


def test_labels_join_to_the_coarser() -> None:
    assert BITS | ROUNDING == ROUNDING
    assert (ROUNDING | GUARDED | BITS) == GUARDED
    assert (GUARDED | VALUES).label == Label.VALUES
    with pytest.raises(UserError, match="exclude"):
        Allowed(fast_math=True, strict_nan=True)
