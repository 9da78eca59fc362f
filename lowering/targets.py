"""Targets as data: what the cost model knows about a machine, and whether it runs here.

Figures of the GPUs are the vendors' (dense, no sparsity); the cpu's are those of one Zen 4 core
with AVX-512 at about 3.6 GHz, measured by a register-blocked FMA loop and a stream copy. A target
for another machine is `dataclasses.replace(TARGETS["cpu"], ...)`, or a cost file (docs/costs.md);
a plug-in lists it in MACHINES (examples/custom_target.py).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ..dialects.errors import UserError, did_you_mean
from .code_generator import CodeGenerator

MIB = 1 << 20


@dataclass(frozen=True)
class Target:
    """A machine.

    Units: flop/s, bytes/s, bytes, seconds.
    """

    name: str
    text: str
    peak: Mapping[str, float]
    """Peak rate per arithmetic class: `f32`, and `tf32`, `f16` (tensor cores) if it has them."""
    bandwidth: float  # of the memory
    caches: tuple[int, ...]
    """Sizes of the caches all units share or own, from the nearest on."""
    cache_bandwidth: float
    """Bandwidth of the last cache."""
    launch: float
    """Fixed cost of starting one kernel."""
    units: int
    """Streaming multiprocessors or cores."""
    tiled: bool = False
    """Whether units share the tiles of a product; a cpu core is used fully by any loop."""
    convolutions: tuple[str, ...] = ("implicit-gemm", "winograd", "fft")
    """Algorithms that its kernels or libraries have."""
    libraries: tuple[str, ...] = ()  # that it may call
    runs_here: bool = False  # whether programs for it can be run by this process

    def rate(self, class_: str) -> float:
        """Peak rate of a class; that of f32 if the machine has no faster one for it."""
        return self.peak.get(class_, self.peak["f32"])

    def generator(self) -> CodeGenerator:
        """Its code generator, imported on first use.

        Raises:
            UserError: it does not run here.
        """
        if not self.runs_here:
            raise UserError(f"target '{self.name}' does not run here")
        from .kernel_to_cpu.generator import CpuGenerator

        return CpuGenerator()

    def with_units(self, units: int) -> Target:
        """The same machine with another number of units in use (threads of a cpu)."""
        scale = units / self.units
        peak = {class_: rate * scale for class_, rate in self.peak.items()}
        return replace(self, units=units, peak=peak, cache_bandwidth=self.cache_bandwidth * scale)


def _gpu(
    name: str,
    text: str,
    f32: float,
    tf32: float | None,
    f16: float | None,
    gigabytes: float,
    units: int,
    l2: int,
) -> Target:
    """A GPU from cuda.md's units: TFLOP/s, GB/s, MB."""
    classes = {"f32": f32, "tf32": tf32, "f16": f16}
    return Target(
        name=name,
        text=text,
        peak={class_: rate * 1e12 for class_, rate in classes.items() if rate is not None},
        bandwidth=gigabytes * 1e9,
        caches=(l2 * MIB,),
        cache_bandwidth=3 * gigabytes * 1e9,
        launch=2.5e-6,
        units=units,
        tiled=True,
        libraries=("cublas", "cudnn"),
    )


CPU = Target(
    name="cpu",
    text="one core with AVX-512 and two FMA units",
    peak={"f32": 116e9},
    bandwidth=20e9,
    caches=(32 << 10, MIB, 32 * MIB),
    cache_bandwidth=87e9,
    launch=0.2e-6,
    units=1,
    convolutions=("implicit-gemm",),
    runs_here=True,
)

_ALL = (
    CPU,
    _gpu("p100", "NVIDIA P100", 9.3, None, None, 732, 56, 4),
    _gpu("v100", "NVIDIA V100", 15.7, None, 125, 900, 80, 6),
    _gpu("a100", "NVIDIA A100, 40 GB", 19.5, 156, 312, 1555, 108, 40),
    _gpu("h100", "NVIDIA H100 SXM", 67, 494, 989, 3350, 132, 50),
    _gpu("h200", "NVIDIA H200 SXM", 67, 494, 989, 4800, 132, 50),
)
TARGETS: Mapping[str, Target] = {target.name: target for target in _ALL}


_ADDED: ContextVar[tuple[Target, ...]] = ContextVar("targets", default=())


@contextmanager
def adding_targets(machines: Sequence[Target]) -> Generator[None]:
    """Add the machines of a plug-in in the block.

    Raises:
        UserError: a name is taken.
    """
    for machine in machines:
        if machine.name in known_targets():
            raise UserError(f"there is already a target '{machine.name}'")
    token = _ADDED.set((*_ADDED.get(), *machines))
    try:
        yield
    finally:
        _ADDED.reset(token)


def known_targets() -> Mapping[str, Target]:
    """Our targets, and what plug-ins in use add."""
    return {**TARGETS, **{target.name: target for target in _ADDED.get()}}


def target_named(name: str) -> Target:
    """The target of that name.

    Raises:
        UserError: there is none.
    """
    known = known_targets()
    if name not in known:
        hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
        raise UserError(f"unknown target '{name}'", where="--target", hint=hint)
    return known[name]
