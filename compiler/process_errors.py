"""What the system refuses a command: no bug of ours, and said in one line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress

from ..dialects.errors import UserError, one_line

# The disk is full, a limit is met, memory is at an end, a file is nested deeper than Python goes.
OURS_NOT = (OSError, MemoryError, RecursionError)


def not_ours(error: BaseException) -> str:
    """What to tell a user of one of these; what standard output could not take is dropped."""
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
    """What to tell a user of any other exception: a bug of ours, or of a plug-in that is named."""
    from .plugin import PLUGIN_MODULE  # xDSL, which the command line does not load

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
    """Make sure that there are streams to write to.

    Raises: UserError where standard output is closed.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        raise UserError("standard output is closed", hint="send it to /dev/null")


def drop_output() -> None:
    """Throw away what standard output still holds and could not take."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
