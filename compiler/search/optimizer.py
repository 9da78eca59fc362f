"""`optimize`: rewrite a program, search for better ones, and keep only what is no slower.

The user's passes come first, then the graph rewrites of `GRAPH_REWRITES`, then the searches of
strategies.py, one after the other. Epilogues are fused while lowering to the kernel level. A result
measured (or, where the target cannot run here, modelled) as slower than its input is never
returned: the answer is then the input and the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects.deadline import TimeIsUpError, check_time, paused, until
from ...dialects.errors import UserError, say
from ...dialects.floats import Allowed
from ...dialects.program import Program, add_pipeline, pipeline_of, provenance, where
from ...dialects.program_summary import price
from ...lowering.targets import Target, target_named
from ...passes.cost.costs import Costs, load_costs
from ...passes.margins import MEASURE
from ...passes.rules.rule import Rule
from ...passes.search_result import StopReason
from ...passes.work_clock import counted, now
from ..checks.rewrite_recorder import Rewrite, RewriteRecorder, named
from ..frontends.program_file import without_weights
from ..pass_manager import PassRun
from ..peers.timing import interleave, median
from ..reports.changes import ChangedOps, ChangeRecorder, with_changes
from ..reports.float_policy import entry_of, floats_named, floats_of
from ..reports.report_schema import FORMAT, VERSION
from ..targets.cpu import reassociated
from ..targets.cpu_options import CpuOptions
from ..targets.levels import level_of, priced, run_passes
from ..targets.session import Session
from .acceptance import is_refused, program_seconds
from .answers import Answer, AnswerMemory
from .bodies import search_with_bodies
from .precision import Chosen, Precision, choose
from .records import Comparison, ComparisonRequest, Searched, slower
from .strategies import Strategy, chosen
from .user_passes import UserPasses

# canonicalize first: folds see convolutions next to their batch norms. merge-equal after the folds,
# whose new weight expressions may repeat. The last canonicalize and dce drop what became unused.
GRAPH_REWRITES = (
    "canonicalize",
    # Before constants are folded: dequantised weights would be floats.
    "integer-products",
    "fold-batch-norm",
    "canonicalize",
    "hoist-invariants",
    "merge-equal",
    "fold-constants",
    "canonicalize",
    "dce",
)
# The named outcomes of a search; a report's `stop_reason` is one of them.
FINISHED, NO_GAIN = "finished", "no gain found"


@dataclass(repr=False)
class Optimized(Program):
    """A program and how it was made."""

    report: dict[str, Any] = field(default_factory=dict[str, Any])  # see docs/commands.md
    original: Program | None = None  # the program it was made from

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """Evidence that it computes the same as its source (docs/certificate.md).

        The two are compared on the first call, in their state at that time.

        Raises:
            UserError: they differ, or the program was not made by `optimize`.
        """
        from ..reports.certificate import certified

        if self.original is None:
            raise UserError("this program was not made by optimize: there is nothing to certify")
        return certified(self.original, self, self.report)

    @property
    def cost(self) -> dict[str, Any]:
        """Seconds before and after, and whether they were measured or modelled."""
        return self.report["cost"]

    def remarks(self) -> list[str]:
        """What was gained, and why the searches ended."""
        if not self.report:
            return []
        found = f"for {self.report['target']}: {price(self.cost)}"
        return [found, f"search: {self.report['stop_reason']}"]


@dataclass(frozen=True)
class PassStep:
    """One pass that ran: its number of rewrites, and the modelled time of the program after it."""

    name: str
    rewrites: int
    delta: float


def improve(program: Program, *, strict_nan: bool = False) -> Program:
    """Apply the rewrites that never hurt to a copy, without measuring.

    A program below the graph level is returned unchanged.

    Args:
        strict_nan: leave out those that change infinities or NaN.
    """
    better = program.clone()
    if level_of(program) == "graph":
        passes = _applicable(program, Allowed(strict_nan=strict_nan))
        run_passes(better, ",".join(passes), verify_result=False)
    return better


def rewritten(program: Program, target: str) -> Optimized:
    """What `improve` makes, with a report: no search, modelled on a target.

    Raises:
        UserError: the target is unknown.
    """
    started, described = time.perf_counter(), target_named(target)
    costs = load_costs(described)
    own = UserPasses("", False, 0.0)
    better, steps, rewrites, rejected = _rewritten(program, own, costs, Allowed())
    before, after = _modelled(program, better, costs)
    report = {
        **_asked(program, described, "none"),
        "elapsed_s": time.perf_counter() - started,
        "stop_reason": FINISHED,
        "cost": {"before": before, "after": after, "unit": "s", "kind": "modelled"},
        "passes": [vars(step) for step in steps],
        "rewrites": rewrites,
        "rejected": rejected,
    }
    return Optimized(better.module, better.weights, program.source, report, program)


def _applicable(program: Program, allowed: Allowed) -> tuple[str, ...]:
    """The allowed rewrites for a program; folding constants needs the weights' data."""
    names = tuple(name for name in GRAPH_REWRITES if not _why_left_out(name, allowed))
    if without_weights(program):
        return tuple(name for name in names if name != "fold-constants")
    return names


