"""Errors a user can act on: one class, one line, with the location and what to do next.

Every floor raises `UserError` (or a subclass that only adds a docstring page); the commands print
`str(e)` after `error: ` on stderr and exit 1. `assert` and every other exception mean a bug of
ours.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import SequenceMatcher, get_close_matches


class UserError(Exception):
    """Say what is wrong with the user's input, where, and what to do about it, on one line.

    Cause: a file, a flag, a model or a piece of IR that isoform cannot accept.

    Example:
        >>> raise UserError("unknown pass 'cze'", where="-p", hint="did you mean 'cse'?")
        Traceback (most recent call last):
        ...
        isoform.dialects.errors.UserError: -p: unknown pass 'cze' (did you mean 'cse'?)

    Fix: follow the hint; `where` names the file and line, the ONNX node or the flag.

    Attributes:
        also: errors that were found with this one, in order; commands print each on a line.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint
        self.also: list[UserError] = []

    def one_line(self) -> str:
        """Join location, message, expected and found values and hint into one printable line."""
        details = [
            f"{label} {value}"
            for label, value in (("expected", self.expected), ("found", self.found))
            if value is not None
        ]
        text = self.message if self.where is None else f"{self.where}: {self.message}"
        if details:
            text += ": " + ", ".join(details)
        if self.hint is not None:
            text += f" ({self.hint})"
        return one_line(text)

    def __str__(self) -> str:
        return self.one_line()


class ElementError(UserError):
    """An op does not take elements of this type.

    Cause: a graph op on booleans, unsigned integers or integers that it has no meaning for.

    Example: `graph.erf` of tensor<4xi32>.

    Fix: cast the operand; importers fall back to the ONNX op where ONNX allows the type.
    """


class UnboundDims(UserError):
    """An input has dims without a number, and a program of fixed shapes is asked for.

    Cause: the model was exported with dynamic dims.

    Example: an input of dims [batch, 3, 224, 224].

    Fix: bind them by `--shape`; a session of `isoform.compile` binds them when it runs.
    """


class UndecidedExtent(UserError):
    """What is asked of an extent does not follow from the guards, and no example size is known.

    Cause: an op or a pass needs to know more of a symbolic extent than `isoform.guards` says.

    Example: graph.add of tensor<?xf32, #graph.dims<m>> and tensor<?xf32, #graph.dims<n>>, where
    m == n is said nowhere.

    Fix: add the guard to the function's `isoform.guards`, or bind the symbols: specialize-dims.
    """


class UsageError(UserError):
    """Say that the command line itself is wrong; commands exit 2 instead of 1.

    Cause: a flag that does not exist, a flag without its value, two flags that exclude each other.

    Example: `isoform-opt --check-twice model.mlir`

    Fix: `isoform-opt --help` lists the flags.
    """


def raise_all(errors: "list[UserError]") -> None:
    """Raise the first error with the others in its `also`; do nothing where there is none."""
    if not errors:
        return
    first = errors[0]
    first.also += [other for error in errors[1:] for other in (error, *error.also)]
    raise first


def in_debug_mode() -> bool:
    """Whether pipelines of our own are verified after every pass, and nothing that `optimize` found
    is remembered: for tests.
    """
    return os.environ.get("ISOFORM_DEBUG", "0") not in ("", "0")


# -1 prints no warnings, 1 tells what is being done (`-q`, `-v`).
_LOUDNESS: ContextVar[int] = ContextVar("loudness", default=0)


@contextmanager
def loudness(level: int) -> Generator[None]:
    """Print less (-1) or more (1) on stderr in the block; errors are always told."""
    token = _LOUDNESS.set(level)
    try:
        yield
    finally:
        _LOUDNESS.reset(token)


def is_quiet() -> bool:
    """Whether only errors are wanted."""
    return _LOUDNESS.get() < 0


def is_verbose() -> bool:
    """Whether what is being done is printed line by line."""
    return _LOUDNESS.get() > 0


# Hears what is being done in place of the lines, and whether it is the best so far.
_LISTENER: ContextVar[Callable[[str, bool], None] | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Callable[[str, bool], None]) -> Generator[None]:
    """Tell a listener what is being done in the block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def is_heard() -> bool:
    """Whether a listener shows what is being done."""
    return _LISTENER.get() is not None


def say(text: str, best: bool = False) -> None:
    """Tell what is being done, `STAGE: what`: on stderr where that was asked for, or to a listener.

    Args:
        best: whether it is about the best program so far.
    """
    listener = _LISTENER.get()
    if listener is not None:
        listener(text, best)
    if _LOUDNESS.get() > 0:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def warn(text: str, where: str | None = None) -> None:
    """Print a warning on stderr: something was done differently than the user may expect."""
    if is_quiet():
        return
    location = "" if where is None else f"{where}: "
    sys.stderr.write(f"isoform: warning: {one_line(location + text)}\n")


def one_line(text: str) -> str:
    """Collapse every run of whitespace and control characters to one space.

    Bytes of a name that is no text are written as `\\xff`.

    Example:
        >>> one_line("a\\n  b\\tc")
        'a b c'
    """
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def suggest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate closest to `word`, or None if none is close.

    Example:
        >>> suggest("canonicalise", ["canonicalize", "cse"])
        'canonicalize'
        >>> suggest("qqq", ["canonicalize", "cse"]) is None
        True
    """
    close = get_close_matches(word, sorted(candidates), n=3, cutoff=0.6)
    if not close:
        return None
    return max(close, key=lambda c: (_similarity(word, c), _shared_start(word, c)))


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return a hint naming the closest candidate, or None if none is close.

    Example:
        >>> did_you_mean("canonicalise", ["canonicalize", "cse"])
        "did you mean 'canonicalize'?"
    """
    close = suggest(word, candidates)
    return None if close is None else f"did you mean '{close}'?"


def _similarity(a: str, b: str) -> float:
    return SequenceMatcher(None, a, b).ratio()


def _shared_start(a: str, b: str) -> int:
    return next(
        (k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
