"""Write the table of ops in docs/graph-dialect.md from the op definitions.

python scripts/op_table.py            print the table
python scripts/op_table.py --write    put it into the document
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef

from isoform.dialects.graph import (
    OPS,
    GraphOp,
    contraction,
    data,
    elementwise,
    pooling,
    reduction,
    shaping,
)
from isoform.dialects.graph.base import property_order
from isoform.dialects.scope_text import literal_text

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "graph-dialect.md"
BEGIN, END = "<!-- op table: made by scripts/op_table.py -->\n", "<!-- end of op table -->\n"
FAMILIES = (
    ("Elementwise", elementwise.ELEMENTWISE_OPS),
    ("Contractions", contraction.CONTRACTION_OPS),
    ("Pools", pooling.POOLING_OPS),
    ("Reductions and normalisations", reduction.REDUCTION_OPS),
    ("Shapes", shaping.SHAPING_OPS),
    ("Data", data.DATA_OPS),
)


def op_table() -> str:
    """One Markdown table for each family of ops."""
    parts = [f"### {title}\n\n{family(ops)}" for title, ops in FAMILIES]
    assert sum(len(ops) for _, ops in FAMILIES) == len(OPS)
    return "\n".join(parts)


def family(ops: tuple[type[IRDLOperation], ...]) -> str:
    """The table of one family."""
    head = (
        "| Op | Operands | Properties | Meaning | ONNX | Defined by |\n|---|---|---|---|---|---|\n"
    )
    return head + "".join(row(op) for op in ops)


def row(op: type[IRDLOperation]) -> str:
    """One line: an op."""
    meaning, onnx = split_docstring(op.__doc__ or "")
    cells = (f"`{op.name}`", operands(op), properties(op), meaning, onnx, origin(op))
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def split_docstring(text: str) -> tuple[str, str]:
    """The first sentence, and what `ONNX X, Y.` names."""
    flat = " ".join(text.split())
    found = re.search(r"\. ONNX ([A-Z]\w*(?:, [A-Z]\w*)*)", flat)
    first = re.split(r"(?<=\.)\s+(?=[A-Z`])", flat, maxsplit=1)[0]
    return first.rstrip("."), found[1] if found else ""


def operands(op: type[IRDLOperation]) -> str:
    """Names; `?` may be omitted, `...` is any number."""
    names = []
    for name, definition in op.get_irdl_definition().operands:
        optional = isinstance(definition, OptionalDef)
        variadic = isinstance(definition, VariadicDef) and not optional
        names.append(f"{name}?" if optional else f"{name}..." if variadic else name)
    return ", ".join(names)


def properties(op: type[IRDLOperation]) -> str:
    """Names, with defaults."""
    if not issubclass(op, GraphOp):
        return ", ".join(op.get_irdl_definition().properties)
    return ", ".join(
        f"{name} = {literal_text(op.DEFAULTS[name])}" if name in op.DEFAULTS else name
        for name in property_order(op)
    )


def origin(op: type[IRDLOperation]) -> str:
    """What defines the op's meaning."""
    if not issubclass(op, GraphOp):
        return ""
    return "scopes" if op.has_scopes() else "numpy"


def insert(document: str) -> str:
    """The document with an updated table."""
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{op_table()}\n{END}{after}"


def main() -> None:
    """Print or write."""
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(insert(DOCUMENT.read_text()))
    else:
        print(op_table())


if __name__ == "__main__":
    main()
