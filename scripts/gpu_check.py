"""Check and measure the present GPU: kernels against float64, graphs, ceilings, costs.

    python scripts/gpu_check.py --budget 480 -o OUT

Stages run in order and share the budget. Each prints progress and writes OUT/gpu_check.json when
it ends, so a run that is cut short leaves its results. A stage that runs out of time says how far
it got. The last one writes OUT/costs.json, a cost file for this card (docs/costs.md).

Needs the extras `cuda` (PyCUDA, NVRTC, cuBLAS) and, for convolutions by the library, `cuda-plan`.
Exit 1 if any result is wrong.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

import isoform
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.cuda_device import installed_libraries
from isoform.compiler.targets.levels import lower_to, place
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import KernelOp
from isoform.dialects.program import Program
from isoform.dialects.signature import signature
from isoform.lowering.algebra_to_kernel.constant import constant_values
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.compile import CompileError, Cubin, compile_kernels
from isoform.lowering.kernel_to_cuda.cublas import Cublas
from isoform.lowering.kernel_to_cuda.device_runtime import DeviceError, Work
from isoform.lowering.kernel_to_cuda.program_data import CudaKernel, Gemm, GemmOperand
from isoform.lowering.kernel_to_cuda.pycuda_runtime import PyCudaRuntime, open_device
from isoform.lowering.kernel_to_cuda.session import CudaSession, Timing, timed
from isoform.lowering.targets import TARGETS
from isoform.passes.cost.cost_file import CostFile, entry_for
from isoform.passes.cost.costs import Costs, estimates
from isoform.passes.tuning.measure_alternatives import isolate_kernel

MODELS = ",".join(
    f"zoo:{name}"
    for name in ("resnet18", "dcgan", "bert-base", "infogan", "csrnet", "resnet50", "longformer")
)
PACKAGES = ("pycuda", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cublas", "nvidia-cudnn-cu13",
            "nvidia-cudnn-frontend", "numpy")  # fmt: skip
TOLERANCE = 1e-4
MOST_COPIES = 8

NOTHING = CudaKernel(
    "nothing", 'extern "C" __global__ void nothing() {}\n', (1, 1, 1), (32, 1, 1), 0, ()
)


@dataclass
class Report:
    """The results so far, written after each stage."""

    folder: Path
    budget: float
    data: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Seconds left of the budget."""
        return self.budget - (time.monotonic() - self.started)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    def stage(self, name: str, run: Callable[[], dict[str, Any]], broken: type[Exception]) -> None:
        """Run a stage; if something it needs is missing, note that and go on.

        Args:
            broken: what the driver raises; later stages then fail too, and say so.
        """
        self.say(f"--- {name}")
        try:
            self.data[name] = run()
        except UserError as error:
            self.data[name] = {"skipped": str(error)}
            self.say(f"skipped: {error}")
        except broken as error:
            self.data.setdefault(name, {})["error"] = str(error)
            self.fail(f"{name}: {error}")
        self.data["wrong"] = self.wrong
        path = self.folder / "gpu_check.json"
        path.write_text(json.dumps(self.data, indent=2) + "\n")

    def fail(self, text: str) -> None:
        """Note a wrong result."""
        self.wrong.append(text)
        self.say(f"WRONG: {text}")


@dataclass
class Case:
    """One kernel op of a model, alone: its program with places in memory, and its position."""

    model: str
    op: KernelOp
    known: set[SSAValue]
    program: Program
    before: int
    after: int


