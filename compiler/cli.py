"""`isoform`: check, import, optimise, run and measure models from the command line.

Results go to stdout, everything else to stderr. A user's mistake is one line on stderr and exit 1
(2 for the command line itself); Ctrl-C exits 130. Heavy imports happen inside the commands.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..dialects.errors import UsageError, UserError, did_you_mean, loudness
from .commands.cli_help import completion, examples, overview
from .commands.diagnostics import show_errors
from .commands.opt_arguments import ArgumentParser
from .commands.process_errors import OURS_NOT, check_streams, crash, drop_output, not_ours
from .garbage import rare_collections

Arguments = argparse.Namespace
Command = Callable[[Arguments], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `isoform` and return its exit status: 0, 1 for a user's error, 2 for wrong usage."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _give_blas_one_thread()
    try:
        check_streams()
        parsed = parse_arguments(arguments)
        status = _run(parsed)
        sys.stdout.flush()
        return status
    except UserError as error:
        if "--traceback" in arguments:
            traceback.print_exc()
        show_errors(error, "isoform: error: ", {}, sys.stderr.isatty())
        return 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        drop_output()
        return 1
    except KeyboardInterrupt:
        print("isoform: interrupted", file=sys.stderr)
        return 130
    except OURS_NOT as error:
        return _fail(not_ours(error), arguments, 1)
    except Exception as error:  # noqa: BLE001 - the last stop: a bug of ours is still one line
        return _fail(crash(error), arguments, 1)


def _give_blas_one_thread() -> None:
    """Give numpy's BLAS one thread, unless the user sets a number.

    Its products are many and small. Threads that waited for each other took `verify` of two
    BERT-base files 90 s of processor time instead of 17. numpy is not imported yet. Our kernels
    and other runtimes use their own threads.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _run(parsed: Arguments) -> int:
    with loudness(parsed.verbose - parsed.quiet), rare_collections():
        return _run_with_plugins(parsed)


def _run_with_plugins(parsed: Arguments) -> int:
    plugins: list[str] = getattr(parsed, "plugin", [])
    if not plugins:
        return _command(parsed.command)(parsed)
    from .plugin import using

    with using(plugins):
        return _command(parsed.command)(parsed)


def _fail(text: str, arguments: Sequence[str], status: int) -> int:
    if "--traceback" in arguments:
        traceback.print_exc()
    print(f"isoform: error: {text}", file=sys.stderr)
    return status


def _command(name: str) -> Command:
    """Import the function of a subcommand."""
    if name == "completion":
        return _completion_command
    if name == "bench":
        from .commands.bench import bench_command

        return bench_command
    if name == "explain":
        from .commands.explain import explain_command

        return explain_command
    if name == "optimize":
        from .commands.optimize import optimize_command

        return optimize_command
    if name == "view":
        from .commands.view import view_command

        return view_command
    if name == "verify":
        from .commands.verify import verify_command

        return verify_command
    if name == "bisect":
        from .commands.bisect import bisect_command

        return bisect_command
    if name == "rules":
        from .commands.rules import rules_command

        return rules_command
    if name == "tune":
        from .commands.tune import tune_command

        return tune_command
    from .commands import subcommands as commands

    return cast(Command, getattr(commands, f"{name}_command"))


def _completion_command(arguments: Arguments) -> int:
    """`isoform completion SHELL`: print the script."""
    if arguments.of == "isoform":
        parser = parsers()[0]
    else:
        from .opt import argument_parser

        parser = argument_parser()
    print(completion(parser, arguments.shell), end="")
    return 0


def parsers() -> tuple[ArgumentParser, dict[str, ArgumentParser]]:
    """The parser of the whole command line, and those of the commands."""
    parser = _Overview("isoform", allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=ArgumentParser
    )
    known = {name: add(subparsers, name) for name, add in COMMANDS.items()}
    parser.summaries = {name: str(found.description) for name, found in known.items()}
    return parser, known


