"""What a state costs is what the cost model says of its ops."""

import pytest
from xdsl.parser import Parser

from isoform.compiler.registry import make_context
from isoform.dialects.program import main_of
from isoform.dialects.weights_only import weights_only
from isoform.lowering.algebra_to_kernel.table import matches
from isoform.lowering.targets import target_named
from isoform.passes.cost.cost_file import CostFile
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.price import ScopePrices

CONV = """
func.func @main(%x: tensor<2x64x14x14xf32>) -> tensor<2x128x14x14xf32> {
  %k = graph.weight @k : tensor<128x64x3x3xf32>
  %y = algebra.scope (n: 2, f: 128, h: 14, w: 14) sum (c: 64, r: 3, s: 3)
    %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<2x128x14x14xf32>
  func.return %y : tensor<2x128x14x14xf32>
}"""
GEMM = """
func.func @main(%x: tensor<196x512xf32>) -> tensor<196x128xf32> {
  %k = graph.weight @k : tensor<512x128xf32>
  %y = algebra.scope (m: 196, n: 128) sum (k: 512) %x[m, k] * %k[k, n] : tensor<196x128xf32>
  func.return %y : tensor<196x128xf32>
}"""


@pytest.mark.parametrize("target", ["cpu", "v100", "a100", "h100"])
@pytest.mark.parametrize("text", [CONV, GEMM], ids=["conv", "gemm"])
def test_a_match_in_place_costs_what_its_op_costs(text: str, target: str) -> None:
    module = Parser(make_context(), text).parse_module()
    (op,) = scope_ops(module)
    known = weights_only(main_of(module).body.block.ops)
    costs = Costs(target_named(target))
    lift = Lift(module, constants=known, positional=True)
    root = lift.scope(op)
    prices = ScopePrices(lift.known(), costs=costs)
    (match, *_) = [m for m in matches(root) if all(m.direct) and m.in_order]
    assert prices.match(match) == pytest.approx(costs.op(op, known).seconds)


def test_winograd_makes_a_regular_convolution_cheaper_than_its_products_on_a_gpu() -> None:
    """The term for algorithms is seen by the search: it is why dilated ones are worth deriving."""
    module = Parser(make_context(), CONV).parse_module()
    (op,) = scope_ops(module)
    lift = Lift(module, positional=True)
    root = lift.scope(op)
    (match, *_) = [m for m in matches(root) if m.kernel.name == "conv" and all(m.direct)]
    names = {way.algorithm for way in ScopePrices(target=target_named("v100")).algorithms(match)}
    assert {"implicit-gemm", "winograd4", "fft"} <= names


def test_a_cost_files_scale_changes_prices() -> None:
    module = Parser(make_context(), GEMM).parse_module()
    (op,) = scope_ops(module)
    root = Lift(module, positional=True).scope(op)
    target = target_named("cpu")
    slow = Costs(target, CostFile("cpu", class_scale={"gemm": 3.0}))
    plain, scaled = (ScopePrices(costs=c).program((root,)).seconds for c in (Costs(target), slow))
    assert scaled == pytest.approx(3 * plain)
