"""ONNX's own node tests by op: how many are native, opaque, refused. Prints a table in Markdown.

    python scripts/node_case_table.py

Each case is imported, run and compared as in tests/onnx/test_conformance.py; one that is wrong is
an error. The expanded form of a function counts as a case of the op that it defines.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("native", "opaque", "refused", "random")


def main() -> int:
    """Run all cases; 1 if one is wrong."""
    tests = conformance()
    cases, lines = tests.cases(), list(tests.listed())
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name, result in tests.sweep(list(cases)).items():
        kind = "random" if tests.expected(name, lines) == "random" else result
        if kind not in KINDS:
            wrong.append(f"{name}: {result}")
        counts.setdefault(op_of(name, cases), Counter())[kind] += 1
    total = sum(counts.values(), Counter())
    print(f"{total.total()} cases: {', '.join(f'{total[kind]} {kind}' for kind in KINDS)}\n")
    print(f"| op | cases | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 2)}")
    for op, found in sorted(counts.items()):
        print(f"| {op} | {found.total()} | {' | '.join(str(found[kind]) for kind in KINDS)} |")
    print("\n".join(wrong), file=sys.stderr, end="")
    return 1 if wrong else 0


def conformance() -> ModuleType:
    """The test's own module: what is counted is what is tested."""
    path = ROOT / "tests" / "onnx" / "test_conformance.py"
    spec = spec_from_file_location("test_conformance", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def op_of(name: str, known: Mapping[str, Any]) -> str:
    """The op that a case tests: of an expanded form that of the case it was made of."""
    base = name.partition("_expanded")[0]
    node = known.get(base, known[name]).model.graph.node[0]
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


if __name__ == "__main__":
    sys.exit(main())
