"""Count the files and functions that one convolution touches, from the graph to the native call.

python scripts/trace_compile.py            a table by folder
python scripts/trace_compile.py --files    a table by file
python scripts/trace_compile.py --search   with the searches of `optimize`

A convolution with bias and relu goes through the rewrites that `optimize` does first, is compiled
without measuring, and runs once. Files and functions of the package that are entered are counted,
and switches: calls from a function in one file to one in another. Caches on disk are a new empty
folder, every module is imported before, one thread is used and hashes are fixed, so the same tree
gives the same counts. Searches measure: with them, the number of times a file is entered varies by
a few in a thousand; which files and functions are entered does not.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import isoform
from isoform.compiler.api import improve

ROOT = Path(isoform.__file__).resolve().parent
FLOORS = ("dialects", "lowering", "passes", "compiler")
# Code inside a function, or a module's or class's own text: no function that one looks up.
NO_FUNCTION = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
# Restarts the process with fixed hashes.
SEED = "PYTHONHASHSEED"


class Tracer:
    """Records each call of a function of the package, and the file it came from."""

    def __init__(self) -> None:
        self.functions: dict[str, set[CodeType]] = {}
        self.switches: Counter[str] = Counter()
        self._files: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Handle one event of sys.setprofile."""
        file = self._file(frame.f_code) if event == "call" else None
        if file is None:
            return
        self.functions.setdefault(file, set()).add(frame.f_code)
        if self._caller(frame) not in (None, file):
            self.switches[file] += 1

    def _caller(self, frame: FrameType) -> str | None:
        """The file of the nearest function of the package on the call stack."""
        caller = frame.f_back
        while caller is not None and self._file(caller.f_code) is None:
            caller = caller.f_back
        return None if caller is None else self._file(caller.f_code)

    def _file(self, code: CodeType) -> str | None:
        """The file of a function of the package, relative to it; None of any other code."""
        if code not in self._files:
            path = Path(code.co_filename).resolve()
            inside = path.is_relative_to(ROOT) and code.co_name not in NO_FUNCTION
            name = path.relative_to(ROOT).as_posix() if inside else None
            self._files[code] = name if name and name.split("/")[0] in FLOORS else None
        return self._files[code]


def convolution() -> isoform.Program:
    """A 3x3 convolution, a bias and a relu."""
    draw = np.random.default_rng(0)
    build = isoform.GraphBuilder()
    x = build.input("x", (1, 16, 14, 14))
    w = build.weight("w", draw.standard_normal((32, 16, 3, 3)).astype(np.float32))
    b = build.weight("b", draw.standard_normal(32).astype(np.float32))
    y = build.conv(x, w, b, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    build.output("y", build.relu(y))
    return build.build()


def import_all() -> None:
    """Import every module, so that none is imported while calls are counted."""
    for floor in FLOORS:
        package = importlib.import_module(f"isoform.{floor}")
        for module in pkgutil.walk_packages(package.__path__, f"isoform.{floor}."):
            if not module.name.endswith("__main__") and "torch" not in module.name:
                importlib.import_module(module.name)


def trace(*, search: bool = False) -> Tracer:
    """The convolution, from the graph to its first result."""
    import_all()
    program, x = convolution(), np.ones((1, 16, 14, 14), np.float32)
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ISOFORM_CACHE"] = folder
        sys.setprofile(tracer)
        try:
            better = isoform.optimize(program, effort="quick") if search else improve(program)
            session = isoform.compile(better, threads=1, effort="quick")
            session(x=x)
        finally:
            sys.setprofile(None)
    return tracer


def table(tracer: Tracer, *, by_file: bool) -> str:
    """Counts by folder or by file, and in total."""
    rows: dict[str, list[int]] = {}
    for file, functions in sorted(tracer.functions.items()):
        name = file if by_file else file.rpartition("/")[0]
        row = rows.setdefault(name, [0, 0, 0])
        for k, n in enumerate((1, len(functions), tracer.switches[file])):
            row[k] += n
    rows["in all"] = [sum(row[k] for row in rows.values()) for k in range(3)]
    width = max(map(len, rows))
    head = f"{'':{width}}  files  functions  switches"
    return "\n".join(
        [head, *(f"{n:{width}}  {a:5}  {b:9}  {c:8}" for n, (a, b, c) in rows.items())]
    )


def main() -> None:
    """Print the table, in a process whose hashes are fixed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="one row for each file")
    parser.add_argument("--search", action="store_true", help="search as `optimize` does")
    options = parser.parse_args()
    if os.environ.get(SEED) != "0":
        os.environ[SEED] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    print(table(trace(search=options.search), by_file=options.files))


if __name__ == "__main__":
    main()
