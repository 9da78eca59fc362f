"""The saturated e-graph as `equivalence` IR: it reads back, is whole, and xDSL extracts from it."""

from pathlib import Path

import numpy as np
from xdsl.dialects import equivalence
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.transforms.dead_code_elimination import dce
from xdsl.transforms.eqsat_extract import eqsat_extract

from isoform.compiler.opt import main
from isoform.compiler.registry import make_context
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.saturation.graph_saturate import GraphSaturate
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import SaturationSettings, saturate_block

HERE = Path(__file__).parent


def sum_of(terms: int) -> Program:
    b = GraphBuilder()
    total = b.input("x", (4, 4))
    for k in range(1, terms):
        total = b.add(total, b.input(f"x{k}", (4, 4)))
    b.output("y", total)
    return b.build()


def shared_products() -> Program:
    b = GraphBuilder()
    x = b.input("x", (64, 16))
    parts = [b.matmul(x, b.weight(f"w{k}", np.zeros((16, 16), np.float32))) for k in range(3)]
    b.output("y", b.add(b.add(parts[0], parts[1]), parts[2]))
    return b.build()


def printed(program, folder: Path, **options) -> ModuleOp:
    """The e-graph that the pass writes, read back by xDSL's parser."""
    path, context = folder / "e_graph.mlir", make_context()
    rules = str(HERE / "merges.rules")
    given = {"rules": rules, "target": "h100", "e_graph": str(path), **options}
    GraphSaturate(**given).apply(context, program.module)
    module = Parser(context, path.read_text()).parse_module()
    module.verify()
    return module


def test_every_e_node_stands_in_the_print_out_once(tmp_path) -> None:
    module = printed(shared_products(), tmp_path)
    table = OpTable()
    settings = SaturationSettings(rules=read_rules(HERE / "merges.rules"))
    prices = NodePrices(table, Costs(target_named("h100")))
    block = shared_products().main.body.block
    graph = saturate_block(block, table, prices, settings).encoded.graph
    ops = [op for op in module.walk() if op.name.startswith("graph.")]
    nodes = [n for n in graph.nodes if n.head.op not in ("leaf", "project")]
    assert sorted(op.name for op in ops) == sorted(n.head.op for n in nodes)
    classes = [op for op in module.walk() if isinstance(op, equivalence.ClassOp)]
    assert len(classes) == sum(len(graph.types[c]) == 1 for c in graph.classes())
    assert any(len(op.arguments) > 1 for op in classes)


def test_xdsls_own_extraction_takes_what_was_extracted(tmp_path) -> None:
    program = sum_of(4)
    module = printed(program, tmp_path)
    eqsat_extract(module)
    module.verify()
    assert not any(isinstance(op, equivalence.ClassOp) for op in module.walk())
    dce(module)
    assert sum(op.name == "graph.add" for op in module.walk()) == 3


TOY = """
from xdsl.dialects.builtin import i32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class JoinOp(IRDLOperation):
    name = "toy.join"
    a = operand_def(i32)
    b = operand_def(i32)
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict"


@irdl_op_definition
class FlipOp(IRDLOperation):
    name = "toy.flip"
    x = operand_def(i32)
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict"


DIALECTS = [Dialect("toy", [JoinOp, FlipOp])]
"""
TOY_RULES = """
rule flip-twice
  flip(flip(?x)) => ?x

rule flip-of-join
  join(flip(?a), flip(?b)) => flip(join(?a, ?b))
"""
TOY_PROGRAM = """
func.func @main(%a: i32, %b: i32) -> i32 {
  %0 = toy.flip %a
  %1 = toy.flip %b
  %2 = toy.join %0, %1
  %3 = toy.flip %2
  func.return %3 : i32
}
"""


def test_a_dialect_that_isoform_does_not_know_is_saturated_through_a_plug_in(
    tmp_path, capsys
) -> None:
    files = {"toy.py": TOY, "toy.rules": TOY_RULES, "in.mlir": TOY_PROGRAM}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    rules = f'rules="{tmp_path / "toy.rules"}"'
    base = [str(tmp_path / "in.mlir"), "--plugin", str(tmp_path / "toy.py"), "-p"]
    assert main([*base, f'graph-saturate{{dialect=toy {rules} op-costs="toy.flip=2"}}']) == 0
    text = capsys.readouterr().out
    assert text.count("toy.join") == 1
    assert "toy.flip" not in text
