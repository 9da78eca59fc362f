"""Errors of the operating system, which are no bugs of ours, as one line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress

from ...dialects.errors import UserError, one_line

# A full disk, a reached limit, no memory, a file nested deeper than Python recurses.
OURS_NOT = (OSError, MemoryError, RecursionError)


def not_ours(error: BaseException) -> str:
    """The message for one of these; pending standard output is dropped."""
    if isinstance(error, OSError) and error.filename is None:
        drop_output()
    match error:
        case MemoryError():
            return "out of memory"
        case RecursionError():
            return "the program or file is nested too deeply"
        case OSError():
            reason = error.strerror or one_line(str(error)) or type(error).__name__
            place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str) else ""
            return f"{place}the system refuses it: {reason}"
        case _:
            raise AssertionError(error)


def crash(error: BaseException) -> str:
    """The message for any other exception: a bug of ours, or of the plug-in it names."""
    from ..plugin import PLUGIN_MODULE  # loads xDSL, which the command line avoids

    notes = [f", {n}" for n in getattr(error, "__notes__", ()) if "\n" not in n]
    text = one_line(f"{type(error).__name__}: {error}{''.join(notes)}")
    frames = traceback.walk_tb(error.__traceback__)
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in frames
        if frame.f_globals.get("__name__", "").startswith(PLUGIN_MODULE)
    ]
    if places:
        return f"{places[-1]}: the plug-in failed: {text} (--traceback shows where)"
    return f"crash, {text} (a bug; --traceback shows where)"


def check_streams() -> None:
    """Make sure that the standard streams exist.

    Raises: UserError where standard output is closed.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        raise UserError("standard output is closed", hint="send it to /dev/null")


def drop_output() -> None:
    """Discard buffered standard output that could not be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
