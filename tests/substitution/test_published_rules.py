"""TENSAT's published rules, where ISOFORM_TENSAT names their folder: four of 133 are wrong.

The published rules leave groups, pads and split positions to the shapes; here they are computed.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoform.passes.rules.check import check_rule
from isoform.passes.rules.rule import AttrVar, Node, Out, Rule, Size, Term, Var

FOLDER = os.environ.get("ISOFORM_TENSAT", "")
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="ISOFORM_TENSAT names no folder"),
    pytest.mark.slow,
]
Tree = str | list["Tree"]


def parse(text: str) -> Tree:
    tokens = re.findall(r"[()]|[^\s()]+", text)

    def tree() -> Tree:
        token = tokens.pop(0)
        if token != "(":
            return token
        found: list[Tree] = []
        while tokens[0] != ")":
            found.append(tree())
        tokens.pop(0)
        return found

    return tree()


def dim(term: Term, k: int) -> str:
    """The text of an extent of a term."""
    match term:
        case Var():
            return f"{term.name}.shape[{k}]"
        case Node("concat", (a, b)):
            mine = dim(a, k)
            return f"({mine} + {dim(b, k)})" if term.attribute("axis") == k else mine
        case Node("matmul", (a, b)):
            return dim(b if k == 1 else a, k)
        case Node("conv", (x, w)):
            return dim(w, 0) if k == 1 else dim(x, k)
        case Node():
            return dim(term.operands[0], k)
        case Out():
            raise AssertionError("a split is on top")


def build(tree: Tree, parts: tuple[Term, ...] = ()) -> Term:
    if isinstance(tree, str):
        return Var(tree.removeprefix("?"))
    head, *rest = tree
    match head:
        case "ewadd" | "ewmul":
            return Node("add" if head == "ewadd" else "mul", tuple(build(t) for t in rest))
        case "relu":
            return Node("relu", (build(rest[0]),))
        case "matmul":
            return activated(rest[0], Node("matmul", (build(rest[1]), build(rest[2]))))
        case "concat":
            return Node("concat", (build(rest[2]), build(rest[3])), (("axis", int(str(rest[0]))),))
        case "split_0" | "split_1":
            inner = rest[0]
            assert isinstance(inner, list)
            axis = int(str(inner[1]))
            sizes = tuple(Size(dim(part, axis)) for part in parts)
            node = Node("split", (build(inner[2]),), (("axis", axis), ("sizes", sizes)))
            return Out(node, int(str(head)[-1]))
        case "conv2d":
            x, w = build(rest[4]), build(rest[5])
            assert rest[:2] == ["1", "1"]
            pads = AttrVar("pads") if rest[2] == "0" else (0, 0, 0, 0)
            attributes = (
                ("dilations", (1, 1)),
                ("groups", Size(f"{dim(x, 1)} // {dim(w, 1)}")),
                ("pads", pads),
                ("strides", (1, 1)),
            )
            return activated(rest[3], Node("conv", (x, w), attributes))
        case _:
            raise AssertionError(f"unknown op {head}")


def activated(activation: Tree, node: Node) -> Term:
    return {"0": node, "2": Node("relu", (node,))}[str(activation)]


def published() -> Iterator[tuple[str, Rule]]:
    single = (Path(FOLDER) / "converted.txt").read_text().splitlines()
    for line in filter(None, single):
        left, right = line.split("=>")
        yield line, Rule("published", (build(parse(left)),), (build(parse(right)),))
    lines = (Path(FOLDER) / "converted_multi.txt").read_text().splitlines()
    for k in range(0, len(lines), 2):
        sides = [line.split("=>") for line in lines[k : k + 2]]
        left = tuple(build(parse(a)) for a, _ in sides)
        yield lines[k], Rule("published", left, tuple(build(parse(b), left) for _, b in sides))


def test_exactly_the_four_of_grouped_concat_are_refuted() -> None:
    found = [(line, check_rule(rule, 12)) for line, rule in published()]
    assert len(found) == 133
    wrong = [line for line, checked in found if checked.wrong is not None]
    assert [line for line, checked in found if checked.instances == 0 and not checked.wrong] == []
    assert len(wrong) == 4
    assert all(line.startswith("(concat 1 4 (conv2d") for line in wrong)
