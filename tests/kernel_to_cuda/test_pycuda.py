"""The PyCUDA runtime: its four messages, and the real PyCUDA on a fake driver."""

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from support.fake_cuda import build_driver, need_pycuda, run_python
from support.small_network import network

from isoform.compiler.api import save
from isoform.passes.cost.cost_file import load_cost_file

OPEN = "from isoform.lowering.kernel_to_cuda.pycuda_runtime import open_device; "
SAY = textwrap.dedent("""
    from isoform.dialects.errors import UserError
    try:
        runtime = open_device()
        print(runtime.description)
        runtime.close()
    except UserError as error:
        print(error)
""")


def pretend(folder: Path, reason: str) -> str:
    """A `pycuda` that cannot be imported; the path to find it on."""
    (folder / "pycuda").mkdir()
    (folder / "pycuda" / "__init__.py").write_text("")
    (folder / "pycuda" / "driver.py").write_text(f"raise ImportError({reason!r})\n")
    return f"import sys; sys.path.insert(0, {str(folder)!r})\n"


# --- the four messages --------------------------------------------------------------------------


def test_without_pycuda_the_message_says_how_to_install_it() -> None:
    run = run_python(f"import sys; sys.modules['pycuda'] = None\n{OPEN}{SAY}")
    expected = "pip install 'isoform[cuda]', or build a wheel with scripts/build_pycuda_wheel.sh"
    assert "a GPU needs PyCUDA" in run.stdout
    assert expected in run.stdout
    assert run.stdout.count("\n") == 1


def test_without_a_driver_the_message_says_what_still_works(tmp_path: Path) -> None:
    reason = "libcuda.so.1: cannot open shared object file: No such file or directory"
    run = run_python(pretend(tmp_path, reason) + OPEN + SAY)
    assert run.stdout == "no NVIDIA driver; compile-only still works\n"


def test_a_pycuda_that_is_broken_otherwise_says_why(tmp_path: Path) -> None:
    run = run_python(pretend(tmp_path, "undefined symbol: PyFoo") + OPEN + SAY)
    assert run.stdout.startswith("PyCUDA does not load: found undefined symbol: PyFoo")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_pycuda()
    need_compiler()
    return build_driver(tmp_path_factory.mktemp("driver"))


def test_a_driver_that_finds_no_device_says_so(driver: Path) -> None:
    run = run_python(OPEN + SAY, driver, FAKE_CUDA_INIT="100")
    assert run.stdout.startswith("no usable device: cuInit failed: no CUDA-capable device")
    assert run.stdout.count("\n") == 1


def test_a_device_that_works_is_described(driver: Path) -> None:
    run = run_python(OPEN + SAY, driver)
    assert run.stdout == "fake H100, sm_90\n", run.stderr
    assert run.stderr == ""


def test_importing_isoform_never_imports_pycuda() -> None:
    code = (
        "import isoform, sys\n"
        "[getattr(isoform, name) for name in isoform.__all__]\n"
        "import isoform.compiler.cli, isoform.compiler.opt\n"
        "import isoform.lowering.kernel_to_cuda.pycuda_runtime\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('pycuda', 'cudnn', 'cuda')])"
    )
    assert run_python(code).stdout == "[]\n"


# --- the host code ------------------------------------------------------------------------------

SESSION = OPEN + textwrap.dedent("""
    import threading
    import numpy as np
    from support.cuda_programs import two_layers
    from support.fake_cuda import compile_fake
    from isoform.dialects.errors import UserError
    from isoform.lowering.kernel_to_cuda.session import CudaSession, timed

    program, w, b, v = two_layers()
    x = np.random.default_rng(1).standard_normal((20, 30), np.float32)
    expected = np.maximum(x.astype(np.float64) @ w + b, 0) @ v.T
    runtime = open_device(compiler=compile_fake)
    session = CudaSession(program, runtime)
    def check(found, expected):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
""")


def check(driver: Path, code: str) -> None:
    run = run_python(SESSION + textwrap.dedent(code) + "\nprint('done')", driver)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("done\n")
    assert run.stderr == ""


