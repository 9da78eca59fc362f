"""The command line of `isoform-opt`: our flags and xDSL's, with one-line usage errors."""

import argparse
from typing import Any, NoReturn

from ...dialects.errors import UsageError, did_you_mean

PIPELINE_HELP = "passes to run: a,b{option=1 flag=true} (see --list-passes and --help-pass)"


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
        return super().add_argument(*names, **options)


def add_isoform_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that xDSL's driver does not have."""
    add = parser.add_argument
    add(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE.py",
        help="add the dialects, passes and targets that this file defines (repeatable)",
    )
    add("--list-passes", action="store_true", help="list all passes and exit")
    add("--help-pass", metavar="NAME", help="describe a pass and its options and exit")
    add("--explain", action="store_true", help="say on stderr what each pass changed")
    add(
        "--check",
        action="store_true",
        help="compare the program after every pass with what it was: proved, else evaluated",
    )
    add(
        "--certificate",
        metavar="C.json",
        help="compare what was written (-o OUT.mlir) with FILE and write what that proved",
    )
    add(
        "--max-rewrites",
        type=_count,
        metavar="N",
        help="pattern rewrites allowed in one pass (default: 100 per operation, at least 100000)",
    )
    add("--fast-math", action="store_true", help="allow passes that may change values")
    add("--strict-nan", action="store_true", help="refuse passes that change infinities or NaN")
    add("--traceback", action="store_true", help="where something crashes, show Python's traceback")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, found '{text}'")
    return int(text)
