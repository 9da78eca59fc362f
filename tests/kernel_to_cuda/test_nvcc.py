"""nvcc builds what `isoform-opt -t cuda` prints, unaided: the program of a whole model."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isoform.compiler import zoo
from isoform.compiler.targets.levels import place
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.print_cu_file import print_file

NVCC = os.environ.get("NVCC") or shutil.which("nvcc")


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="nvcc is not there (NVCC=... names it)")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["resnet18", "bert-base", "dcgan", "mobilenet-v2"])
def test_nvcc_compiles_a_model(name: str, architecture: str, tmp_path: Path) -> None:
    program = place(zoo.build(name), target="cuda")
    source = tmp_path / "model.cu"
    source.write_text(print_file(cuda_program(program, with_weights=False), name))
    command = [str(NVCC), "-O3", "-std=c++17", f"-arch={architecture}", "-c", str(source)]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "model.o")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.o").exists()
