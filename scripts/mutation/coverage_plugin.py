"""A pytest plugin that writes, for each test, its seconds and the lines it runs.

It reads MUTATION_FILES (the files whose lines count, one a line, relative to the working folder)
and writes MUTATION_MAP-PROCESS.json, one file for each process of pytest-xdist. What runs in a
process that a test starts is not seen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest


class _Recorder:
    def __init__(self) -> None:
        self.files = os.environ["MUTATION_FILES"].splitlines()
        self.coverage = coverage.Coverage(
            data_file=None, include=[str(Path(f).resolve()) for f in self.files], config_file=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        started = time.perf_counter()
        yield
        self.seconds[item.nodeid] = round(time.perf_counter() - started, 4)
        self.coverage.switch_context("between tests")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines: dict[str, dict[str, list[str]]] = {}
        for file in self.files:
            contexts: dict[int, list[str]] = data.contexts_by_lineno(str(Path(file).resolve()))
            lines[file] = {
                str(line): sorted(t for t in tests if t in self.seconds and t not in self.failed)
                for line, tests in sorted(contexts.items())
            }
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        text = json.dumps({"seconds": self.seconds, "lines": lines})
        Path(f"{os.environ['MUTATION_MAP']}-{worker}.json").write_text(text)


def pytest_configure(config: Any) -> None:
    """Record in the processes that run tests: not in the one that hands them out."""
    if os.environ.get("PYTEST_XDIST_WORKER") or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_Recorder(), "mutation recorder")
