"""Match raised errors against `// expected-error {{text}}` comments, as mlir-opt's
--verify-diagnostics does.

    // expected-error {{text}}          somewhere in this chunk
    // expected-error@+1 {{text}}       on the next line (also @-2, @above, @below, @0 or @same for
    this line)

A chunk is the file, or with --split-input-file what stands between two `// -----` lines. An error
without a known line matches any annotation by its text.
"""

import re
from dataclasses import dataclass

from ...dialects.errors import UserError

_ANNOTATION = re.compile(
    r"expected-error(?:@(?P<at>[+-]?\d+|above|below|same))?\s*\{\{(?P<text>.*?)\}\}"
)
_LINE = re.compile(r":(\d+):\d+$")
_SHIFTS = {"above": -1, "below": 1, "same": 0}


@dataclass(frozen=True)
class Expectation:
    """One annotation: the text an error must contain, its line (None: any), and where it is
    written."""

    text: str
    line: int | None
    location: str

    def matches(self, error: UserError) -> bool:
        """Say whether `error` is the expected one."""
        found = _LINE.search(error.where or "")
        line_agrees = self.line is None or found is None or int(found.group(1)) == self.line
        return line_agrees and self.text in str(error)


def expectations(text: str, name: str, line_offset: int = 0) -> list[Expectation]:
    """Read the annotations of a chunk that starts after `line_offset` lines of its file."""
    found: list[Expectation] = []
    for number, line in enumerate(text.split("\n"), start=line_offset + 1):
        for match in _ANNOTATION.finditer(line.partition("//")[2]):
            at = match["at"]
            shift = None if at is None else _SHIFTS.get(at)
            shift = int(at) if at is not None and shift is None else shift
            wanted = None if shift is None else number + shift
            found.append(Expectation(match["text"], wanted, f"{name}:{number}"))
    return found


def mismatches(expected: list[Expectation], errors: list[UserError]) -> list[UserError]:
    """Return what is wrong with a chunk: annotations nothing matched, errors nobody expected."""
    wrong = [
        UserError(f"unexpected error: {error.message}", where=error.where)
        for error in errors
        if not any(annotation.matches(error) for annotation in expected)
    ]
    for annotation in expected:
        if not any(annotation.matches(error) for error in errors):
            location = "" if annotation.line is None else f" on line {annotation.line}"
            text = f"expected error was not raised{location}: {{{{{annotation.text}}}}}"
            wrong.append(UserError(text, where=annotation.location))
    return wrong
