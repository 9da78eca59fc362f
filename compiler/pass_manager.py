"""Parse pipelines of passes and run them, verified between passes and bounded in rewrites.

run_pipeline(module, "canonicalize,cse", make_context())
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.hints import isa, type_repr

from ..dialects.control import as_program, control_ops
from ..dialects.deadline import check_time
from ..dialects.errors import UserError, did_you_mean, one_line
from ..dialects.functions import alone, functions_of, is_one_program
from ..dialects.shape_guards import assume_guards
from .checks.rewrite_limit import Observer, rewrite_limit
from .checks.verify_module import LocationOf, VerifiedOps, no_location, verify_module
from .garbage import rare_collections
from .pipeline_text import FUNCTION, parse_specs
from .registry import OWN_PASSES, PassFactory, multiverse

Passes = Mapping[str, PassFactory]


@dataclass(frozen=True)
class PassRun:
    """A pass that ran, with its wall-clock seconds and number of pattern rewrites."""

    pass_: ModulePass
    seconds: float
    rewrites: int

    @property
    def name(self) -> str:
        """Return the pass's name."""
        return self.pass_.name


AfterPass = Callable[[PassRun, ModuleOp], None]
# Called before each pass, or where one has failed.
AtPass = Callable[[ModulePass, ModuleOp], None]


def run_pipeline(
    module: ModuleOp,
    pipeline: str | Sequence[ModulePass],
    context: Context,
    *,
    passes: Passes | None = None,
    verify: bool = True,
    verify_each: bool = True,
    verify_input: bool = True,
    verify_result: bool = True,
    before_pass: AtPass | None = None,
    after_pass: AfterPass | None = None,
    after_failure: AtPass | None = None,
    max_rewrites: int | None = None,
    place_of: LocationOf = no_location,
    observer: Observer | None = None,
) -> tuple[PassRun, ...]:
    """Apply a pipeline in place, verifying the module before it and after each pass.

    Without `verify_each` it is verified only before and after the whole pipeline: verifying between
    passes took a third of a compilation. Without `verify_input` it is not verified before, without
    `verify_result` not after the last, and without `verify` not at all.

    `after_pass` is called with each run (`.name`, `.pass_`) and the module it left, verified if
    each is; `before_pass` with each pass and the module it is given; `after_failure` where a pass
    raised or left a module that does not verify.

    `max_rewrites` bounds the pattern rewrites of each pass (default: 100 for each operation before
    the first, at least 100,000). `observer` is called as each of them begins.

    Raises: UserError for a malformed pipeline, a pass that fails, a module that does not verify.
    """
    if isinstance(pipeline, str):
        pipeline = make_passes(pipeline, passes)
    verified = VerifiedOps()
    runs: list[PassRun] = []
    limit = default_limit(module) if max_rewrites is None else max_rewrites
    with rare_collections():
        if verify and verify_input:
            verify_module(module, place_of, verified)
        for number, pass_ in enumerate(pipeline, 1):
            check_time()
            if before_pass is not None:
                before_pass(pass_, module)
            try:
                run = apply_pass(module, pass_, context, max_rewrites=limit, observer=observer)
                if verify and (verify_result if number == len(pipeline) else verify_each):
                    _verify_after(module, pass_, place_of, verified)
            except Exception:
                if after_failure is not None:
                    after_failure(pass_, module)
                raise
            runs.append(run)
            if after_pass is not None:
                after_pass(runs[-1], module)
    return tuple(runs)


def apply_pass(
    module: ModuleOp,
    pass_: ModulePass,
    context: Context,
    *,
    max_rewrites: int | None = None,
    observer: Observer | None = None,
) -> PassRun:
    """Apply one pass in place, without verifying.

    Raises: UserError where the pass refuses the module; any other exception is a bug and gets a
    note.
    """
    limit = max_rewrites if max_rewrites is not None else default_limit(module)
    started = time.perf_counter()
    try:
        with rewrite_limit(limit, observer) as budget:
            for part in _parts(module, pass_):
                with assume_guards(part):
                    pass_.apply(context, part)
    except UserError as error:
        error.where = error.where or f"pass '{pass_.name}'"
        raise
    except (DiagnosticException, NotImplementedError) as error:
        raise UserError(one_line(str(error)), where=f"pass '{pass_.name}'") from error
    except Exception as error:
        error.add_note(f"while pass '{pass_.name}' ran")
        raise
    return PassRun(pass_, time.perf_counter() - started, budget.used)


def anchor_of(pass_: ModulePass) -> str:
    """The op that a pass runs on: what the pipeline or its class says.

    Otherwise `func.func` for a pass of our own, which works on one program, and `builtin.module`.
    """
    own = FUNCTION if pass_.name in OWN_PASSES else "builtin.module"
    return getattr(pass_, "anchor", own)


