"""What the differential tests share: run a check on random programs, reduce what fails.

A check takes a program and its seed and answers None, or one line that says what is wrong; the
words before the first colon name the kind of failure, which reduction keeps. To look into a seed:

    program = random_graph(SEED); reduce(program, ...); write_reproducer(program, folder)
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.testing.random_programs import reduce, write_reproducer

Check = Callable[[Program, int], str | None]

# What a bug in a pass or in code generation may raise; a crash is a failure like any other.
BUGS = (
    UserError,
    AssertionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
REDUCTIONS = 250
SHOWN_LINES = 60


def answer(check: Check, program: Program, seed: int) -> str | None:
    """What a check says, an exception being an answer too."""
    try:
        return check(program, seed)
    except BUGS as error:
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def holds(tmp_path: Path) -> Callable[[Iterable[tuple[int, Program]], Check], None]:
    """Check (seed, program) pairs; the first that fails is reduced, written out and reported."""

    def run(programs: Iterable[tuple[int, Program]], check: Check) -> None:
        for seed, program in programs:
            message = answer(check, program, seed)
            if message is not None:
                pytest.fail(report(program, seed, check, message, tmp_path))

    return run


def report(program: Program, seed: int, check: Check, message: str, folder: Path) -> str:
    """Reduce the program and write it out; what happened, and where the file is."""
    kind = message.partition(":")[0]

    def fails(candidate: Program) -> bool:
        found = answer(check, candidate, seed)
        return found is not None and found.partition(":")[0] == kind

    small = reduce(program, fails, REDUCTIONS)
    path = write_reproducer(small, folder, f"seed{seed}")
    text = "\n".join(module_text(small.module).splitlines()[:SHOWN_LINES])
    now = answer(check, small, seed)
    return f"{program.source}: {message}\nreduced to {path}\nwhich fails with {now}\n{text}"