def _why_left_out(name: str, allowed: Allowed) -> str:
    """Why the user's flags refuse a pass; empty where they do not."""
    floats = floats_named(name)
    assert floats is not None, f"pass {name} has no label"
    return "" if allowed.allows(floats) else allowed.why_not(floats)


def optimize(
    program: Program,
    target: str,
    strategy: str,
    budget: float,
    seed: int,
    cost_file: str | Path | None,
    threads: int,
    effort: str,
    tolerance: float,
    level: str = "kernel",
    floats: Allowed | None = None,
    rules: tuple[Rule, ...] = (),
    pipeline: str = "",
    allow_unproved: bool = False,
    precision: Precision | None = None,
) -> Optimized:
    """Search, then decide; see `api.optimize`."""
    started = time.perf_counter()
    options = CpuOptions(threads, effort, tolerance, floats=floats or Allowed())
    described = target_named(target)
    why = why_not_measured(program, described)
    strategies = chosen(strategy, level, measured=why is None)
    here = described.with_units(threads) if described.runs_here else described
    costs = load_costs(here, cost_file)
    own = UserPasses(pipeline, allow_unproved, budget)
    better, steps, rewrites, rejected = _rewritten(program, own, costs, options.floats)
    say(f"rewrite: {len(rewrites)} rewrites in {time.perf_counter() - started:.1f} s")
    request = ComparisonRequest(described, costs, seed, options, started + budget, why, rules)
    rewritten = time.perf_counter()
    better, lowered, request = _lowered(program, better, precision, request, rewrites)
    found = _found(program, better, strategies, request, budget)
    searched, outcome = found.searched, found.comparison
    better, rewrites = searched.program, rewrites + searched.rewrites
    rejected += searched.rejected
    changed = not program.module.is_structurally_equivalent(better.module)
    reason = _why_refused(program, better, outcome, lowered, request)
    if refused := bool(reason):
        better = program.clone()
        rejected.append({"rule": "all", "place": "main", "reason": reason})
    stages = {"rewrite": rewritten - started, **searched.seconds, "compare": found.comparing}
    report = {
        **_asked(program, described, strategy),
        "seed": seed,
        "budget_s": budget,
        "threads": threads,
        "elapsed_s": time.perf_counter() - started,
        "remembered": found.remembered,
        "stages_s": {**stages, "compile": outcome.compiling},
        "stop_reason": _stop_reason(searched, outcome, changed),
        "cost": _cost(outcome, refused),
        "passes": [vars(step) for step in steps],
        "rewrites": [*([] if refused else rewrites), *_of_kernels(outcome, options)],
        "rejected": rejected,
        **searched.entries,
        "kernels": outcome.kernels,
        **({} if lowered is None else {"precision": lowered.entry}),
        "verdict": {},
        "message": _message(outcome, reason, changed, searched.nothing),
    }
    return Optimized(better.module, better.weights, program.source, report, program)


def _asked(program: Program, target: Target, strategy: str) -> dict[str, Any]:
    """What a report begins with."""
    asked = {"source": program.source, "target": target.name, "strategy": strategy}
    return {"format": FORMAT, "version": VERSION, **asked}


def _found(
    program: Program,
    better: Program,
    strategies: tuple[Strategy, ...],
    request: ComparisonRequest,
    budget: float,
) -> Answer:
    """What an earlier run found of the same question, or what is found now."""
    answers = AnswerMemory.of(program, better, strategies, request, budget)
    if answers is not None and (known := answers.load()) is not None:
        say("search: an earlier run found the answer")
        return known
    searched = _searched(better, strategies, request, budget)
    started = time.perf_counter()
    changed = not program.module.is_structurally_equivalent(searched.program.module)
    say("compare: the result with the input")
    after = searched.program if changed else program
    comparison = _compare(program, after, request, budget, searched)
    seconds = time.perf_counter() - started - comparison.compiling
    found = Answer(searched, comparison, seconds)
    if answers is not None:
        answers.save(found)
    return found


