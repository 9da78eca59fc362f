"""The numbers by which searches accept, measure and leave out programs, each with its reason.

A number that belongs to one algorithm, used once, stands where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Acceptance:
    """When a program counts as faster than what there is, or as fast as another.

    Units: ratios of seconds, of the new program over what it is compared with. Less is needed than
    1 because measurements are noisy and what there is is the safer choice.

    Attributes:
        kernel: one kernel on one thread, measured in turn with the direct way.
        subprogram: some scopes alone, measured or modelled; the neighbours' layouts are unknown.
        program: a whole program, measured.
        modelled_program: a whole program where only the model decides: a model has no noise.
        alike_programs: candidates of one search that take at most this much longer than the fastest
            are as fast; the search lists the better one first.
        alike_mutants: mutants are as fast within this: views of neighbours may cancel, which saves
            more than that.
        written_file: a written ONNX file may take this much longer than its source: medians of one
            file in turn with itself differ by less.
        strong: gains below this are kept in a second program, in case that the others hurt it.
        extraction: what saturation extracts, by its model: sums in another order differ by less.
    """

    kernel: float = 0.97
    subprogram: float = 0.96
    program: float = 0.97
    modelled_program: float = 0.999
    alike_programs: float = 1.01
    alike_mutants: float = 1.05
    written_file: float = 1.03
    strong: float = 0.8
    extraction: float = 1 - 1e-6


@dataclass(frozen=True)
class Measuring:
    """What is measured, and for how long.

    Units: seconds of wall-clock time unless said; ratios of modelled seconds; bytes.

    Attributes:
        graph_rewrite: rewrites of the graph are measured if they are modelled to take at most this
            share of the time: two whole programs are compiled and run for it.
        mutant: mutants modelled to take this many times as long are neither measured nor mutated
            further: corrections may be cheaper than modelled, but not by so much.
        programs: of one search, at most: each is compiled whole.
        mutants: of one subprogram, at most.
        program_seconds: of runs of whole programs, for one comparison, at most.
        subprogram_seconds: of runs for one subprogram and its alternatives.
        baseline_seconds: of runs of one subprogram as it stands.
        least_rounds, most_rounds: of one comparison.
        long, long_rounds: rounds of so many seconds are steadier, and few of them are enough.
        glance, hopeless: each program first runs for this part of its time alone; what then takes
            so many times as long as the best will not win.
        room, more_room: a program that needs more bytes than `room`, and so many times as many as
            the given one, is not run.
        searching: part of the budget for searches; the rest is for comparing the result with the
            input.
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


@dataclass(frozen=True)
class Pruning:
    """Which subprograms of a program a search leaves out, and where it stops.

    Units: shares of the whole program's modelled seconds, unless said.

    Attributes:
        share: subprograms that take less are left as they are.
        saved: one that could save less is not searched, whatever becomes of it.
        gain: the search stops where what was gained and all that is left to gain are less: the
            whole program would not be accepted (`Acceptance.program`).
        baselines: part of the time that measuring the subprograms as they stand may take.
        grouping: part of the time after which pairs and groups are not begun any more.
        seconds: CPU seconds that one subprogram may take, its measurement left out.
    """

    share: float = 0.002
    saved: float = 0.005
    gain: float = 0.03
    baselines: float = 1.0
    grouping: float = 0.7
    seconds: float = 60.0


ACCEPT = Acceptance()
MEASURE = Measuring()
PRUNE = Pruning()
# Mutants take seconds of enumeration each: what takes little of the program is left out earlier,
# and measuring what there is leaves time for it. What a mutant saves at the places beside it is not
# in its own price, so that no gain is too small to go on.
PRUNE_MUTATION = Pruning(share=0.005, gain=0.0, baselines=0.3, grouping=1.0)