class _Overview(ArgumentParser):
    """The parser of the whole command line: its help shows commands in groups."""

    summaries: dict[str, str]

    def format_help(self) -> str:
        return overview(self.summaries)


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        UsageError: it is malformed.
    """
    parser, known = parsers()
    chosen = next((a for a in arguments if not a.startswith("-")), None)
    if chosen is not None and chosen not in known:
        hint = did_you_mean(chosen, known) or f"commands are {', '.join(known)}"
        later = next((a for a in arguments if a in known), None)
        if later is not None and arguments[0].startswith("-"):
            raise UsageError("a command is first", hint=f"isoform {later} {arguments[0]} ...")
        raise UsageError(f"unknown command '{chosen}'", hint=hint)
    parsed, rest = parser.parse_known_args(arguments)
    if parsed.command is None:
        raise UsageError("a command is missing", hint=f"commands are {', '.join(known)}")
    if rest:
        flags: dict[str, Any] = known[parsed.command]._option_string_actions  # pyright: ignore[reportPrivateUsage]
        flag = rest[0].partition("=")[0]
        hint = did_you_mean(flag, flags) or f"isoform {parsed.command} --help lists the flags"
        if flag in flags:
            raise UsageError("a command is first", hint=f"isoform {parsed.command} {flag} ...")
        raise UsageError(f"unrecognized argument '{rest[0]}'", hint=hint)
    return parsed


class _Version(argparse.Action):
    """Print the version, which is read only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .. import __version__

        print(f"isoform {__version__}")
        parser.exit()


FAST_MATH_HELP = "allow rewrites that may change values: terms combined and cancelled"
STRICT_NAN_HELP = "leave out rewrites that change infinities or NaN"

# --- flags --------------------------------------------------------------------------------------


def _parser(subparsers: Any, name: str, help_: str) -> ArgumentParser:
    parser: ArgumentParser = subparsers.add_parser(
        name, help=help_, description=help_, allow_abbrev=False, epilog=examples(name)
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument_group("what is told").add_argument
    add("-q", "--quiet", action="store_true", help="only errors; the exit status says the rest")
    add("-v", "--verbose", action="store_true", help="tell on stderr what is being done")
    add("--traceback", action="store_true", help="show Python's traceback of errors")
    return parser


def _model(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="FILE.onnx, FILE.mlir, FILE.pt2, zoo:NAME, or - (stdin)"
    )
    _binding(parser)


def _binding(parser: ArgumentParser, seed: bool = True) -> None:
    """Add the flags that decide the program; without `seed` that flag is for other draws."""
    add = parser.add_argument_group("which program").add_argument
    add(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,224,224",
        help="bind the dynamic dims of an input (repeatable)",
    )
    add("--batch", type=_positive, default=1, help="batch size of a zoo model")
    name = "--seed" if seed else "--zoo-seed"
    text = "of drawn weights and inputs (0)" if seed else "of a zoo model's weights (0)"
    add(name, type=_whole, default=0, metavar="N", help=text)
    text = "a file that adds dialects and passes (repeatable)"
    add("--plugin", action="append", default=[], metavar="FILE.py", help=text)


def _json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def _threads(parser: ArgumentParser, default: int | None, text: str) -> None:
    parser.add_argument("--threads", type=_positive, default=default, metavar="N", help=text)


def _measuring(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("kernels and floats").add_argument
    add(
        "--effort",
        choices=("quick", "default", "max"),
        default="default",
        help="how much is measured: nothing, algorithms, or register blocks too (default)",
    )
    add(
        "--tolerance",
        type=_tolerance,
        default=1e-5,
        metavar="E",
        help="relative error that an inexact algorithm may add (1e-5); 0 admits none",
    )
    add("--fast-math", action="store_true", help=FAST_MATH_HELP)
    add("--strict-nan", action="store_true", help=STRICT_NAN_HELP)


def _target(parser: ArgumentParser) -> None:
    parser.add_argument("--target", default="cpu", help="what the program is for (cpu)")


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, found '{text}'")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, found '{text}'")
    return int(text)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a relative error, found '{text}'")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, found '{text}'")
    return value


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, dims = text.rpartition("=")
    parts = [part.strip() for part in dims.split(",")] if dims else []
    if not equals or not name or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=1,3,224,224, found '{text}'")
    return name, tuple(int(part) for part in parts)


# --- commands -----------------------------------------------------------------------------------


def _add_check(subparsers: Any, name: str) -> ArgumentParser:
    text = "say for every op whether it is native, composed or opaque, and what blocks optimisation"
    parser = _parser(subparsers, name, text)
    _model(parser)
    _json(parser)
    return parser


def _add_import(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "turn a model into IR text, its weights beside it")
    _model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.mlir")
    return parser