class Check:
    """The stages. `compiler` makes cubins: NVRTC, or a test's replacement."""

    def __init__(
        self, report: Report, device: PyCudaRuntime, arguments: argparse.Namespace
    ) -> None:
        self.report, self.device, self.arguments = report, device, arguments
        self.models = arguments.models.split(",")
        self.libraries = installed_libraries()
        self.cases: list[Case] = []
        self.timings: list[tuple[Case, str, Timing]] = []

    def run(self) -> None:
        """All stages, each with its share of the budget."""
        stages = (
            ("environment", self.environment),
            ("kernels", self.kernels),
            ("models", self.whole_models),
            ("ceilings", self.ceilings),
            ("costs", self.costs),
        )
        for name, stage in stages:
            self.report.stage(name, stage, (self.device.driver.Error, DeviceError))

    # --- stages ---

    def environment(self) -> dict[str, Any]:
        """The machine and versions."""
        device, attribute = self.device, self.device.driver.device_attribute
        get = device.device.get_attribute
        found = {
            "device": device.description,
            "driver": device.driver.get_driver_version(),
            "multiprocessors": get(attribute.MULTIPROCESSOR_COUNT),
            "l2_bytes": get(attribute.L2_CACHE_SIZE),
            "memory_bytes": device.device.total_memory(),
            "libraries": list(self.libraries),
            "python": platform.python_version(),
            "isoform": isoform.__version__,
            "packages": {name: _version(name) for name in PACKAGES},
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        for key, value in found.items():
            self.report.say(f"{key}: {value}")
        return found

    def kernels(self) -> dict[str, Any]:
        """Every kernel op of the models alone, generated and from the library, against float64."""
        deadline = self.report.left() * 0.55
        start, checked, rows = self.report.left(), 0, []
        self.report.data["kernels"] = {"ops": rows}  # partial results, should the driver give up
        ways = [(), self.libraries] if self.libraries else [()]
        for case in self._all_cases():
            if start - self.report.left() > deadline:
                self.report.say(f"out of time after {checked} ops")
                return {"checked": checked, "complete": False, "ops": rows}
            self.cases.append(case)
            checked += 1
            rows.append({"model": case.model, "op": signature(case.op)[:200]})
            for libraries in ways:
                name = "library" if libraries else "generated"
                rows[-1][name] = self._one(case, libraries, name, checked)
        return {"checked": checked, "complete": True, "ops": rows}

    def _one(self, case: Case, libraries: Sequence[str], name: str, seed: int) -> dict[str, Any]:
        """Check one implementation of one op, and time it."""
        what = f"{case.model}: {case.op.name} number {seed}, {name}"
        printed = cuda_program(case.program, libraries=libraries)
        try:
            sessions = [CudaSession(printed, self.device)]
        except CompileError as error:
            self.report.fail(f"{what}: {error}")
            return {"wrong": str(error)}
        try:
            error = self._error(sessions[0], case.program, seed)
            if not error < TOLERANCE:
                self.report.fail(f"{what}: relative error {error:.2e}")
            sessions += [
                CudaSession(printed, self.device) for _ in range(self._copies(printed) - 1)
            ]
            end = len(printed.steps) - case.after
            works = [work for s in sessions for work in s.works()[case.before : end]]
            timing = self._per_copy(works, len(sessions))
            self.timings.append((case, name, timing))
        except UserError as refused:  # by cuBLAS or cuDNN
            self.report.say(f"{what}: {refused}")
            return {"skipped": str(refused)}
        finally:
            for session in sessions:
                session.close()
        self.report.say(f"{what}: error {error:.1e}, {timing.median * 1e6:.2f} us")
        return {"error": error, **_microseconds(timing)}

    def whole_models(self) -> dict[str, Any]:
        """Whole models: the graph against eager steps, both against the CPU target; latency."""
        found: dict[str, Any] = {}
        for name in self.models:
            if self.report.left() < self.report.budget * 0.15:  # the rest is for later stages
                found[name] = {"skipped": "out of time"}
                continue
            try:
                found[name] = self._model(name)
            except UserError as error:
                found[name] = {"skipped": str(error)}
            self.report.say(f"{name}: {found[name]}")
        return found

    def _model(self, name: str) -> dict[str, Any]:
        program = isoform.load(name)
        inputs = draw_inputs(program, 1)
        expected = isoform.compile(program, effort="quick")(**inputs)
        session = CudaSession(
            cuda_program(place(program, target="cuda"), libraries=self.libraries), self.device
        )
        try:
            session.poison()
            graph = session.run(inputs)
            session.poison()
            for work in session.works():
                work()
            row: dict[str, Any] = {"steps": len(session.program.steps)}
            for port in session.program.outputs:
                eager = session.download(port)
                if not np.array_equal(eager, graph[port.name], equal_nan=True):
                    self.report.fail(f"{name}: graph and eager differ in '{port.name}'")
                error = _relative(graph[port.name], expected[port.name])
                row[f"error of {port.name}"] = error
                if not error < 10 * TOLERANCE:
                    self.report.fail(f"{name}: '{port.name}' is off by {error:.2e}")
            launch = self.device.capture(session.works())
            return {**row, **_microseconds(timed(self.device, launch))}
        finally:
            session.close()

    def ceilings(self) -> dict[str, Any]:
        """The card's ceilings: a copy, products, an empty kernel."""
        device, size = self.device, self.arguments.copy_bytes
        source, target = device.alloc(size), device.alloc(size)
        copy = device.driver.memcpy_dtod_async
        timing = timed(device, lambda: copy(target, source, size, device.stream))
        found: dict[str, Any] = {"copy_GBs": 2 * size / timing.median * 1e-9}
        (nothing,) = device.load([NOTHING])
        graph = device.capture([nothing([])] * 100)
        found["empty_kernel_us"] = timed(device, graph).median * 1e6 / 100
        if "cublas" in self.libraries:
            for name, tf32 in (("gemm_f32_TFLOPs", False), ("gemm_tf32_TFLOPs", True)):
                found[name] = self._gemm(tf32)
        for address in (source, target):
            device.free(address)
        self.report.say(str(found))
        return found

    def _gemm(self, tf32: bool) -> float:
        """TFLOP/s of one large product."""
        n, device = self.arguments.gemm, self.device
        places = [device.alloc(4 * n * n) for _ in range(3)]
        ones = np.ones((n, n), np.float32)
        for place_ in places:
            device.upload(place_, ones)
        library = Cublas(device.stream.handle, tf32)
        workspace = device.alloc(library.WORKSPACE)
        library.use_workspace(workspace)
        whole = [GemmOperand(k, 0, n, n, n, 0, False) for k in range(3)]
        work = library.bind(Gemm(*whole, n, n, n, 1, "float"), places)
        seconds = timed(device, work).median
        library.close()
        for address in (*places, workspace):
            device.free(address)
        return 2 * n**3 / seconds * 1e-12

    def costs(self) -> dict[str, Any]:
        """The cost file: the faster implementation of each op, and the model's error, by class."""
        name = next((t for t in TARGETS if t in self.device.description.lower()), None)
        if name is None:
            raise UserError("no target is described for this card", found=self.device.description)
        best: dict[int, tuple[Case, str, Timing]] = {}
        for entry in self.timings:
            kept = best.get(id(entry[0]))
            if kept is None or entry[2].median < kept[2].median:
                best[id(entry[0])] = entry
        file = CostFile(name, env=self.report.data["environment"])
        costs, ratios = Costs(TARGETS[name]), dict[str, list[float]]()
        for case, way, timing in best.values():
            us = [seconds * 1e6 for seconds in (timing.median, timing.p10, timing.p90)]
            file.add(entry_for(case.op, *us, algorithm=way))
            fresh = [value in case.known for value in case.op.operands]
            known = estimates(case.op, costs.target, costs.fitted)
            (seconds, _), estimate = min(
                zip(costs.algorithms(case.op, fresh), known, strict=True), key=lambda pair: pair[0]
            )
            ratios.setdefault(estimate.class_, []).append(timing.median / seconds)
        file.class_scale = {key: statistics.median(r) for key, r in sorted(ratios.items())}
        file.save(self.report.folder / "costs.json")
        self.report.say(f"{len(best)} ops in costs.json, scale by class {file.class_scale}")
        return {"ops": len(best), "class_scale": file.class_scale}

    # --- parts ---

    def _all_cases(self) -> Iterator[Case]:
        """The distinct kernel ops of the models, each alone."""
        seen: set[str] = set()
        for name in self.models:
            lowered = lower_to(isoform.load(name), "kernel")
            known = constant_values(lowered.module)
            for op in list(lowered.main.body.block.ops):
                if not isinstance(op, KernelOp) or op.result in known or signature(op) in seen:
                    continue
                seen.add(signature(op))
                program, copy = isolate_kernel(op, known, len(seen))
                kernels = [o for o in program.main.body.block.ops if isinstance(o, KernelOp)]
                before = kernels.index(copy)
                after = len(kernels) - 1 - before
                yield Case(name, op, known, place(program, target="cuda"), before, after)

    def _error(self, session: CudaSession, program: Program, seed: int) -> float:
        """Largest error relative to the largest value, on fresh data and NaN-filled outputs."""
        inputs = draw_inputs(program, seed)
        session.poison()
        found, expected = session.run(inputs), reference.run(program, inputs)
        return max(_relative(found[key], value) for key, value in expected.items())

    def _copies(self, printed: Any) -> int:
        """How many sets of buffers exceed twice the last-level cache."""
        cache = self.device.device.get_attribute(self.device.driver.device_attribute.L2_CACHE_SIZE)
        size = printed.arena_bytes + printed.weight_bytes
        return max(1, min(MOST_COPIES, -(-2 * cache // max(1, size))))

    def _per_copy(self, works: Sequence[Work], copies: int) -> Timing:
        """Time per set of buffers: one graph cycles through all sets."""
        timing = timed(self.device, self.device.capture(works))
        return Timing(timing.median / copies, timing.p10 / copies, timing.p90 / copies)


def _relative(found: Any, expected: Any) -> float:
    """Largest difference over the largest value; infinite where only one has NaN."""
    found, expected = (np.asarray(a).astype(np.float64) for a in (found, expected))
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=1e-30)
    return float(np.abs(found[finite] - expected[finite]).max(initial=0.0) / scale)


def _microseconds(timing: Timing) -> dict[str, float]:
    return {"us": timing.median * 1e6, "p10": timing.p10 * 1e6, "p90": timing.p90 * 1e6}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def main(
    arguments: Sequence[str],
    compiler: Callable[[Sequence[CudaKernel], int], list[Cubin]] = compile_kernels,
) -> int:
    """Run the check; 0 if all is right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--budget", type=float, default=480, help="seconds in all (480)")
    add("-o", "--output", type=Path, default=Path("gpu_check"), help="folder for the results")
    add("--models", default=MODELS, help="FILE.onnx, FILE.mlir, zoo:NAME; comma separated")
    add("--gemm", type=int, default=8192, help="size of the product that shows the ceiling")
    add("--copy-bytes", type=int, default=1 << 30, help="size of the copy that shows the ceiling")
    parsed = parser.parse_args(arguments)
    parsed.output.mkdir(parents=True, exist_ok=True)
    report = Report(parsed.output, parsed.budget)
    try:
        device = open_device(compiler=compiler)
    except UserError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 1
    Check(report, device, parsed).run()
    device.close()
    report.say(f"{len(report.wrong)} wrong; {parsed.output / 'gpu_check.json'}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