def _searched(
    better: Program, strategies: tuple[Strategy, ...], request: ComparisonRequest, budget: float
) -> Searched:
    """What the searches find. Where nothing is measured, work is counted in place of seconds."""
    if request.unmeasured is None:
        return search_with_bodies(better, strategies, request)
    started = time.perf_counter()
    stop = started + max(request.end - started, 0.0) * MEASURE.modelled
    with counted(stop):
        asked = replace(request, end=now() + budget, stop=request.end)
        return search_with_bodies(better, strategies, asked)


def _of_kernels(comparison: Comparison, options: CpuOptions) -> list[dict[str, Any]]:
    """The choices made for kernels, as entries of a report, where the result runs."""
    return [*comparison.algorithms, *([reassociated()] if options.floats.fast_math else [])]


def _stop_reason(searched: Searched, comparison: Comparison, changed: bool) -> str:
    """The reason that ended searches or comparison early, otherwise whether there is a gain."""
    for reason in ("interrupted", "time"):
        if reason in (comparison.missed, searched.stop_reason):
            return reason
    gained = not comparison.is_slower and (changed or bool(comparison.algorithms))
    return FINISHED if gained else NO_GAIN


# --- rewriting ----------------------------------------------------------------------------------


def rewritten_copy(
    program: Program, costs: Costs, allowed: Allowed
) -> tuple[Program, list[PassStep], list[dict[str, Any]], list[dict[str, Any]]]:
    """A copy after the graph rewrites; what ran, was done and was not."""
    return _rewritten(program, UserPasses("", False, 0.0), costs, allowed)


def _rewritten(
    program: Program, own: UserPasses, costs: Costs, allowed: Allowed
) -> tuple[Program, list[PassStep], list[dict[str, Any]], list[dict[str, Any]]]:
    """A copy after the user's passes and the graph rewrites; what ran, was done and was not."""
    given = program.clone()
    steps, rewrites = _recorded(given, own.pipeline, costs) if own.pipeline else ([], [])
    if own.pipeline:
        own.require_equal(program, given)
        add_pipeline(given.module, own.pipeline)
    better = given.clone()
    more_steps, more = _rewrite(better, costs, allowed)
    if not given.module.is_structurally_equivalent(better.module):
        add_pipeline(better.module, ",".join(_applicable(given, allowed)))
    return better, steps + more_steps, rewrites + more, _skipped(given, allowed)


def _rewrite(
    program: Program, costs: Costs, allowed: Allowed
) -> tuple[list[PassStep], list[dict[str, Any]]]:
    """Apply the graph rewrites in place; return the passes that ran and their rewrites."""
    if level_of(program) != "graph":
        return [], []
    return _recorded(program, ",".join(_applicable(program, allowed)), costs)


def _lowered(
    program: Program,
    better: Program,
    precision: Precision | None,
    request: ComparisonRequest,
    rewrites: list[dict[str, Any]],
) -> tuple[Program, Chosen | None, ComparisonRequest]:
    """A program with products in lower precision, if that is faster and was asked for.

    Args:
        program: the source. The report's entry gets the passes that lead from it.
        rewrites: of the report; what was done is added.

    Returns:
        The program, what was chosen, and the request: the time for this is no part of the budget.
    """
    if precision is None:
        return better, None, request
    started = time.perf_counter()
    chosen = choose(better, precision, request.seed, request.options.threads)
    if chosen.pipeline:
        lowered, costs, allowed = better.clone(), request.costs, request.options.floats
        made = _recorded(lowered, chosen.pipeline, costs)[1]
        add_pipeline(lowered.module, chosen.pipeline)
        own = pipeline_of(program.module)
        passes = pipeline_of(lowered.module)
        chosen.entry["passes"] = passes.removeprefix(f"{own}," if own else "")
        again = _rewrite(lowered, costs, allowed)[1]
        add_pipeline(lowered.module, ",".join(_applicable(lowered, allowed)))
        if chosen.accept(*program_seconds((better, lowered), request)):
            better = lowered
            rewrites += [*({**entry, "proof": "measured"} for entry in made), *again]
    seconds = chosen.entry["seconds"] = time.perf_counter() - started
    return better, chosen, replace(request, end=request.end + seconds)