def _add_optimize(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "find a faster program that computes the same")
    _model(parser)
    _json(parser)
    _target(parser)
    _threads(parser, 1, "threads of the measurement (1)")
    _measuring(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="OUT.{mlir,onnx}", help="where the program is written")
    systems = "which systems search, with commas between them (optimize: those by default)"
    add("--strategy", default="optimize", metavar="NAMES", help=systems)
    add("--budget", type=_seconds, default=60.0, metavar="S", help="seconds in all (60)")
    add("--cost-file", metavar="F.json", help="measured costs (docs/costs.md)")
    add(
        "--sizes",
        action="append",
        default=[],
        type=_shape,
        metavar="DIM=16,128",
        help="keep the symbolic dims, and compare at these sizes (repeatable)",
    )
    add("--rules", metavar="FILE.rules", help="your rewrite rules, verified first (docs/laws.md)")
    own = (
        "your passes, before the searches; the result is compared with MODEL (as isoform-opt's -p)"
    )
    add("--pipeline", default="", metavar="PASSES", help=own)
    text = "take what --rules and --pipeline make where it is not refuted, but not proved either"
    add("--allow-unproved", action="store_true", help=text)
    text = "compute products in fewer bits: another program (docs/precision.md); off by default"
    add("--precision", choices=("bf16", "f16", "int8-dynamic"), help=text)
    text = "the most that an output may be off, relative to its greatest value (0.01)"
    add("--precision-error", type=_tolerance, default=0.01, metavar="E", help=text)
    text = "arrays under the inputs' names that it is measured on (drawn from the seed)"
    add("--precision-inputs", metavar="I.npz", help=text)
    add("--report", metavar="R.json", help="write what was done and why")
    add("--certificate", metavar="C.json", help="compare OUT with MODEL and write what that proved")
    add(
        "--emit",
        choices=("graph", "algebra", "kernel"),
        help="level of OUT.mlir (kernel)",
    )
    return parser


def _add_run(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "run a model; inputs not given are drawn from the seed")
    _model(parser)
    _json(parser)
    _target(parser)
    _threads(parser, None, "threads (all cores)")
    _measuring(parser)
    add = parser.add_argument
    add("--inputs", metavar="I.npz", help="arrays under the inputs' names")
    add("--output", metavar="O.npz", help="write the outputs under their names")
    add("--no-optimize", action="store_true", help="run the program as it is")
    text = "measure each kernel: a table on stderr, and a trace for Chrome or Perfetto"
    add("--profile", metavar="TRACE.json", help=text)
    add("--reference", action="store_true", help="evaluate the float64 meaning instead (slow)")
    return parser


def _add_bench(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "measure a model, interleaved with other runtimes")
    _model(parser)
    _json(parser)
    _threads(parser, 1, "threads of every runtime (1)")
    _measuring(parser)
    add = parser.add_argument
    add(
        "--against",
        default="",
        metavar="RUNTIME[:FILE.onnx],...",
        help="of onnxruntime, openvino, torch, torch-compile, ncnn, on MODEL's own file or "
        "another; a missing one is left out",
    )
    add("--no-optimize", action="store_true", help="measure the program as it is")
    add("--seconds", type=_seconds, default=10.0, metavar="S", help="time for the runs (10)")
    return parser


def _add_zoo(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "list the built-in models, or write one")
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME")
    add("-o", "--output", metavar="OUT.{mlir,onnx}")
    add("--batch", type=_positive, default=1, help="batch size (1)")
    add("--seed", type=_whole, default=0, help="of the weights (0)")
    _json(parser)
    return parser


def _add_explain(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "tell in words what a report of `optimize` says")
    parser.add_argument("report", metavar="REPORT.json")
    text = "only rewrites with TEXT in rule or place, whole: IR, steps, equal forms of the e-graph"
    parser.add_argument("--rewrites", metavar="TEXT", help=text)
    return parser


def _add_view(subparsers: Any, name: str) -> ArgumentParser:
    text = "write a report of `optimize`, or a model, as one page to look at in a browser"
    parser = _parser(subparsers, name, text)
    source = "REPORT.json of `optimize`; or FILE.onnx, FILE.mlir, FILE.pt2, zoo:NAME"
    parser.add_argument("model", metavar="REPORT.json|MODEL", help=source)
    _binding(parser)
    _target(parser)
    parser.add_argument("-o", "--output", required=True, metavar="PAGE.html")
    return parser


