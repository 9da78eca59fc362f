"""A process that has imported what tests import, and forks to run some of them.

It reads one JSON request a line from its input, {"tests": PATH, "limit": SECONDS, "cpu": SECONDS},
where the file PATH names tests, and answers with one line of JSON: {"status": STATUS, "by": TEST}.
STATUS is pytest's exit status, null where a limit passed; TEST is the test that failed, or "".

The server itself never imports what is mutated: each fork does, so each sees the files as they are.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

# Imported once, before any fork. Nothing here starts threads.
IMPORTED = (
    *(
        "numpy",
        "ml_dtypes",
        "networkx",
        "scipy.optimize",
        "jsonschema",
        "hypothesis",
        "_pytest.doctest",
    ),
    *("onnx", "onnx.reference", "onnx.helper", "egglog.bindings", "llvmlite.binding", "z3"),
    *("xdsl.dialects.builtin", "xdsl.dialects.func", "xdsl.parser", "xdsl.printer"),
    *("xdsl.pattern_rewriter", "xdsl.passes", "xdsl.context", "xdsl.universe"),
)
MEMORY = 8 << 30  # bytes of address space: a mutant may ask for any number


class _Failed:
    """Notes the first test that fails, in a file that outlives the process."""

    def __init__(self, path: str):
        self.path = Path(path)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.path.read_text():
            self.path.write_text(report.nodeid)


def _child(tests: str, failed: str, cpu: int) -> None:
    """Run the tests and end this process; it never returns."""
    status = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
        arguments = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", f"@{tests}"]
        status = int(pytest.main(arguments, plugins=[_Failed(failed)]))
    finally:
        os._exit(status)


def run(tests: str, limit: float, cpu: int) -> dict[str, Any]:
    """Run the tests that a file names in a fork; the answer to a request."""
    with tempfile.NamedTemporaryFile("r") as failed:
        ends = time.monotonic() + limit
        child = os.fork()
        if not child:
            _child(tests, failed.name, cpu)
        ended, status = 0, 0
        while not ended and time.monotonic() < ends:
            time.sleep(0.01)
            ended, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(ProcessLookupError):  # what the tests have started ends too
            os.killpg(child, signal.SIGKILL)
        if not ended:
            os.waitpid(child, 0)
            return {"status": None, "by": ""}
        code = os.waitstatus_to_exitcode(status)
        return {"status": None if code == -signal.SIGXCPU else code, "by": failed.read()}


def main() -> None:
    """Answer requests until the input ends."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