def test_a_program_runs_as_one_graph(driver: Path) -> None:
    check(
        driver,
        """
        for k in (1, 2, -1):
            check(session.run({"x": x * k})["y"], np.maximum(x * k @ w + b, 0) @ v.T)
        assert len(runtime._graphs) == 1
        session.close()
        """,
    )


def test_eager_work_and_the_graph_agree_and_can_be_timed(driver: Path) -> None:
    check(
        driver,
        """
        session.run({"x": x})
        for work in session.works():
            assert timed(runtime, work, repeats=3).median > 0
        y = np.empty((20, 8), np.float32)
        runtime.download(session.addresses[6], y)
        check(y, expected)
        with runtime.profiled():
            session.run({"x": x})
        """,
    )


def test_arrays_on_the_device_are_read_in_place(driver: Path) -> None:
    check(
        driver,
        """
        first = session.run_on_device({"x": x})["y"]
        import pycuda.gpuarray as gpuarray
        there = gpuarray.to_gpu(x)
        check(session.run({"x": there})["y"], expected)
        """,
    )


def test_other_threads_may_run_it(driver: Path) -> None:
    check(
        driver,
        """
        found = []
        def work():
            found.append(session.run({"x": x})["y"])
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        [check(y, expected) for y in found]
        assert len(found) == 4
        """,
    )


def test_too_little_memory_is_one_line(driver: Path) -> None:
    check(
        driver,
        """
        try:
            runtime.alloc(1 << 40)
        except UserError as error:
            assert "the device lacks 1099511627776 bytes" in str(error), error
        else:
            raise SystemExit("it was given")
        """,
    )


def test_a_second_device_that_is_not_there_is_one_line(driver: Path) -> None:
    run = run_python(OPEN + SAY.replace("open_device()", "open_device(3)"), driver)
    assert run.stdout == "no usable device: number 3 of 1\n"


def test_row_major_products_reach_cublas_as_the_column_major_ones_they_equal(driver: Path) -> None:
    check(
        driver,
        """
        from support.cuda_programs import random_gemm
        from isoform.testing.cuda_emulator.runtime import EmulatedRuntime
        rng = np.random.default_rng(3)
        for _ in range(40):
            step, sizes = random_gemm(rng)
            arrays = [rng.standard_normal(n).astype(np.float32) for n in sizes]
            found = []
            for device in (runtime, EmulatedRuntime()):
                places = [device.alloc(array.nbytes) for array in arrays]
                for place, array in zip(places, arrays):
                    device.upload(place, array)
                device.gemm(step, places)()
                c = np.empty_like(arrays[2])
                device.download(places[2], c)
                found.append(c)
            check(*found)
        """,
    )


# --- isoform run --target cuda ------------------------------------------------------------------

RUN = "from isoform.compiler.cli import main; raise SystemExit(main({arguments!r}))"
ARGUMENTS = ["run", "zoo:dcgan", "--target", "cuda"]


def test_run_without_pycuda_fails_in_one_line() -> None:
    code = "import sys; sys.modules['pycuda'] = None\n" + RUN.format(arguments=ARGUMENTS)
    run = run_python(code)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert run.stderr.startswith("isoform: error: a GPU needs PyCUDA: found no module named")


def test_run_on_a_described_gpu_names_the_target_that_runs() -> None:
    run = run_python(RUN.format(arguments=["run", "zoo:dcgan", "--target", "h100"]))
    expected = (
        "isoform: error: --target: programs cannot run on 'h100' here "
        "(cpu runs everywhere, cuda on the GPU present)\n"
    )
    assert (run.returncode, run.stderr) == (1, expected)


