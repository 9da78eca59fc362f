"""Whole models on the emulated device give what the CPU target gives."""

from collections.abc import Callable

import numpy as np
import pytest
from support.cuda_kernels import need_compiler

from isoform import compile as compile_program
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.compiler.zoo.bert import bert_base
from isoform.compiler.zoo.dcgan import dcgan
from isoform.compiler.zoo.resnet import resnet18
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.testing.cuda_emulator.kernels import ORDERS, Order
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime

SMALL = {"hidden": 96, "heads": 4, "vocabulary": 200, "positions": 32}
MODELS: dict[str, Callable[[], Program]] = {
    "resnet18": lambda: resnet18(1, 0, image=32, classes=10),
    "dcgan": lambda: dcgan(1, 0),
    "bert, one layer": lambda: bert_base(1, 0, sequence=24, layers=1, **SMALL),
}
SAMPLE = dict(zip(MODELS, ORDERS, strict=True))


def check(name: str, *orders: Order, libraries: tuple[str, ...] = ()) -> None:
    """The model agrees with the CPU target in these thread orders."""
    need_compiler()
    program = MODELS[name]()
    inputs = draw_inputs(program, 0)
    expected = compile_program(program, threads=1, effort="quick")(**inputs)
    printed = cuda_program(place(program, target="cuda"), libraries=libraries)
    for order in orders:
        found = CudaSession(printed, EmulatedRuntime(order, workers=2)).run(inputs)
        assert found.keys() == expected.keys()
        for key, array in expected.items():
            assert np.isfinite(array).all()
            np.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_on_the_emulated_device_agrees_with_the_cpu(name: str) -> None:
    check(name, SAMPLE[name])


@pytest.mark.parametrize("name", MODELS)
def test_it_agrees_where_libraries_do_products_and_convolutions(name: str) -> None:
    check(name, "forward", libraries=("cublas", "cudnn"))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_it_agrees_in_every_thread_order(name: str) -> None:
    check(name, *ORDERS)
