"""The Python API: load, optimise, compile, run. `import isoform` offers these names.

Example:
    program = load("model.onnx")
    better = optimize(program, target="cpu", budget=60)
    session = compile(better)
    outputs = session(x=array)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..dialects.errors import UserError
from ..dialects.floats import Allowed
from ..dialects.program import Program
from ..dialects.shape_guards import symbols_of
from ..dialects.types import Array
from ..passes.rules.rule_set import verified_rules
from .frontends.models import load
from .frontends.program_file import check_weights, parse, save_mlir
from .search.optimizer import Optimized
from .search.optimizer import improve as _improve
from .search.optimizer import optimize as _optimize
from .search.precision import ERROR, Precision
from .targets.cpu_options import CpuOptions
from .targets.session import ReferenceRunner, Runner, Session, usable_cores

__all__ = [
    "Optimized",
    "Program",
    "Session",
    "compile",
    "from_torch",
    "improve",
    "load",
    "open",
    "optimize",
    "parse",
    "save",
]


def save(program: Program, path: str | Path) -> None:
    """Write a program whole: IR text with its weights beside it (`.mlir`), or `.onnx`.

    Only weights that the module uses are written. `-` is standard output, for IR text alone.

    Raises:
        UserError: the file cannot be written, or is an `.onnx` of a program below graph level.
    """
    path = Path(path)
    match "stdout" if str(path) == "-" else path.suffix.lower():
        case ".mlir" | "stdout":
            save_mlir(program, path)
        case ".onnx":
            from ..lowering.graph_to_onnx.exporter import export_onnx

            export_onnx(program, path)
        case _:
            raise UserError("an output is FILE.mlir or FILE.onnx", where=str(path))


def _require_program(given: Any) -> None:
    """Raise UserError for a path or another object."""
    if not isinstance(given, Program):
        hint = "isoform.load reads a file"
        raise UserError("a program is needed here", found=type(given).__name__, hint=hint)


def improve(program: Program, *, strict_nan: bool = False) -> Program:
    """Apply the rewrites that never hurt to a copy, without measuring.

    A program below the graph level is returned unchanged; a `DynamicProgram` applies them to each
    program that it makes.

    Args:
        strict_nan: leave out those that change infinities or NaN.
    """
    return program.then(lambda bound: _improve(bound, strict_nan=strict_nan))


def optimize(
    program: Program,
    target: str = "cpu",
    strategy: str = "optimize",
    budget: float = 60.0,
    seed: int = 0,
    cost_file: str | Path | None = None,
    threads: int = 1,
    effort: str = "default",
    tolerance: float = 1e-5,
    level: str = "kernel",
    fast_math: bool = False,
    strict_nan: bool = False,
    rules: str | Path | None = None,
    allow_unproved: bool = False,
    pipeline: str = "",
    precision: str | None = None,
    precision_error: float = ERROR,
    precision_inputs: Mapping[str, Array] | None = None,
    sizes: Sequence[Mapping[str, int]] = (),
) -> Optimized:
    """Return a faster program that computes the same, or the input program and the reason.

    Args:
        target: a name of `lowering.targets`. It decides the costs, and whether they are measured.
        strategy: which searches run, with commas between them; `optimize` stands for those that run
            by default, in turn.
        budget: seconds for searching and measuring together.
        seed: of the inputs drawn for measuring.
        cost_file: measured costs (docs/costs.md).
        threads: used for measuring.
        effort, tolerance: as in `compile`; the result is measured as it will run.
        level: the lowest level of the result: "graph" skips searches that go below it.
        fast_math, strict_nan: as in `compile`.
        rules: a file of rewrite rules (docs/laws.md) that searches take beside those that ship.
        allow_unproved: take those of them that are checked exactly and that no prover proves, and
            what `pipeline` makes where the comparison with the input decides nothing.
        pipeline: passes that run before the searches. Their result is compared with the input.
        precision: compute products in "bf16", "f16" or as bytes ("int8-dynamic"). The result is
            another program then, and report and certificate say so (docs/precision.md).
        precision_error: the most that outputs may be off, relative to their greatest value.
        precision_inputs: arrays that this is measured on; None draws some from the seed.
        sizes: of a program with symbolic dims, each a size of every dim: the result keeps the
            symbols and is faster at these sizes; the report says whether it is proved equal at
            every size. Searches of the graph level take part (docs/dynamic-shapes.md).

    Returns:
        A program with `.report` (docs/commands.md lists its fields).

    Raises:
        UserError: unknown target or strategy, broken cost file, a rule that does not hold, passes
            that change what the program computes.
    """
    _require_program(program)
    hint = "--allow-unproved takes what the exact check passes"
    added = () if rules is None else verified_rules(rules, allow_unproved, hint)
    more = (threads, effort, tolerance, level, Allowed(fast_math, strict_nan), added)
    lower = None
    if precision is not None:
        if pipeline:
            hint = "optimize with --pipeline first, and its result with --precision"
            raise UserError("--pipeline and --precision exclude each other", hint=hint)
        lower = Precision(precision, precision_error, precision_inputs)
    own = (pipeline, allow_unproved, lower)
    if sizes:
        if rules is not None or pipeline or precision is not None:
            hint = "bind the dims (--shape) to use them"
            raise UserError("rules, passes and precision are for fixed shapes", hint=hint)
        options = CpuOptions(threads, effort, tolerance, floats=Allowed(fast_math, strict_nan))
        return _at_sizes(program, sizes, target, strategy, budget, seed, options, cost_file)
    return _optimize(program, target, strategy, budget, seed, cost_file, *more, *own)


def _at_sizes(program: Program, sizes: Sequence[Mapping[str, int]], *asked: Any) -> Optimized:
    """As `optimize_at_sizes`, of a program of any kind that has symbolic dims."""
    from .frontends.program_family import symbolic_at
    from .search.at_sizes import optimize_at_sizes

    return optimize_at_sizes(symbolic_at(program, sizes), tuple(sizes), *asked)


def compile(
    program: Program,
    target: str = "cpu",
    threads: int | None = None,
    effort: str = "default",
    tolerance: float = 1e-5,
    cost_file: str | Path | None = None,
    fast_math: bool = False,
    strict_nan: bool = False,
    exact_sizes: bool = False,
    caches_in_place: bool = False,
    up_to: Mapping[str, int] | None = None,
) -> Session:
    """Make a program ready to run. Code compiled before comes from the cache folder.

    Args:
        target: `cpu`, `cuda` for the GPU present, or `reference` for the float64 meaning (slow,
            for checks).
        threads: threads of the cpu target; None uses all cores that the process may use.
        effort: what is measured to choose kernels: `quick` nothing, `default` algorithms
            (direct convolution or Winograd), `max` also register blocks.
        tolerance: relative error that an inexact algorithm (Winograd) may add; 0 admits none.
        cost_file: measured choices to use and extend, instead of those in the cache folder.
        fast_math: allow elementwise arithmetic to be reassociated and cancelled; the default
            computes it as written (docs/trust.md). For the cpu target.
        strict_nan: use no algorithm that changes infinities or NaN.
        exact_sizes: of a program with symbolic dims, compile each new size by itself; else one
            program serves many sizes, on padded arrays (docs/dynamic-shapes.md).
        caches_in_place: an output that is an input with more rows behind it, as a decoder's cache,
            is a read-only part of a larger array. Given to a later call, it is not copied: new rows
            are put behind it in the same memory. For the cpu target.
        up_to: the largest size of each symbolic dim. What serves all sizes up to these is compiled
            now: one program, and one more where a node broadcasts a dim of size 1.

    Returns:
        A session. Of a program with symbolic dims it compiles when it meets new sizes, and keeps
        the last programs (`compiler.targets.dynamic_session`).

    Raises:
        UserError: the target cannot run here, weights are missing, an option is wrong; no one
            program serves all sizes up to `up_to`.
    """
    _require_program(program)
    if not program.is_dynamic and symbols_of(program.main):
        from .frontends.symbolic_program import SymbolicProgram

        program = SymbolicProgram(program)
    if program.is_dynamic:
        from .targets.dynamic_session import DynamicSession

        more = (threads, effort, tolerance, cost_file, fast_math, strict_nan)
        if caches_in_place and target != "cpu":
            raise UserError("caches are held in place on the cpu alone", where=f"target '{target}'")
        if exact_sizes and up_to is not None:
            raise UserError("up_to asks for one program, exact_sizes for one of each size")
        sizes = exact_sizes, caches_in_place, up_to
        return DynamicSession(program, lambda one: compile(one, target, *more), *sizes)
    if up_to:
        from ..dialects.specialize import check_names

        check_names([], up_to)
    if target != "cpu":
        return Session(program, _other_runner(program, target))
    from .targets.cpu import compile_cpu

    threads = usable_cores() if threads is None else threads
    chosen = None if cost_file is None else str(cost_file)
    floats = Allowed(fast_math, strict_nan)
    options = CpuOptions(threads, effort, tolerance, chosen, floats)
    return Session(program, compile_cpu(program, options))


def _other_runner(program: Program, target: str) -> Runner:
    if target == "reference":
        check_weights(program)
        return ReferenceRunner(program)
    if target == "cuda":
        from .targets.cuda_device import compile_cuda

        return compile_cuda(program)
    from ..lowering.targets import target_named

    found = target_named(target)
    hint = "cpu runs everywhere, cuda on the GPU present"
    raise UserError(f"programs cannot run on '{found.name}' here", where="--target", hint=hint)


def open(folder: str | Path, threads: int | None = None, sha256: str | None = None) -> Session:
    """Open a session that `session.save(folder)` wrote, without compiling.

    Args:
        threads: as in `compile`.
        sha256: the hash that `save` returned; needed for what another user or machine saved, since
            native code is run.

    Raises:
        UserError: a file is missing, was changed or may be changed by others; nobody vouches for
            it; it is for another processor or made by another isoform.
    """
    from .targets.saved_session import open_session

    return open_session(folder, threads, sha256)


def from_torch(module: Any, args: Any, dynamic_shapes: Any = None) -> Program:
    """Import a torch module through torch.export.

    Args:
        module: a `torch.nn.Module`; exported in evaluation mode.
        args: example inputs, a tensor or a tuple; their shapes are the program's.
        dynamic_shapes: which dims are free, as `torch.export.export` takes it. The program is then
            converted for the shapes that come (`compile` gives a `DynamicSession`).

    Raises:
        UserError: torch is not installed or cannot export the module; the module's Python depends
            on a tensor's value, changes its inputs, is random or keeps state.
    """
    from .frontends.torch_export import import_module

    return import_module(module, args, dynamic_shapes)
