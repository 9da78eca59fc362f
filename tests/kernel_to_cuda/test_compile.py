"""NVRTC without a GPU: kernels compile, what they take is read and checked, errors are one line."""

import builtins
from dataclasses import replace

import pytest
from support.cuda_kernels import ADD, MATMUL, add_relu, golden, kernel, matmul

from isoform.dialects.errors import UserError
from isoform.lowering.kernel_to_cuda import compile as nvrtc
from isoform.lowering.kernel_to_cuda.compile import CompileError, compile_kernel, compile_kernels


def has_nvrtc() -> bool:
    try:
        nvrtc._nvrtc()
    except UserError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(
    not has_nvrtc(), reason="NVRTC is not installed (extra cuda-compile): nothing is compiled"
)


@needs_nvrtc
@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("made", golden(), ids=lambda made: made.name)
def test_a_golden_kernel_compiles_and_fits(made, architecture: int) -> None:
    cubin = compile_kernel(made, architecture)
    assert cubin.image.startswith(b"\x7fELF")
    assert 0 < cubin.registers <= 255
    assert cubin.problems() == []
    assert cubin.notes == ()


@needs_nvrtc
def test_equal_texts_are_compiled_once() -> None:
    first, second, third = compile_kernels([matmul(), add_relu(), matmul()])
    assert first is third
    assert second.kernel.name == "add_relu"


SPILLS = """\
extern "C" __global__ void __launch_bounds__(1024) many(const float* x, float* y) {
  float v[128];
  #pragma unroll
  for (int i = 0; i < 128; ++i) v[i] = x[i * 1024 + threadIdx.x];
  float sum = 0.0f;
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 128; ++i) sum = sum * v[i] + v[127 - i];
  y[threadIdx.x] = sum;
}
"""


@needs_nvrtc
def test_spills_are_found() -> None:
    parameters = [("x", "float", 131072, False), ("y", "float", 1024, True)]
    (problem,) = compile_kernel(kernel(SPILLS, (1,), (1024,), parameters)).problems()
    assert problem.startswith("spills ")


@needs_nvrtc
def test_registers_and_shared_memory_are_checked_against_the_block() -> None:
    cubin = compile_kernel(matmul())
    large = replace(cubin.kernel, block=(1024, 2, 1), shared_bytes=0)
    problems = replace(cubin, kernel=large, registers=72, shared_bytes=50_000).problems()
    assert problems == [
        "a block needs 147456 registers of 65536",
        "a block needs 50000 bytes of shared memory",
        "takes 50000 bytes of shared memory, not 0 as said",
        "a block has 2048 threads of 1024",
    ]


@needs_nvrtc
def test_a_text_that_does_not_compile_is_one_line() -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(matmul(MATMUL.replace("sum +=", "zz +=")))
    assert str(caught.value) == 'matmul: line 13: identifier "zz" is undefined'


@needs_nvrtc
def test_warnings_are_kept() -> None:
    noisy = ADD.replace("  if (i + 3", "  int unused;\n  if (i + 3")
    (note,) = compile_kernel(add_relu(noisy)).notes
    assert note == 'line 8: variable "unused" was declared but never referenced'


@needs_nvrtc
def test_an_architecture_that_nvrtc_has_dropped_is_one_line() -> None:
    with pytest.raises(UserError, match=r"lacks the architecture: expected sm_75.* found sm_70"):
        compile_kernel(matmul(), 70)


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *more):
        if name.startswith("cuda"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    nvrtc._nvrtc.cache_clear()
    with pytest.raises(UserError) as caught:
        compile_kernel(matmul())
    monkeypatch.undo()
    nvrtc._nvrtc.cache_clear()
    expected = "compiling CUDA needs NVRTC (pip install 'isoform[cuda-compile]')"
    assert str(caught.value) == expected


def test_targets_that_only_have_a_cost_are_not_compiled_for() -> None:
    assert nvrtc.architecture_of("h100") == 90
    with pytest.raises(UserError, match="no CUDA is compiled for 'v100'"):
        nvrtc.architecture_of("v100")
