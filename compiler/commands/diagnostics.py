"""Show an error: its line, and on a terminal the source line with a caret below."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ...dialects.errors import UserError

_PLACE = re.compile(r"^(?P<file>.*):(?P<line>\d+):(?P<column>\d+)$")
# Longer source lines are not shown: nobody reads a tensor literal under an error.
_LONGEST = 200


def show_errors(error: UserError, prefix: str, texts: Mapping[str, str], source: bool) -> None:
    """Print an error, and those found with it, on stderr.

    Args:
        prefix: stands before each line, as in `error: `.
        texts: sources by name, for what is not a file.
        source: show the line at fault with a caret under its column.
    """
    for found in (error, *error.also):
        print(f"{colour(prefix)}{found}", file=sys.stderr)
        if source and (lines := caret(found.where, texts)):
            print(lines, file=sys.stderr)


def colour(prefix: str) -> str:
    """The prefix in red, on a terminal where NO_COLOR does not forbid it."""
    return f"\x1b[1;31m{prefix}\x1b[0m" if in_colour() else prefix


def in_colour() -> bool:
    """Whether standard error takes colours (https://no-color.org)."""
    return (
        sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def caret(where: str | None, texts: Mapping[str, str]) -> str:
    """The source line of `file:line:column` and a caret below; empty where it is not known."""
    match = None if where is None else _PLACE.match(where)
    if match is None:
        return ""
    line = _line(match["file"], int(match["line"]), texts)
    if line is None or len(line) > _LONGEST:
        return ""
    before = line[: int(match["column"]) - 1]
    return f"{line}\n{''.join(c if c == chr(9) else ' ' for c in before)}^"


def _line(file: str, number: int, texts: Mapping[str, str]) -> str | None:
    text = texts.get(file)
    if text is None:
        try:
            text = Path(file).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            return None
    lines = text.split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else None
