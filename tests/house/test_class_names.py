"""A public class has a name of its own, unless a reason says why two share one."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

import pytest
from support.import_graph import files

# Why classes of these names stand more than once.
KEPT: Mapping[str, str] = {
    "ConvOp": "an op of two dialects: a class is called after its op (graph.conv, kernel.conv)",
    "TransposeOp": "an op of two dialects",
    "IfOp": "an op of two dialects (control.if, nest.if)",
    "YieldOp": "an op of several dialects",
    "Expr": "the canonical form of a scalar expression, and the expression",
    "Read": "the canonical form of a read, and the read",
    "Source": "what canonical scopes read, and what scopes of the IR read",
}


@cache
def public_classes() -> dict[str, list[str]]:
    """The modules that define each public class."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in files().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return dict(found)


def test_no_public_class_name_stands_twice_without_a_reason() -> None:
    twice = {name: where for name, where in public_classes().items() if len(where) > 1}
    wrong = [f"{name}: {', '.join(where)}" for name, where in twice.items() if name not in KEPT]
    assert not wrong, "give one of each another name:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_name_does_stand_twice(name: str) -> None:
    assert len(public_classes()[name]) >= 2
