"""Verification names the operation at fault, and definitions dominate uses."""

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TensorType, f32, f64, i32
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from isoform.compiler.checks.verify_module import VerifiedOps, immediate_dominators, verify_module
from isoform.compiler.frontends.source import SourceText, parse_source
from isoform.compiler.registry import make_context
from isoform.dialects.errors import UserError


def parse(text: str) -> ModuleOp:
    return parse_source(make_context(), SourceText("test", text))[0]


def body(text: str) -> Region:
    return next(iter(parse(text).body.block.ops)).regions[0]


LOOP = """
func.func @f(%c: i1, %x: i32) -> i32 {
  cf.br ^head(%x : i32)
^head(%i: i32):
  cf.cond_br %c, ^body, ^exit
^body:
  %j = arith.addi %i, %x : i32
  cf.br ^head(%j : i32)
^exit:
  func.return %i : i32
}
"""


def test_a_loop_with_block_arguments_is_sound() -> None:
    verify_module(parse(LOOP))


def test_a_value_of_the_loop_body_does_not_reach_the_exit() -> None:
    with pytest.raises(UserError, match=r"operand #0 %j does not dominate this use"):
        verify_module(parse(LOOP.replace("return %i", "return %j")))


def test_immediate_dominators_of_a_diamond_with_a_back_edge() -> None:
    region = body(
        """
        func.func @f(%c: i1) {
          cf.br ^a
        ^a:
          cf.cond_br %c, ^b, ^c
        ^b:
          cf.br ^d
        ^c:
          cf.br ^d
        ^d:
          cf.cond_br %c, ^a, ^e
        ^e:
          func.return
        ^unreachable:
          cf.br ^d
        }
        """
    )
    entry, a, b, c, d, e, unreachable = region.blocks
    idom = immediate_dominators(region)
    assert idom == {entry: entry, a: entry, b: a, c: a, d: a, e: d}
    assert unreachable not in idom


def test_a_region_sees_what_is_defined_before_it_and_nothing_leaves_it() -> None:
    text = """
    func.func @f(%c: i1, %x: i32) -> i32 {{
      {before}
      %r = scf.if %c -> (i32) {{
        %in = arith.addi %y, %x : i32
        scf.yield %in : i32
      }} else {{
        scf.yield %x : i32
      }}
      {after}
      func.return %r : i32
    }}
    """
    y = "%y = arith.addi %x, %x : i32"
    verify_module(parse(text.format(before=y, after="")))
    with pytest.raises(UserError, match="%y is used before its definition"):
        verify_module(parse(text.format(before="", after=y)))


def test_an_operation_does_not_use_its_own_result() -> None:
    with pytest.raises(UserError, match="%y is used before its definition"):
        verify_module(parse("func.func @f(%x: i32) { %y = arith.addi %y, %x : i32 func.return }"))


def test_a_value_is_not_used_outside_its_region() -> None:
    inside = arith.ConstantOp.from_int_and_width(2, i32)
    wrapper = Wrapper.create(regions=[Region(Block([inside]))])
    module = ModuleOp([wrapper, arith.AddiOp(inside.result, inside.result)])
    with pytest.raises(UserError, match="operand #0 is used outside the region that defines it"):
        verify_module(module)


def test_an_argument_is_not_used_outside_its_region_nor_where_its_block_may_not_have_run() -> None:
    block = Block(arg_types=[i32])
    wrapper = Wrapper.create(regions=[Region(block)])
    module = ModuleOp([wrapper, arith.AddiOp(block.args[0], block.args[0])])
    with pytest.raises(UserError, match="operand #0 is used outside the region that defines it"):
        verify_module(module)
    given = LOOP.replace("^body, ^exit", "^body(%i : i32), ^exit").replace(
        "^body:", "^body(%k: i32):"
    )
    verify_module(parse(given))
    with pytest.raises(UserError, match="operand #0 %k does not dominate this use"):
        verify_module(parse(given.replace("return %i", "return %k")))


