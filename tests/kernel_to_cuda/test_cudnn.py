"""cuDNN plans convolutions for a described H100; nothing runs."""

import time

import numpy as np
import pytest
from support.cuda_programs import random_conv

from isoform.dialects.errors import UserError
from isoform.lowering.kernel_to_cuda import cudnn
from isoform.lowering.kernel_to_cuda.program_data import ConvCall, ConvTensor, Fused


def has_cudnn() -> bool:
    try:
        cudnn.load_cudnn()
    except UserError:
        return False
    return True


needs_cudnn = pytest.mark.skipif(
    not has_cudnn(), reason="cuDNN is not installed (extra cuda-plan): nothing is planned"
)
ROWS = (64 * 56 * 56, 56 * 56, 56, 1)
LAST = (64 * 56 * 56, 1, 56 * 64, 64)


def conv(strides=ROWS, ctype="float", **changed) -> ConvCall:
    image = ConvTensor(0, 0, (1, 64, 56, 56), strides)
    weights = (576, 1, 192, 64) if strides is LAST else (576, 9, 3, 1)
    taps = ConvTensor(1, 0, (64, 64, 3, 3), weights)
    parts = {"data": image, "filter": taps, "out": image, "pads": (1, 1), "strides": (1, 1)}
    rest = {"dilations": (1, 1), "groups": 1, "transposed": False, "ctype": ctype}
    return ConvCall(**{**parts, **rest, **changed})


@needs_cudnn
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("strides", [ROWS, LAST])
def test_bias_residual_and_relu_are_planned_with_a_convolution(strides, residual: bool) -> None:
    bias = ConvTensor(3, 0, (1, 64, 1, 1), (64, 1, 1, 1))
    added = ConvTensor(4, 0, (1, 64, 56, 56), strides) if residual else None
    assert cudnn.plan(conv(strides, fused=Fused(bias, added))).candidates > 0


@needs_cudnn
@pytest.mark.parametrize("strides", [ROWS, LAST])
@pytest.mark.parametrize("ctype", ["float", "__half", "__nv_bfloat16"])
def test_a_convolution_is_planned_without_a_device(ctype, strides) -> None:
    found = cudnn.plan(conv(strides, ctype))
    assert found.candidates > 0
    assert found.workspace >= 0


@needs_cudnn
def test_strict_float32_chooses_another_algorithm_than_tf32() -> None:
    assert cudnn.plan(conv(LAST)).workspace != cudnn.plan(conv(LAST), tf32=True).workspace


@needs_cudnn
def test_transposed_grouped_and_uneven_convolutions_are_planned() -> None:
    rng = np.random.default_rng(0)
    for transposed in (False, True):
        for _ in range(3):
            assert cudnn.plan(random_conv(rng, transposed)).candidates > 0


@needs_cudnn
def test_a_convolution_that_cannot_be_is_refused_in_one_line() -> None:
    wrong = conv(out=ConvTensor(2, 0, (1, 64, 50, 56), ROWS))
    with pytest.raises(UserError, match="cuDNN has no such convolution"):
        cudnn.plan(wrong)


@needs_cudnn
def test_planning_takes_a_fraction_of_a_second() -> None:
    cudnn.plan(conv())
    started = time.thread_time()
    cudnn.plan(conv(pads=(1, 1)))
    assert time.thread_time() - started < 2


@pytest.mark.parametrize(("transposed", "size", "expected"), [(False, 57, 0), (False, 56, 1)])
def test_padding_behind_makes_the_sizes_agree(transposed, size, expected) -> None:
    image = ConvTensor(0, 0, (1, 64, size, 56), ROWS)
    assert cudnn.post_padding(conv(data=image, transposed=transposed))[0] == expected


def test_other_elements_are_refused() -> None:
    with pytest.raises(UserError, match=r"need cuDNN|no convolution of 'int'"):
        cudnn.plan(conv(ctype="int"))