def _recorded(
    program: Program, pipeline: str, costs: Costs
) -> tuple[list[PassStep], list[dict[str, Any]]]:
    """Apply passes in place; return those that ran and their rewrites."""
    steps: list[PassStep] = []
    rewrites: list[dict[str, Any]] = []
    known, cost = _rules(program), costs.program(program).seconds
    recorder, changed = RewriteRecorder(), ChangeRecorder(program, costs)

    def record(run: PassRun, _: ModuleOp) -> None:
        nonlocal known, cost
        before, cost = cost, costs.program(program).seconds
        step, done = PassStep(run.name, run.rewrites, cost - before), recorder.take()
        found = changed.take(program)
        made = _instances(program, known, step) or _of_step(step, done) or _of_changes(step, found)
        steps.append(replace(step, rewrites=step.rewrites or len(made)))
        made = with_changes(made, found)
        rewrites.extend({**entry, **entry_of(floats_of(run.pass_))} for entry in made)
        known = _rules(program)

    run_passes(program, pipeline, record, recorder)
    return steps, rewrites


def _rules(program: Program) -> dict[Operation, int]:
    """The number of rules that made each op."""
    return {op: len(provenance(op)) for op in program.main.body.block.ops}


def _instances(
    program: Program, known: dict[Operation, int], step: PassStep
) -> list[dict[str, Any]]:
    """Entries for the ops that a pass rewrote last; its modelled gain is shared equally."""
    places = [
        where(op)
        for op in program.main.body.block.ops
        if provenance(op)[-1:] == [step.name] and known.get(op, 0) < len(provenance(op))
    ]
    share = step.delta / len(places) if places else 0.0
    return [{"rule": step.name, "place": p, "proof": "exact", "delta": share} for p in places]


def _of_step(step: PassStep, done: Sequence[Rewrite]) -> list[dict[str, Any]]:
    """Entries for a pass that leaves no names on ops, such as canonicalize."""
    share = step.delta / len(done) if done else 0.0
    return [
        {**vars(rewrite), "proof": "exact", "delta": share} for rewrite in named(step.name, done)
    ]


def _of_changes(step: PassStep, found: Sequence[ChangedOps]) -> list[dict[str, Any]]:
    """Entries for a pass that leaves no names and has no patterns, such as merge-equal."""
    places = [next(op.place for op in (*change.before, *change.after)) for change in found]
    share = step.delta / len(places) if places else 0.0
    return [{"rule": step.name, "place": p, "proof": "exact", "delta": share} for p in places]


def _skipped(program: Program, allowed: Allowed) -> list[dict[str, Any]]:
    """Entries for rewrites that could not be tried or are not allowed, with the reason."""
    if level_of(program) != "graph":
        reason = f"the program is at the {level_of(program)} level already"
        return [{"rule": "graph rewrites", "place": "main", "reason": reason}]
    reasons = {name: _why_left_out(name, allowed) for name in GRAPH_REWRITES}
    if without_weights(program):
        reasons["fold-constants"] = "the weights file is absent"
    return [{"rule": n, "place": "main", "reason": why} for n, why in reasons.items() if why]


# --- deciding -----------------------------------------------------------------------------------


def _compare(
    before: Program, after: Program, request: ComparisonRequest, budget: float, searched: Searched
) -> Comparison:
    """Measure both programs in turn where the target runs here, otherwise use the model.

    The comparison has its part of the budget, also where the searches took longer than theirs;
    after an interrupt it gets no more.

    Raises:
        KeyboardInterrupt: at the second interrupt.
    """
    interrupted = searched.stop_reason == "interrupted"
    own = time.perf_counter() + budget * (1.0 - MEASURE.searching)
    end = min(request.end, own) if interrupted else max(request.end, own)
    if request.unmeasured is not None:
        first, second = _modelled(before, after, request.costs)
        return Comparison(first, second, first, "modelled", request.unmeasured)
    missed: StopReason = "time"
    try:
        with until(end):
            left = max(end - time.perf_counter(), 0.0)
            return measure_pair(before, after, request.seed, request.options, left)
    except TimeIsUpError:
        note = "the budget was spent before it was compared with the input: --budget gives more"
    except KeyboardInterrupt:
        if interrupted:
            raise
        missed, note = "interrupted", "interrupted before it was compared with the input"
    seconds = request.costs.program(before).seconds
    return Comparison(seconds, seconds, seconds, "modelled", note, missed=missed)


def _modelled(before: Program, after: Program, costs: Costs) -> tuple[float, float]:
    """Modelled seconds of the kernels of both."""
    before, after = (priced(program, costs.target.name) for program in (before, after))
    return costs.program(before).seconds, costs.program(after).seconds


def why_not_measured(program: Program, target: Target) -> str | None:
    """Why programs are modelled only; None where they are measured."""
    if not target.runs_here:
        return f"target '{target.name}' does not run here"
    if without_weights(program):
        return "the weights file is absent"
    return None