def test_an_operand_from_a_removed_operation_is_found() -> None:
    removed = arith.ConstantOp.from_int_and_width(1, i32)
    module = ModuleOp([arith.AddiOp(removed.result, removed.result)])
    with pytest.raises(UserError, match="operation that is not in the program"):
        verify_module(module)


@irdl_op_definition
class Wrapper(IRDLOperation):
    """An operation with regions and no rules."""

    name = "test.wrapper"
    body = region_def()
    traits = traits_def(NoTerminator())


@irdl_op_definition
class Picky(IRDLOperation):
    """An operation that never verifies."""

    name = "test.picky"

    def verify_(self) -> None:
        raise VerifyException("it is\n  never right")


def test_the_error_is_one_line_with_the_place_of_the_operation() -> None:
    module = ModuleOp([op := Picky.create()])
    with pytest.raises(UserError) as caught:
        verify_module(module, lambda found: "here" if found is op else None)
    assert str(caught.value) == "here: 'test.picky': it is never right"


def test_ten_thousand_operations_in_a_chain_verify() -> None:
    lines = [f"%v{k + 1} = arith.addi %v{k}, %v0 : i32" for k in range(10_000)]
    verify_module(parse("func.func @f(%v0: i32) {" + "\n".join(lines) + "\nfunc.return }"))


KERNEL = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = kernel.loops (%a = %x) {
    %0 = algebra.scope (i: 4) exp(%a[i]) : tensor<4xf32>
    %1 = algebra.scope (i: 4) %0[i] + %0[i] : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return %k : tensor<4xf32>
}
"""


def _changed_type(module: ModuleOp) -> None:
    next(op for op in module.walk() if op.name == "math.exp").results[0]._type = f64


def _changed_operand(module: ModuleOp) -> None:
    add = next(op for op in module.walk() if op.name == "arith.addf")
    add.operands[1] = next(op for op in module.walk() if op.name == "math.exp").results[0]


def _changed_property(module: ModuleOp) -> None:
    scope = next(op for op in module.walk() if op.name == "algebra.scope")
    scope.properties["reduction"] = StringAttr("mean")


def _changed_argument(module: ModuleOp) -> None:
    loops = next(op for op in module.walk() if op.name == "kernel.loops")
    loops.regions[0].block.args[0]._type = TensorType(f32, [5])


def _moved_terminator(module: ModuleOp) -> None:
    last = next(op for op in module.walk() if op.name == "kernel.yield")
    first = last.parent_block().first_op
    last.detach()
    first.parent_block().insert_op_before(last, first)


def _foreign_op(module: ModuleOp) -> None:
    loops = next(op for op in module.walk() if op.name == "kernel.loops")
    block = loops.regions[0].block
    block.insert_op_before(arith.ConstantOp(IntegerAttr(1, i32)), block.first_op)


@pytest.mark.parametrize(
    "change",
    [
        _changed_type,
        _changed_operand,
        _changed_property,
        _changed_argument,
        _moved_terminator,
        _foreign_op,
    ],
)
def test_what_verified_before_is_checked_again_when_it_changes(change) -> None:
    module, verified = parse(KERNEL), VerifiedOps()
    verify_module(module, verified=verified)
    verify_module(module, verified=verified)
    change(module)
    with pytest.raises(UserError):
        verify_module(module, verified=verified)


def test_what_verified_before_and_is_the_same_is_not_checked_again() -> None:
    module, verified = parse(KERNEL), VerifiedOps()
    verify_module(module, verified=verified)
    assert [op.name for op in module.walk(region_first=True) if verified.is_new(op)] == []
    verified.finish()
    module.body.block.first_op.attributes["note"] = StringAttr("new")
    new = [op.name for op in module.walk(region_first=True) if verified.is_new(op)]
    assert new == ["func.func", "builtin.module"]
