"""Every kernel of every model compiles for sm_80 and sm_90, and spills nothing."""

import pytest

from isoform.compiler import zoo
from isoform.compiler.targets.levels import place
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cuda import compile as nvrtc
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.compile import compile_kernels
from isoform.testing.random_programs.graphs import FAMILIES, random_graph

ARCHITECTURES = (80, 90)
QUICK = ("dcgan", "longformer")


def check_model(name: str) -> None:
    check(zoo.build(name))


def check(program: Program) -> None:
    try:
        nvrtc._nvrtc()
    except UserError as error:
        pytest.skip(f"NVRTC is not installed (extra cuda-compile): {error}")
    kernels = cuda_program(place(program, target="cuda"), with_weights=False).kernels
    for architecture in ARCHITECTURES:
        for cubin in compile_kernels(kernels, architecture):
            assert cubin.problems() == [], f"{cubin.kernel.name} for sm_{architecture}"
            assert cubin.notes == (), f"{cubin.kernel.name} for sm_{architecture}"


@pytest.mark.parametrize("name", QUICK)
def test_kernels_of_a_model_compile_without_spills(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize("seed", range(4))
def test_kernels_of_random_programs_compile(seed: int) -> None:
    """All element types occur, halves among them."""
    families = [name for name in FAMILIES if name != "arg_max"]
    check(random_graph(seed, ops=12, empty=0.0, families=families))


@pytest.mark.slow
@pytest.mark.parametrize("name", [m.name for m in zoo.MODELS if m.name not in QUICK])
def test_kernels_of_every_model_compile_without_spills(name: str) -> None:
    check_model(name)
