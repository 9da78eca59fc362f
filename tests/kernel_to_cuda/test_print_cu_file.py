"""`isoform-opt -t cuda`: a whole program as one file, checked by a C++ compiler with stub headers.

The stubs declare what the file uses of CUDA, cuBLAS and cuDNN; a program without barriers also
runs, thread after thread. Kernels are checked elsewhere: by NVRTC, and on the emulated device.
"""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from xdsl.dialects.builtin import f32, f64

from isoform.compiler import opt, zoo
from isoform.compiler.frontends.program_file import save_mlir
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.print_cu_file import print_file
from isoform.testing.cuda_emulator.kernels import compiler

STUBS = Path(__file__).resolve().parents[1] / "support" / "cuda_stub"
LAUNCH = re.compile(r"(\w+)<<<(.+?), 0, stream>>>\(")


def as_cpp(text: str) -> str:
    """The file with launches as C++ has them."""
    return LAUNCH.sub(r"stub_launch(\1, \2, ", text)


def build(text: str, folder: Path, *flags: str) -> Path:
    """Compile a printed file against the stubs; the program."""
    need_compiler()
    source, made = folder / "program.cpp", folder / "program"
    source.write_text(as_cpp(text))
    command = [str(compiler()), "-std=c++17", "-Wall", "-Wno-unknown-pragmas", f"-I{STUBS}"]
    run = subprocess.run(
        [*command, *flags, str(source), "-o", str(made)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return made


def pool() -> Program:
    """A pool, a product with a literal, and an output of another type: no kernel has a barrier."""
    b = GraphBuilder()
    image, s = b.input("image", (1, 2, 9, 7), f32), b.input("s", (2,), f64)
    window = {"kernel": [2, 2], "strides": [2, 2], "dilations": [1, 1], "pads": [0] * 4}
    pooled = b.max_pool(image, **window, ceil_mode=False)
    scale = b.constant(np.array([2.0, -1.0], np.float32))
    b.output("y", b.mul(pooled, b.broadcast(scale, shape=[1, 2, 4, 3], dims=[1])))
    b.output("t", b.exp(s))
    return b.build()


def test_a_printed_program_reads_and_writes_raw_files(tmp_path: Path) -> None:
    program = pool()
    made = cuda_program(place(program, target="cuda"))
    built = build(print_file(made, "pool"), tmp_path, "-O1", "-fsanitize=address,undefined")
    rng = np.random.default_rng(0)
    inputs = {"image": rng.standard_normal((1, 2, 9, 7), np.float32), "s": rng.random(2)}
    (tmp_path / "weights").write_bytes(made.weights)
    for name, array in inputs.items():
        (tmp_path / name).write_bytes(array.tobytes())
    files = ["weights", *inputs, "y", "t"]
    subprocess.run([built, *files], cwd=tmp_path, check=True)
    expected = reference.run(program, inputs)
    for name, (_, array) in zip(("y", "t"), expected.items(), strict=True):
        dtype = np.float64 if name == "t" else np.float32
        found = np.fromfile(tmp_path / name, dtype).reshape(array.shape)
        np.testing.assert_allclose(found, array, rtol=1e-6)

    (tmp_path / "s").write_bytes(b"short")
    run = subprocess.run([built, *files], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "s: too short\n")
    run = subprocess.run([built], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "usage: " in run.stderr


@pytest.mark.parametrize("libraries", [(), ("cublas", "cudnn")], ids=["generated", "libraries"])
@pytest.mark.parametrize("name", ["resnet18", "dcgan"])
def test_a_model_is_good_cpp(name: str, libraries: tuple[str, ...], tmp_path: Path) -> None:
    program = place(zoo.build(name), target="cuda")
    text = print_file(cuda_program(program, with_weights=False, libraries=libraries), name)
    build(text, tmp_path, "-fsyntax-only", "-Wno-unused-function")
    assert ("convolve(dnn, {" in text) == bool(libraries)
    assert max(map(len, text.splitlines())) <= 110


def test_the_command_prints_a_program_and_writes_its_weights(tmp_path: Path) -> None:
    model, out, data = (tmp_path / name for name in ("m.mlir", "m.cu", "m.weights"))
    save_mlir(zoo.build("dcgan"), model)
    weights = model.with_suffix(".safetensors")
    target = f'cuda{{weights="{weights}" data="{data}"}}'
    assert opt.main([str(model), "-t", target, "-o", str(out)]) == 0
    text = out.read_text()
    size = data.stat().st_size
    assert f"load(argv[1], {size})" in text
    assert "int main(int argc, char **argv)" in text


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.mlir"
    save_mlir(zoo.build("dcgan"), model)
    model.with_suffix(".safetensors").unlink()
    for target, message in (
        ('cuda{libraries="cufft"}', "unknown library 'cufft'"),
        (f'cuda{{data="{tmp_path}/w"}}', "weight"),
        (f'cuda{{weights="{tmp_path}/none" data="w"}}', "none"),
    ):
        assert opt.main([str(model), "-t", target]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
