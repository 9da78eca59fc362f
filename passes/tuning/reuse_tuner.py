"""Tune few kernels in full, and the others from their schedules (ETO): `isoform tune --reuse`.

The plan (passes/reuse/select.py) says who starts from whom. A kernel in full takes the trials of
the command, one from another at most MAX_TRIALS. Kernels that differ in fused work alone are one
node: the first of them stands for all. What the database has decided costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ...dialects.executor import kept_workers
from ...dialects.program import Program
from ...dialects.schedule import Schedule
from ..reuse import OperatorNest, ReusePlan, operator_of, select
from .reuse_rounds import MAX_TRIALS, ReuseRounds, Side
from .schedule_cost import KnownTrials
from .tune_kernels import KernelToTune, Progress, Tuner, kernel_from, kernels_of
from .tuned_kernels import DECIDED, kernel_of

REUSE = {"none": None, "direct": 0, "bridges": 1}
"""The hops of each choice of `--reuse`."""
Place = Callable[[Program], Program]


class ReuseTuner(Tuner):
    """A tuner that follows a plan."""

    def run_plan(self, kernels: Sequence[KernelToTune], hops: int, place: Place) -> ReusePlan:
        """Tune all kernels; `place` lowers the program of a bridge as the kernels' was.

        Raises:
            UserError: the database cannot be written.
        """
        nodes: dict[OperatorNest, list[KernelToTune]] = {}
        for kernel in kernels:
            nodes.setdefault(kernel.nest, []).append(kernel)
        nests = list(nodes)
        for kernel in self._decided(kernels):
            nodes.setdefault(kernel.nest, []).insert(0, kernel)
        plan = self._plan(nests, nodes, hops, place)
        with kept_workers():
            for number, arc in enumerate(plan.arcs):
                first, *others = nodes[arc.child]
                parent = None if arc.parent is None else nodes[arc.parent][0]
                self._one(first, parent, (number, len(plan.arcs)))
                for other in others:
                    self._one(other, first, (number, len(plan.arcs)))
        return plan

    def _plan(
        self,
        nests: Sequence[OperatorNest],
        nodes: dict[OperatorNest, list[KernelToTune]],
        hops: int,
        place: Place,
    ) -> ReusePlan:
        """The plan; kernels of its bridges are added to the nodes."""
        useless = set[OperatorNest]()
        known = [nest for nest in nodes if nest not in nests]

        def in_full(nest: OperatorNest) -> float:
            known = nest in nodes and self._is_decided(nodes[nest][0])
            return 0.0 if known else float(self.options.trials)

        def from_another(a: OperatorNest, b: OperatorNest) -> float:
            return min(MAX_TRIALS, self.options.trials) + _distance(a, b)

        while True:
            plan = select(nests, hops, in_full, from_another, None, useless, known)
            made = {nest: _bridge_kernel(nest, place) for nest in plan.bridges}
            missing = {nest for nest, kernel in made.items() if kernel is None}
            if not missing:
                nodes |= {nest: [kernel] for nest, kernel in made.items() if kernel is not None}
                return plan
            useless |= missing

    def _decided(self, kernels: Sequence[KernelToTune]) -> Iterator[KernelToTune]:
        """The other kernels that the database has decided on this processor."""
        own = {kernel.task.signature for kernel in kernels}
        for entry in self.database.file.ops.values():
            processor, signature = kernel_of(entry)
            if entry.algorithm == DECIDED and processor == self.processor and signature not in own:
                kernel = kernel_from(signature)
                if kernel is not None:
                    yield kernel

    def _is_decided(self, kernel: KernelToTune) -> bool:
        entry = self.database.entry(kernel.task.signature, self.processor)
        return entry is not None and entry.algorithm == DECIDED

    def _one(
        self, kernel: KernelToTune, parent: KernelToTune | None, place: tuple[int, int]
    ) -> None:
        if self._is_decided(kernel):
            return
        trials = KnownTrials(kernel.space, self._measured(kernel))
        if parent is None:
            self._tune(kernel, trials, [trials], place)
        else:
            self._reuse(kernel, parent, trials, place)

    def _reuse(
        self, a: KernelToTune, b: KernelToTune, trials: KnownTrials, place: tuple[int, int]
    ) -> None:
        """Measure what b's best schedule lets expect, round by round, and choose."""
        known = self.database.schedule(b.task.signature, self.processor) or Schedule()
        rounds = ReuseRounds(Side(a.nest, a.space), Side(b.nest, b.space), known)
        batches = (lambda best: [rounds.start()], *rounds.rounds())
        for propose in batches:
            best = _best_of(trials)
            batch = [one for one in propose(best) if one not in trials.ratios and one != best]
            if batch:
                self._measure(a, trials, batch)
        ratio = trials.ratios.get(_best_of(trials), 1.0) or 1.0
        tried = len(trials.ratios)
        self.tell(Progress(a, *place, tried, max(tried, self.options.trials), ratio))
        self._decide(a, trials)


def _best_of(trials: KnownTrials) -> Schedule:
    """The fastest so far, the generator's own included."""
    ratios = {s: math.inf if r is None else r for s, r in trials.ratios.items()}
    ratios.setdefault(trials.space.default, 1.0)
    return min(ratios, key=lambda s: (ratios[s], s.text))


def _distance(a: OperatorNest, b: OperatorNest) -> float:
    """How far loops are apart, in doublings: of equal costs the nearest parent is the best."""
    pairs = zip(a.loops, b.loops, strict=True)
    return math.fsum(abs(math.log2(one / other)) for one, other in pairs)


def _bridge_kernel(nest: OperatorNest, place: Place) -> KernelToTune | None:
    """The kernel of a bridge; None if no operator lowers to a kernel like its neighbours'."""
    program = operator_of(nest, constant="packed" in nest.sketches or "conv" in nest.kind)
    if program is None:
        return None
    found = kernels_of(place(program))
    same = (k for k in found if k.nest.loops == nest.loops and k.nest.group == nest.group)
    return next(same, None)
