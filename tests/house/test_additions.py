"""What it takes to add a thing: each test adds one, in as much text as CONTRIBUTING.md says."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from isoform.compiler.api import compile
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.plugin import using
from isoform.compiler.registry import PASSES
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.floats import GUARDED
from isoform.lowering.algebra_to_kernel.table import SOME, LibraryKernel, adding, library_kernels
from isoform.passes.derivation import apply_rule
from isoform.passes.derivation.body import SumOfProducts
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.search import DerivationSettings, Searcher
from isoform.passes.derivation.step import DerivationRule, DerivationStep, ProposalOptions
from isoform.passes.derivation.sums import split_sum
from isoform.passes.rules.check import check_rule
from isoform.passes.rules.rule_set import rules_named

REGISTRY = Path(__file__).resolve().parents[2] / "compiler" / "registry.py"
RELUS = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = graph.relu %x : tensor<4x8xf32>
  %z = graph.relu %y : tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}
"""
PRODUCT = """
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %y = algebra.scope (m: 4, n: 16) sum (k: 8) %a[m, k] * %b[k, n] : tensor<4x16xf32>
  func.return %y : tensor<4x16xf32>
}
"""


def ops(text: str, pipeline: str) -> list[str]:
    program = parse(text)
    run_passes(program, pipeline)
    return [op.name for op in program.main.body.block.ops]


# --- a graph rule: 1 line -----------------------------------------------------------------------

RULE = "rule relu-twice: relu(relu(?x)) => relu(?x)\n"


def test_a_graph_rule_is_one_line(tmp_path: Path) -> None:
    """It is checked, has a label of floats, and all three ways to use it know it."""
    path = tmp_path / "mine.rules"
    path.write_text(RULE)
    (rule,) = rules_named(str(path))
    assert rule.name == "relu-twice" and check_rule(rule).holds
    for use in ("graph-apply-rule{rule=relu-twice ", "graph-substitute{", "graph-saturate{"):
        assert ops(RELUS, f'{use}rules="{path}"}}') == ["graph.relu", "func.return"]


# --- a derivation rule: 1 function and 1 line ---------------------------------------------------


def halve_sums(body: SumOfProducts, options: ProposalOptions) -> Iterator[DerivationStep]:
    """Write each sum as two halves."""
    steps = (split_sum(body, [k], n // 2) for k, n in enumerate(body.sums))
    yield from (step for step in steps if step is not None)


HALVES = DerivationRule("halve-sums", halve_sums, "digits are less than extents", "", GUARDED)


def test_a_derivation_rule_is_a_function_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search proposes it, it is applied by hand, and the help lists it."""
    module = parse(PRODUCT).module
    (op,) = scope_ops(module)
    settings = DerivationSettings(depth=1, rules=(HALVES,))
    states = Searcher(ScopePrices(), settings).search((Lift(module).scope(op),)).states
    assert [state.roots[0].expr.terms[0].sums for state in states[1:]] == [(2, 4)]
    monkeypatch.setattr(apply_rule, "BY_HAND", (*apply_rule.BY_HAND, HALVES))
    program = parse(PRODUCT)
    run_passes(program, "algebra-apply-rule{rule=halve-sums}")
    assert [op.summation for op in scope_ops(program.module)] == [(2, 4)]
    assert "halve-sums  " in apply_rule.AlgebraApplyRule.more_help()


# --- a pass, an op: 1 file and 1 line -----------------------------------------------------------

PASS = '''\
from dataclasses import dataclass
from xdsl.passes import ModulePass
from isoform.dialects.graph.elementwise import ReluOp

@dataclass(frozen=True)
class NoRelu(ModulePass):
    """Drop every relu. Before: %y = graph.relu %x; after: %x in its place."""

    name = "no-relu"

    def apply(self, ctx, op):
        for relu in [inner for inner in op.walk() if isinstance(inner, ReluOp)]:
            relu.result.replace_all_uses_with(relu.x)
            relu.detach()

'''
OP = '''\
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from isoform.dialects.graph.base import GraphOp

@irdl_op_definition
class CubeOp(GraphOp):
    """x * x * x, element by element."""

    name = "mine.cube"
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def infer(self):
        return self.operand_type(0)

    def as_scopes(self, build, *operands):
        x = operands[0].here()
        return build.pointwise(self.type, x * x * x)

'''


def test_a_pass_is_a_file_and_a_line(tmp_path: Path) -> None:
    path = tmp_path / "no_relu.py"
    path.write_text(PASS + "PASSES = [NoRelu]\n")
    with using([str(path)]):
        assert ops(RELUS, "no-relu") == ["func.return"]


@pytest.mark.parametrize("name", [name for name, _ in PASSES])
def test_a_pass_of_ours_is_one_line_of_the_registry(name: str) -> None:
    lines = [line for line in REGISTRY.read_text().splitlines() if f'"{name}"' in line]
    assert len(lines) == 1 and re.search(r"_pass\(\"[\w.]+:\w+\"\)", lines[0])


def test_an_op_is_a_file_and_a_line(tmp_path: Path) -> None:
    """It is parsed, inferred, lowered and run natively."""
    path = tmp_path / "cube.py"
    path.write_text(OP + 'DIALECTS = [Dialect("mine", [CubeOp])]\n')
    with using([str(path)]):
        program = parse(RELUS.replace("graph.relu %y", "mine.cube %y"))
        x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
        (found,) = compile(program, effort="quick", threads=1)(x=x).values()
    np.testing.assert_allclose(found, np.maximum(x, 0) ** 3, rtol=1e-6)


# --- a library kernel: 1 entry ------------------------------------------------------------------


def test_a_library_kernel_is_one_entry() -> None:
    """Searches match with the table; tests/compiler/test_plugin_kernel.py adds one that runs."""
    entry = LibraryKernel("rows", {"batch": (0, 0), "m": SOME, "n": SOME, "k": SOME})
    with adding([entry]):
        assert "rows" in [kernel.name for kernel in library_kernels()]
        pipeline = "algebra-apply-rule{rule=match kernel=rows}"
        assert set(ops(PRODUCT, pipeline)) == {"algebra.scope", "func.return"}
    assert "rows" not in [kernel.name for kernel in library_kernels()]