def measure_pair(
    before: Program, after: Program, seed: int, options: CpuOptions, seconds: float
) -> Comparison:
    """Median seconds of a run of each, run in turn; at least three runs each.

    The input is measured twice: with direct kernels, and with the fastest measured kernels.
    One compilation of the result is not limited in time.

    Raises:
        TimeIsUpError: there was no time left for the runs.
    """
    from ..commands.inputs import draw_inputs
    from ..targets.cpu import compile_cpu

    check_time()
    feeds = draw_inputs(before, seed)
    with ExitStack() as closing:

        def opened(program: Program, options: CpuOptions) -> Session:
            session = Session(program, compile_cpu(program, options))
            closing.callback(session.close)
            return session

        sessions = {"before": opened(before, replace(options, effort="quick"))}
        if after is not before:
            sessions["input"] = opened(before, options)
        started = time.perf_counter()
        with paused():
            result = opened(after, options)
        compiling = time.perf_counter() - started
        sessions["input" if after is before else "after"] = result
        chosen = {name: _chosen(session) for name, session in sessions.items()}
        if not chosen["input"]:
            del sessions["input"]
        runs = {name: partial(session.run, None, feeds) for name, session in sessions.items()}
        found = _in_turn(runs, min(max(seconds, 0.5), MEASURE.program_seconds))
        kernels = {name: _kernels(session, feeds) for name, session in sessions.items()}
    direct = found["before"]
    tuned_input = found.get("input", direct)
    after_seconds = found.get("after", tuned_input)
    kept = "input" if slower(after_seconds, tuned_input, "measured") else "after"
    kept_kernels = kernels.get(kept, kernels.get("input", kernels["before"]))
    each = {"before": kernels["before"], "after": kept_kernels}
    each = each if all(each.values()) else {}
    algorithms = chosen.get(kept, chosen["input"])
    return Comparison(
        direct, after_seconds, tuned_input, "measured", "", algorithms, compiling, kernels=each
    )


def _kernels(session: Session, feeds: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Seconds of each kernel on its own; none where the runner does not tell them apart."""
    if not hasattr(session.runner, "labels"):
        return []
    return [vars(kernel) for kernel in session.profile(feeds, MEASURE.long_rounds).kernels]


def _in_turn(runs: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Median seconds of each; fewer rounds suffice for long runs.

    Raises:
        TimeIsUpError: there was no time for them.
    """
    started = time.perf_counter()
    for run in runs.values():
        check_time()
        run()
    long = time.perf_counter() - started > MEASURE.long
    least = MEASURE.long_rounds if long else MEASURE.least_rounds
    times = interleave(runs, seconds, least, MEASURE.most_rounds, warm_up=0 if long else 1)
    return {name: median(taken) for name, taken in times.items()}


def _chosen(session: Session) -> tuple[dict[str, Any], ...]:
    """The kernels of a session that are not the direct ones."""
    return tuple(note for note in session.algorithms if note["rule"] != reassociated()["rule"])


def _why_refused(
    program: Program,
    better: Program,
    comparison: Comparison,
    lowered: Chosen | None,
    request: ComparisonRequest,
) -> str:
    """Why the result is not returned; empty where it is."""
    changed = not program.module.is_structurally_equivalent(better.module)
    reason = comparison.refused if is_refused(comparison, changed) else ""
    return reason if lowered is None else lowered.settle(program, better, request, reason)


def _cost(comparison: Comparison, refused: bool) -> dict[str, Any]:
    return {
        "before": comparison.before,
        "tuned": comparison.tuned_input,
        "after": comparison.tuned_input if refused else comparison.after,
        "unit": "s",
        "kind": comparison.kind,
    }


def _message(comparison: Comparison, refused: str, changed: bool, nothing: str) -> str:
    """The message to the user beside the numbers.

    Args:
        refused: why the result is not returned.
        nothing: what is said where nothing was found.
    """
    changed = changed or bool(comparison.algorithms)
    if comparison.missed is not None:
        return f"{'rewrites not kept' if changed else 'not measured'}: {comparison.note}"
    if refused not in ("", comparison.refused):
        return f"rewrites not kept: {refused}"
    if refused:
        ratio = comparison.after / comparison.tuned_input
        kernels = ", both with the kernels chosen for them" if comparison.kind == "measured" else ""
        return f"rewrites not kept: {comparison.kind} {ratio:.3f}x as slow as the input{kernels}"
    if not changed:
        return nothing
    return f"not measured: {comparison.note}" if comparison.note else ""
