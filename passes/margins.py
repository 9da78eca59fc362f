"""The thresholds by which searches accept, measure and skip programs, each with its reason.

A number that belongs to one algorithm and is used once is defined there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Acceptance:
    """When a program counts as faster than another, or as equally fast.

    Units: ratios of seconds, new program over old. They are below 1 because measurements are noisy
    and the current program is the safer choice.

    Attributes:
        kernel: one kernel on one thread, measured in turn with the direct algorithm.
        subprogram: some scopes alone, measured; the neighbours' layouts are unknown.
        program: a whole program, measured.
        simpler_program: a whole program, measured, whose kernels are some of the other's kinds and
            fewer: it must be no slower, and two copies of one program differ by as much.
        modelled_program: a whole program, or some scopes, where only the model decides: a model has
            no noise.
        alike_programs: candidates of one search at most this much slower than the fastest count as
            equally fast; the search lists the better one first.
        alike_derivations: derived programs within this factor count as equally fast when measured:
            two copies of one program differ by as much.
        alike_models: derived programs modelled within this factor count as equally good.
        alike_mutants: mutants within this factor count as equally fast: views of neighbours may
            cancel, which saves more.
        written_file: a written ONNX file may be this much slower than its source: medians of one
            file in turn with itself differ by less.
        strong: a second program takes only ratios below this, in case the others hurt it.
        extraction: a gain of saturation's result, by its model: sums in another order differ by
            less.
    """

    kernel: float = 0.97
    subprogram: float = 0.96
    program: float = 0.97
    simpler_program: float = 0.99
    modelled_program: float = 0.999
    alike_programs: float = 1.01
    alike_derivations: float = 1.02
    alike_models: float = 1.05
    alike_mutants: float = 1.05
    written_file: float = 1.03
    strong: float = 0.8
    extraction: float = 1 - 1e-6


@dataclass(frozen=True)
class Measuring:
    """What is measured, and for how long.

    Units: seconds of wall-clock time unless said; ratios of modelled seconds; bytes.

    Attributes:
        graph_rewrite: graph rewrites are measured if their modelled time is at most this share:
            measuring compiles and runs two whole programs.
        mutant: mutants modelled to be this many times slower are neither measured nor mutated
            further: corrections may be cheaper than modelled, but not by so much.
        programs: the most that are measured for one search: each is compiled whole.
        mutants: the most that are measured for one subprogram.
        program_seconds: the most that runs of whole programs take in one comparison.
        subprogram_seconds: for runs of one subprogram and its alternatives.
        baseline_seconds: for runs of one subprogram as it stands.
        least_rounds, most_rounds: of one comparison.
        long, long_rounds: a few rounds of this length are steady enough.
        glance, hopeless: each program first runs by itself for this part of its time; one that
            then takes this many times as long as the best cannot win.
        room, more_room: a program that needs more bytes than `room`, and this many times as many
            as the given one, is not run.
        searching: part of the budget for searches; the rest is for comparing the result with the
            input.
        modelled: likewise where the model compares, which takes little.
    """

    graph_rewrite: float = 0.995
    mutant: float = 2.0
    programs: int = 4
    mutants: int = 5
    program_seconds: float = 2.0
    subprogram_seconds: float = 0.6
    baseline_seconds: float = 0.1
    least_rounds: int = 7
    most_rounds: int = 200
    long: float = 0.25
    long_rounds: int = 3
    glance: float = 0.1
    hopeless: float = 1.25
    room: int = 1 << 30
    more_room: int = 8
    searching: float = 2 / 3
    modelled: float = 0.9


@dataclass(frozen=True)
class Pruning:
    """Which subprograms a search skips, and when it stops.

    Units: shares of the whole program's modelled seconds, unless said.

    Attributes:
        share: subprograms that take less are skipped.
        saved: one that cannot save more is not searched.
        gain: the search stops if the gain so far plus all possible gains are smaller: the
            whole program would not be accepted (`Acceptance.program`).
        baselines: part of the time for measuring the subprograms as they stand.
        grouping: after this part of the time no more pairs and groups are started.
        seconds: CPU seconds for one subprogram, without its measurement.
    """

    share: float = 0.002
    saved: float = 0.005
    gain: float = 0.03
    baselines: float = 1.0
    grouping: float = 0.7
    seconds: float = 60.0


@dataclass(frozen=True)
class PaddingMargins:
    """Which sizes share a program of larger ones.

    Attributes:
        more_work: a bound is doubled while the program at it has at most this much more work.
        growth: how often more rows than a size has the program may have where kernels leave rows
            out that nobody reads. Measured on BERT: at 17 of 128 rows 0.81 to 0.91 of the speed of
            a program of 17, at 64 of them 0.94 to 0.96.
        wasted: bytes (of 10e9 a second) that padding may cost a size before it gets a program of
            its own: 4 seconds, somewhat more than its compilation takes.
    """

    more_work: float = 1.2
    growth: int = 2
    wasted: float = 4e10


ACCEPT = Acceptance()
MEASURE = Measuring()
PAD = PaddingMargins()
PRUNE = Pruning()
# Mutants take seconds of enumeration each, so small subprograms are skipped earlier, and measuring
# the baselines leaves time for it. A mutant's price does not include its savings at neighbours, so
# no gain is too small to go on.
PRUNE_MUTATION = Pruning(share=0.005, gain=0.0, baselines=0.3, grouping=1.0)
