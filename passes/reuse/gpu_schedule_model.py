"""Seconds of a tiled schedule on a GPU that is not here: modelled, from the cost model's tables.

    t = launch + max(arithmetic, shared memory, last cache, memory) * waves

- arithmetic: 2 flops a term at the target's peak, less where warps are too few to hide latency,
  and with the loop overhead of what is not unrolled;
- shared memory: requests of all warps (`thread_cost`), one a cycle and multiprocessor;
- last cache and memory: lines that all blocks request, and operands and result once;
- waves: the last one leaves multiprocessors idle.

Only the order of two schedules of one nest is meant to be trusted. What is per multiprocessor is
the same from compute capability 6.0 to 9.0 but for shared memory (CUDA programming guide, technical
specifications); 7.0 and later can give a block more than 48 KiB, which Ansor does not use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...lowering.targets import Target
from .machine import FLOAT, GPU, Gpu, memory_of
from .nest import OperatorNest
from .operands import needed, operands
from .simple_sketches import AnySchedule, FusedSchedule
from .tile_schedule import TileSchedule

CLOCKS = {"p100": 1.30e9, "v100": 1.53e9, "a100": 1.41e9, "h100": 1.98e9, "h200": 1.98e9}
"""Hz at which the peak rates of lowering/targets.py hold: the vendor's boost clocks."""
SHARED = {"p100": 64, "v100": 96, "a100": 164, "h100": 228, "h200": 228}
"""KiB of shared memory of a multiprocessor."""
THREADS, BLOCKS, REGISTERS = 2048, 32, 65536  # most of a multiprocessor
MAX_REGISTERS = 255  # of a thread
# Instructions in flight that keep a multiprocessor busy: four schedulers, four cycles each, with
# one warp of independent multiply-adds a cycle.
IN_FLIGHT = 16
# Instructions of a loop iteration beside its body: an addition, a comparison, a branch.
OVERHEAD = 3


@dataclass(frozen=True)
class ModelledGpu:
    """The seconds of a nest's schedules on a target."""

    target: Target
    machine: Gpu = GPU

    def seconds(self, nest: OperatorNest, schedule: AnySchedule) -> float:
        """Modelled; infinity where the schedule cannot be run."""
        if isinstance(schedule, FusedSchedule):
            return self._fused(nest, schedule)
        if not schedule.is_valid(nest, self.machine):
            return math.inf
        resident = self._resident(nest, schedule)
        if resident == 0:
            return math.inf
        warps = -(-schedule.threads // self.machine.warp)
        busy = self._busy(nest, schedule, resident * warps)
        waste = warps * self.machine.warp / schedule.threads  # lanes of the last warp idle
        arithmetic = 2 * nest.size / self.target.peak["f32"] * waste / busy
        moved = (self._shared(nest, schedule), *self._memory(nest, schedule))
        fill = self._fill(schedule.blocks, resident)
        return self.target.launch + max(arithmetic / fill, moved[0] / fill, *moved[1:])

    def _resident(self, nest: OperatorNest, schedule: TileSchedule) -> int:
        """Blocks that a multiprocessor runs at a time."""
        near = memory_of(nest, schedule.block, schedule.slices) * FLOAT
        box = (*schedule.box, *(tiles[2] for tiles in schedule.reduction))
        inputs = sum(math.prod(needed(operand, box)) for operand in operands(nest))
        registers = 16 + math.prod(schedule.split) * (math.prod(schedule.box) + inputs)
        if registers > MAX_REGISTERS:
            return 0  # it would spill
        most = (BLOCKS, THREADS // schedule.threads, REGISTERS // (registers * schedule.threads))
        return min(*most, SHARED[self.target.name] * 1024 // near)

    def _busy(self, nest: OperatorNest, schedule: TileSchedule, warps: int) -> float:
        """The share of cycles that start a multiply-add."""
        independent = math.prod(schedule.split) * math.prod(schedule.box)
        hidden = min(1.0, warps * min(independent, 8) / (IN_FLIGHT * 4))
        body = math.prod(schedule.unrolled()) * math.prod(schedule.split)
        slices = math.prod(schedule.slices)
        fetched = sum(schedule.loads(nest, k) / n for k, n in enumerate(schedule.vectors)) / (
            slices * independent
        )
        return hidden / (1 + OVERHEAD / body + 2 * fetched)

    def _shared(self, nest: OperatorNest, schedule: TileSchedule) -> float:
        requests = self.machine.thread_cost(
            nest, schedule.block, schedule.slices, schedule.split, schedule.box
        )
        total = requests * math.prod(schedule.fetches) * schedule.blocks
        return total / (self.target.units * CLOCKS[self.target.name])

    def _memory(self, nest: OperatorNest, schedule: TileSchedule) -> tuple[float, float]:
        result = nest.points * FLOAT
        asked = self.machine.block_cost(nest, schedule.block) * self.machine.segment + result
        once = sum(math.prod(needed(o, nest.loops)) for o in operands(nest)) * FLOAT + result
        return asked / self.target.cache_bandwidth, once / self.target.bandwidth

    def _fill(self, blocks: int, resident: int) -> float:
        """The share of multiprocessors at work: all blocks over those of whole waves."""
        wave = self.target.units * min(resident, max(1, -(-blocks // self.target.units)))
        return blocks / (wave * -(-blocks // wave))

    def _fused(self, nest: OperatorNest, schedule: FusedSchedule) -> float:
        """Bound by memory, by the number of threads, and by steps of a shared sum."""
        found = schedule.features(nest)
        once = sum(math.prod(needed(o, nest.loops)) for o in operands(nest)) + nest.points
        resident = min(BLOCKS, THREADS // schedule.inner)
        fill = self._fill(found.blocks, resident) * min(1.0, schedule.inner / self.machine.warp)
        busy = min(1.0, found.threads / (self.target.units * THREADS))
        return self.target.launch + FLOAT * once / (self.target.bandwidth * fill * max(busy, 1e-3))
