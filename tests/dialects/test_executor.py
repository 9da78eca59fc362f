"""Work in other processes: every item once, whatever becomes of a process."""

import os
import time
from pathlib import Path

import pytest

from isoform.dialects.executor import LocalExecutor, kept_workers

HERE = os.getpid()


def square(number: int) -> tuple[int, int]:
    """The square, and who computed it."""
    if number == 13:
        raise ValueError("thirteen")
    if number == 66:
        os._exit(3)
    if number == 99:
        time.sleep(600)
    return number**2, os.getpid()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes import this file by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(square, "__module__", "test_executor")


def run(executor: LocalExecutor, items: list[int]) -> tuple[dict[int, int], set[int], list[str]]:
    """Squares by number, the processes that computed them, and what was lost."""
    found: dict[int, int] = {}
    processes: set[int] = set()
    lost: list[str] = []

    def done(number: int, result: tuple[int, int]) -> None:
        assert number not in found
        found[number] = result[0]
        processes.add(result[1])

    executor.run(square, items, done, lambda number, error: lost.append(f"{number} {error}"))
    return found, processes, lost


def test_every_item_is_done_once_and_not_here_where_that_is_asked_for() -> None:
    found, processes, lost = run(LocalExecutor(2, here=False), list(range(10)))
    assert found == {k: k**2 for k in range(10)}
    assert HERE not in processes and lost == []


def test_without_processes_all_is_done_here() -> None:
    assert run(LocalExecutor(0), [1, 2]) == ({0: 1, 1: 4}, {HERE}, [])


def test_what_dies_or_is_late_is_told_and_the_rest_goes_on() -> None:
    executor = LocalExecutor(1, here=False, limit=30.0)
    found, _, lost = run(executor, [66, 2, 3])
    assert (found, lost) == ({1: 4, 2: 9}, ["0 died"])
    with kept_workers():  # one that has started answers at once
        run(executor, [1])
        found, _, lost = run(LocalExecutor(1, start=False, here=False, limit=1.0), [99, 2])
    assert lost[0] == "0 late"
    assert found.get(1, 4) == 4


def test_an_exception_is_raised_as_it_was() -> None:
    with pytest.raises(ValueError, match="thirteen"):
        run(LocalExecutor(1, here=False), [1, 13, 2])


def test_kept_processes_are_used_again() -> None:
    with kept_workers():
        first, again = (run(LocalExecutor(1, here=False), [1, 2])[1] for _ in range(2))
    assert first == again