def _add_verify(subparsers: Any, name: str) -> ArgumentParser:
    text = "say whether two programs compute the same, or check a certificate again"
    parser = _parser(subparsers, name, text)
    parser.usage = "isoform verify [flags] A B | isoform verify [flags] CERTIFICATE.json"
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help="two of FILE.onnx, FILE.mlir, zoo:NAME; or one C.json",
    )
    text = "seconds for the comparison (60, of a certificate 600)"
    add("--budget", type=_seconds, metavar="S", help=text)
    text = "repeat the draws of a verdict that printed this seed (fresh ones each time)"
    add("--seed", type=_whole, metavar="N", help=text)
    _binding(parser, seed=False)
    _json(parser)
    return parser


def _add_bisect(subparsers: Any, name: str) -> ArgumentParser:
    text = "find the first pass, and in it the first rewrite, after which a program differs"
    parser = _parser(subparsers, name, text)
    _model(parser)
    _json(parser)
    add = parser.add_argument
    add(
        "result",
        nargs="?",
        metavar="B",
        help="what optimize made of MODEL (or its report or certificate): its passes are run again",
    )
    add("-p", "--passes", metavar="PIPELINE", help="the passes to run")
    add(
        "--budget", type=_seconds, default=20.0, metavar="S", help="seconds for one comparison (20)"
    )
    return parser


# As in passes/rules/rule.py, which is not imported here so that the command line starts fast.
_PROOFS = ("proved-by-z3", "proved-by-e-graph", "checked-only", "refuted")


def _add_rules(subparsers: Any, name: str) -> ArgumentParser:
    text = "generate, verify or list the graph level's substitution rules"
    parser = _parser(subparsers, name, text)
    add = parser.add_argument
    add("action", choices=("generate", "verify", "list"), help="what to do")
    add("rules", nargs="?", default="default", metavar="RULES", help="set or FILE.rules (default)")
    add("--size", type=_positive, default=3, metavar="N", help="generate: most operators (3)")
    add("--jobs", type=_positive, default=1, metavar="J", help="processes (1)")
    add("--checkpoint", metavar="FOLDER", help="generate: keep finished parts, go on from them")
    add("--count", type=_positive, default=20, metavar="C", help="verify: instances a rule (20)")
    add("--seed", type=_whole, default=0, help="verify: of the instances (0)")
    add("--proof", choices=_PROOFS, help="list: only these")
    add("--long", action="store_true", help="list: whole rules, as a file has them")
    add("-o", "--output", metavar="OUT.rules", help="generate: where the rules are written")
    _json(parser)
    return parser


def _add_tune(subparsers: Any, name: str) -> ArgumentParser:
    text = "measure schedules of a model's kernels; compile and optimize use the best ones"
    parser = _parser(subparsers, name, text)
    parser.usage = "isoform tune [flags] MODEL | isoform tune [flags] --ops FILE"
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="FILE.onnx, FILE.mlir or zoo:NAME")
    add("--ops", metavar="FILE", help="operators, one a line (docs/tuning.md), instead of MODEL")
    add("--trials", type=_positive, default=64, metavar="N", help="schedules of each kernel (64)")
    text = "start kernels from those that differ in sizes (docs/schedule-reuse.md); none by default"
    add("--reuse", choices=("none", "direct", "bridges"), default="none", help=text)
    text = "the database (tuned.json in the cache folder, which compile and optimize read)"
    add("--db", metavar="PATH", help=text)
    add("--list", action="store_true", help="print what the database knows")
    add("--merge", metavar="OTHER", help="add the kernels and trials of another database")
    text = "measure on the workers of a Dask cluster (docs/cluster.md)"
    add("--cluster", metavar="ADDRESS", help=text)
    _binding(parser)
    _json(parser)
    return parser


def _add_completion(subparsers: Any, name: str) -> ArgumentParser:
    parser = _parser(subparsers, name, "print a script that completes commands and flags")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="for which shell")
    drivers = ("isoform", "isoform-opt")
    parser.add_argument("--of", choices=drivers, default="isoform", help="of which command")
    return parser


COMMANDS: dict[str, Callable[[Any, str], ArgumentParser]] = {
    "check": _add_check,
    "import": _add_import,
    "optimize": _add_optimize,
    "run": _add_run,
    "bench": _add_bench,
    "zoo": _add_zoo,
    "explain": _add_explain,
    "view": _add_view,
    "verify": _add_verify,
    "bisect": _add_bisect,
    "rules": _add_rules,
    "tune": _add_tune,
    "completion": _add_completion,
}

if __name__ == "__main__":
    sys.exit(main())
