"""What is written with lowering/node_to_nest/code.py."""

from xdsl.dialects.builtin import TensorType, f32

from isoform.lowering.node_to_nest.code import Code


def test_a_literal_is_one_op_for_its_block_and_the_blocks_inside():
    code = Code([TensorType(f32, [4])])
    with code.stage() as item:
        with code.when(item < 1):
            inside = code.number(7)
        after = code.number(7)
        with code.loop(2), code.when(item < 1):
            deeper = code.number(7)
        code.nests[0].verify()
    with code.stage():
        other = code.number(7)
    assert deeper.value is after.value
    assert after.value is not inside.value
    assert other.value is not after.value


def test_zeros_of_both_signs_are_two_literals():
    code = Code([TensorType(f32, [4])])
    with code.stage():
        plus, minus = code.number(0.0, f32), code.number(-0.0, f32)
    assert plus.value is not minus.value