def _parts(module: ModuleOp, pass_: ModulePass) -> Iterator[ModuleOp]:
    """What a pass is applied to: the module, or each of its functions as a module of its own."""
    if anchor_of(pass_) != FUNCTION:
        yield module
    elif is_one_program(module):
        yield from _nested(module)
    else:
        for function in functions_of(module):
            with alone(function) as part:
                yield from _nested(part)


def _nested(module: ModuleOp) -> Iterator[ModuleOp]:
    """The bodies of a program's loops and branches, innermost first, and then the program."""
    for function in functions_of(module):
        for op in control_ops(function.body.blocks[0]):
            for number in range(len(op.bodies)):
                with as_program(op, number) as body:
                    yield from _nested(body)
    yield module


def default_limit(module: ModuleOp) -> int:
    """The default limit of rewrites of one pass for a module of this size."""
    return max(100_000, 100 * sum(1 for _ in module.walk()))


def _verify_after(
    module: ModuleOp, pass_: ModulePass, place_of: LocationOf, verified: VerifiedOps
) -> None:
    try:
        verify_module(module, place_of, verified)
    except UserError as error:
        error.message += f" [after pass '{pass_.name}']"
        raise


def make_passes(pipeline: str, passes: Passes | None = None) -> tuple[ModulePass, ...]:
    """Parse `a,b{option=1 names="x","y" flag=true},func.func(c)` into passes; spaces and newlines
    at commas are allowed.

    Raises: UserError for unknown passes and options, values of a wrong type, malformed text.
    """
    if passes is None:
        passes = multiverse().all_passes
    return tuple(make_pass(spec, passes, anchor) for anchor, spec in parse_specs(pipeline))


def make_pass(spec: ArgSpec, passes: Passes, anchor: str | None = None) -> ModulePass:
    """Build one pass from its name and options.

    Args:
        anchor: the op that the pass runs on, where the pipeline says it.

    Raises: UserError for an unknown pass or option, a missing option, a value of a wrong type.
    """
    cls = load_pass(spec.name, passes)
    if anchor is not None:
        cls = type(cls.__name__, (cls,), {"anchor": anchor, "__doc__": cls.__doc__})
    hints = get_type_hints(cls)
    options = {f.name: f for f in fields(cls) if f.name != "name" and f.init}
    given = spec.normalize_parameter_names().parameters
    where = f"pass '{spec.name}'"
    for name in given:
        if name not in options:
            known = [option.replace("_", "-") for option in options]
            hint = did_you_mean(name.replace("_", "-"), known) or _known(known)
            raise UserError(f"unknown option '{name.replace('_', '-')}'", where=where, hint=hint)
    values = {name: _coerce(name, v, hints[name], where) for name, v in given.items()}
    for name, option in options.items():
        optional = type(None) in get_args(hints[name])
        no_default = option.default is MISSING and option.default_factory is MISSING
        if name not in values and no_default and not optional:
            shown = f"{name.replace('_', '-')}={type_repr(hints[name])}"
            raise UserError(f"needs the option {shown}", where=where)
    try:
        return cls.from_pass_spec(ArgSpec(spec.name, values))
    except (ValueError, TypeError) as error:
        raise UserError(one_line(str(error)), where=where) from error


def load_pass(name: str, passes: Passes) -> type[ModulePass]:
    """Import the pass called `name`.

    Raises: UserError where there is none, or it needs something that is not installed.
    """
    if name not in passes:
        hint = did_you_mean(name, passes) or "isoform-opt --list-passes lists them"
        raise UserError(f"unknown pass '{name}'", hint=hint)
    try:
        return passes[name]()
    except ImportError as error:
        raise UserError(f"cannot be loaded: {error}", where=f"pass '{name}'") from error


def _known(options: Sequence[str]) -> str:
    return f"its options are {', '.join(options)}" if options else "it has no options"


def _coerce(name: str, value: ParameterListType, hint: Any, where: str) -> ParameterListType:
    """Check a value against the type of its option; whole numbers and `1e-3` serve as floats."""
    shown = name.replace("_", "-")
    optional = type(None) in get_args(hint)
    if not value:
        if optional and hint != bool | None:
            return value
        example = f"{shown}=true" if hint in (bool, bool | None) else f"{shown}=..."
        raise UserError(f"option '{shown}' needs a value", where=where, hint=f"write {example}")
    for candidate in (value, tuple(_as_float(v) for v in value)):
        if (len(candidate) == 1 and isa(candidate[0], hint)) or isa(candidate, hint):
            return candidate
    found = ",".join(str(v).lower() if isinstance(v, bool) else repr(v) for v in value)
    quote = f'write {shown}="{found}"' if hint in (str, str | None) else None
    raise UserError(
        f"option '{shown}'", where=where, expected=type_repr(hint), found=found, hint=quote
    )


def _as_float(value: ParameterType) -> ParameterType:
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except ValueError:
        return value
