"""The command line of `isoform-opt`: our flags and xDSL's, with one-line usage errors."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from ...dialects.errors import UsageError, did_you_mean

PIPELINE_HELP = "passes to run: a,b{option=1 flag=true},func.func(c) (see --list-passes)"
# The flags of xDSL's driver that have another name in mlir-opt, too.
ALSO = {
    "--print-op-generic": ("--mlir-print-op-generic",),
    "--print-debuginfo": ("--mlir-print-debuginfo",),
}
EXAMPLES = """\
examples:
  isoform-opt m.mlir -p canonicalize,cse --explain
  isoform-opt m.mlir -p 'builtin.module(cse,func.func(graph-to-algebra))' -o out.mlir
  isoform-opt m.mlir -p graph-to-algebra,algebra-to-kernel --print-ir-after-change
  isoform-opt --help-dialect graph.conv
  isoform-opt m.mlir -p mine --plugin mine.py --reproducer crash.mlir
"""

Add = Callable[..., argparse.Action]


class ArgumentParser(argparse.ArgumentParser):
    """argparse with one-line errors, suggestions for misspelt flags and a short help for lists."""

    def error(self, message: str) -> NoReturn:
        """Raise a usage error where argparse would print the usage and exit."""
        hint = f"{self.prog} --help lists the flags"
        if message.startswith("unrecognized arguments: "):
            flag = message.split()[2].partition("=")[0]
            hint = did_you_mean(flag, self._option_string_actions) or hint
        raise UsageError(message, hint=hint)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument; the help of `-p` does not list all passes, since there are too many."""
        if "-p" in names:
            options["help"] = PIPELINE_HELP
        more = ALSO.get(names[0], ()) if names else ()
        return super().add_argument(*names, *more, **options)


def add_isoform_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that xDSL's driver does not have, in groups."""
    _add_asking(parser.add_argument_group("what there is").add_argument)
    _add_files(parser.add_argument_group("files").add_argument)
    _add_checks(parser.add_argument_group("checks and limits").add_argument)
    _add_printing(parser.add_argument_group("IR and times on stderr").add_argument)
    _add_failures(parser.add_argument_group("errors and failures").add_argument)


def _add_asking(add: Add) -> None:
    add("--list-passes", action="store_true", help="list all passes and exit")
    add("--help-pass", metavar="NAME", help="describe a pass and its options and exit")
    text = "list all dialects and exit"
    add("--list-dialects", "--show-dialects", action="store_true", help=text)
    text = "describe a dialect's operations, or one operation (graph.conv), and exit"
    add("--help-dialect", metavar="NAME", help=text)
    text = "the passes, as -p (mlir-opt's name)"
    add("--pass-pipeline", dest="passes", default="", metavar="PASSES", help=text)
    text = "print the pipeline, each pass in the op it runs on, on stderr"
    add("--dump-pass-pipeline", action="store_true", help=text)


def _add_files(add: Add) -> None:
    text = "add the dialects, passes and targets that this file defines (repeatable)"
    add("--plugin", action="append", default=[], metavar="FILE.py", help=text)
    text = "the weights (default: the file that the module names, beside it)"
    add("--weights", metavar="FILE.safetensors", help=text)
    text = "print no locations; the default prints those that are known"
    add("--no-locations", "--strip-debuginfo", action="store_true", help=text)


def _add_checks(add: Add) -> None:
    text = "compare the program after every pass with what it was: proved, else evaluated"
    add("--check", action="store_true", help=text)
    text = "compare what was written (-o OUT.mlir) with FILE and write what that proved"
    add("--certificate", metavar="C.json", help=text)
    text = "verify only before the first pass and after the last"
    add("--no-verify-each", action="store_true", help=text)
    text = "print, parse and print again; the texts must be the same"
    add("--verify-roundtrip", action="store_true", help=text)
    text = "pattern rewrites allowed in one pass (default: 100 per operation, at least 100000)"
    add("--max-rewrites", type=_count, metavar="N", help=text)
    add("--fast-math", action="store_true", help="allow passes that may change values")
    add("--strict-nan", action="store_true", help="refuse passes that change infinities or NaN")


def _add_printing(add: Add) -> None:
    add("--explain", action="store_true", help="say on stderr what each pass changed")
    add("--timing", "--mlir-timing", action="store_true", help="where the time went, as a tree")
    for when in ("before", "after"):
        flags = (f"--print-ir-{when}", f"--mlir-print-ir-{when}")
        add(*flags, default="", metavar="a,b", help=f"print the IR {when} these passes")
        flags = tuple(f"{flag}-all" for flag in flags)
        add(*flags, action="store_true", help=f"print the IR {when} each pass")
    text = "print the IR after passes that changed it (of --print-ir-after, or of all)"
    add("--print-ir-after-change", "--mlir-print-ir-after-change", action="store_true", help=text)
    text = "print what a pass that failed has left"
    add("--print-ir-after-failure", "--mlir-print-ir-after-failure", action="store_true", help=text)
    text = "print IR into files of this folder, numbered, in place of stderr"
    add("--print-ir-tree-dir", "--mlir-print-ir-tree-dir", metavar="DIR", help=text)


def _add_failures(add: Add) -> None:
    text = "show the source line with a caret (default: on a terminal)"
    add("--show-source", action="store_true", help=text)
    text = "where a pass fails, write the module before the pipeline, and the pipeline"
    names = ("--reproducer", "--mlir-pass-pipeline-crash-reproducer")
    add(*names, metavar="FILE.mlir", help=text)
    text = "the reproducer begins before the pass that failed"
    names = ("--local-reproducer", "--mlir-pass-pipeline-local-reproducer")
    add(*names, action="store_true", help=text)
    add("--run-reproducer", action="store_true", help="run the pipeline that a reproducer names")
    add("--traceback", action="store_true", help="where something crashes, show Python's traceback")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, found '{text}'")
    return int(text)