def test_run_on_a_device_gives_what_the_cpu_gives(driver: Path, tmp_path: Path) -> None:
    fake = (
        "from support.fake_cuda import compile_fake\n"
        "from isoform.lowering.kernel_to_cuda import cudnn, pycuda_runtime\n"
        "from isoform.dialects.errors import UserError\n"
        "pycuda_runtime.open_device.__defaults__ = (0, False, compile_fake)\n"
        "def missing(): raise UserError('no cuDNN on the fake driver')\n"
        "cudnn.load_cudnn = missing\n"
    )
    outputs = []
    for target, before in (("cuda", fake), ("cpu", "")):
        file = tmp_path / f"{target}.npz"
        arguments = ["run", "zoo:dcgan", "--target", target, "--output", str(file)]
        run = run_python(before + RUN.format(arguments=arguments), driver)
        assert run.returncode == 0, run.stderr
        outputs.append(np.load(file)["image"])
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-4)


# --- scripts/gpu_check.py -----------------------------------------------------------------------

CHECK = textwrap.dedent("""
    import importlib.util
    from support.fake_cuda import ROOT, compile_fake
    from isoform.dialects.errors import UserError
    from isoform.lowering.kernel_to_cuda import cudnn
    def missing():
        raise UserError("no cuDNN on the fake driver")
    cudnn.load_cudnn = missing
    spec = importlib.util.spec_from_file_location("gpu_check", ROOT / "scripts" / "gpu_check.py")
    gpu_check = importlib.util.module_from_spec(spec)
    import sys
    sys.modules["gpu_check"] = gpu_check
    spec.loader.exec_module(gpu_check)
""")
FLAGS = ["--gemm", "32", "--copy-bytes", "100000"]


def check_gpu(driver: Path, folder: Path, *flags: str, before: str = "") -> tuple[int, dict]:
    save(network(), folder / "small.mlir")
    arguments = [*FLAGS, "--models", str(folder / "small.mlir"), "-o", str(folder), *flags]
    code = f"{CHECK}{before}\nraise SystemExit(gpu_check.main({arguments!r}, compile_fake))"
    run = run_python(code, driver)
    assert (folder / "gpu_check.json").exists(), run.stderr
    return run.returncode, json.loads((folder / "gpu_check.json").read_text())


def test_gpu_check_runs_to_its_end_on_the_fake_driver(driver: Path, tmp_path: Path) -> None:
    status, found = check_gpu(driver, tmp_path, "--budget", "600")
    assert (status, found["wrong"]) == (0, [])
    assert list(found) == ["environment", "wrong", "kernels", "models", "ceilings", "costs"]
    assert found["kernels"]["complete"]
    assert found["models"][str(tmp_path / "small.mlir")]["error of scores"] < 1e-4
    assert found["ceilings"]["gemm_f32_TFLOPs"] > 0
    costs = load_cost_file(tmp_path / "costs.json")
    assert costs.target == "h100"
    assert costs.env["device"] == "fake H100, sm_90"
    assert len(costs.ops) == found["kernels"]["checked"] > 1


PLANTED = """
from dataclasses import replace
from isoform.testing.cuda_emulator import kernels as emulated
right = emulated.emulate
def wrong(kernels):
    return right([replace(k, source=k.source.replace({right!r}, {wrong!r})) for k in kernels])
emulated.emulate = wrong
"""


def test_gpu_check_finds_wrong_values(driver: Path, tmp_path: Path) -> None:
    planted = PLANTED.format(right="+ 1", wrong="+ 0")
    status, found = check_gpu(driver, tmp_path, "--budget", "600", before=planted)
    assert status == 1
    assert any("relative error" in text for text in found["wrong"])


def test_gpu_check_outlives_a_kernel_that_writes_where_it_must_not(
    driver: Path, tmp_path: Path
) -> None:
    planted = PLANTED.format(right=" y[", wrong=" y[1000000 + ")
    status, found = check_gpu(driver, tmp_path, "--budget", "600", before=planted)
    assert status == 1
    assert "illegal memory access" in found["kernels"]["error"]
    assert found["environment"]["device"] == "fake H100, sm_90"


def test_gpu_check_stops_within_its_budget(driver: Path, tmp_path: Path) -> None:
    status, found = check_gpu(driver, tmp_path, "--budget", "0.1")
    assert status == 0
    assert not found["kernels"]["complete"]
