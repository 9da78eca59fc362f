"""The canonical signature of an op: everything its cost depends on, and nothing else.

Names, locations, provenance and positions in memory are left out. Types, properties, bodies and the
identity of operands are included. The key is the signature's hash, so cost files of different
programs and machines can be merged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from io import StringIO

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.printer import Printer

from .algebra import ScopeOp

MAX_TEXTS = 1 << 12
_TEXTS: dict[Hashable, str] = {}
# Left out: positions in memory, and attributes that a kernel's region implies.
_LEFT_OUT = ("offset", "offsets", "contraction")


def signature(op: Operation) -> str:
    """The canonical text of an op, on one line, operand types at the end."""
    form = _form(op, {})
    text = _TEXTS.get(form)
    if text is None:
        if len(_TEXTS) >= MAX_TEXTS:
            _TEXTS.clear()
        text = _TEXTS[form] = _text(op)
    return text


def _form(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    """All that the text of an op depends on, without printing it: equal ops are printed once."""
    operands = tuple((numbers.setdefault(value, len(numbers)), value.type) for value in op.operands)
    properties = tuple((n, a) for n, a in op.properties.items() if n not in _LEFT_OUT)
    inside: list[Hashable] = []
    for region in op.regions:
        for block in region.blocks:
            for arg in block.args:
                inside.append((numbers.setdefault(arg, len(numbers)), arg.type))
            inside += [_form(nested, numbers) for nested in block.ops]
    for result in op.results:
        numbers.setdefault(result, len(numbers))
    types = tuple(result.type for result in op.results)
    return op.name, operands, properties, types, tuple(inside)


def _text(op: Operation) -> str:
    distinct = list(dict.fromkeys(op.operands))
    stand_ins = Block(arg_types=[value.type for value in distinct]).args
    mapper: dict[SSAValue, SSAValue] = dict(zip(distinct, stand_ins, strict=True))
    clean = op.clone(value_mapper=mapper, clone_name_hints=False)
    for nested in clean.walk():
        nested.attributes.clear()
        for name in _LEFT_OUT:
            nested.properties.pop(name, None)
        if isinstance(nested, ScopeOp):
            names = ArrayAttr(StringAttr(f"i{k}") for k in range(len(nested.iterators)))
            nested.properties["iterators"] = names
    out = StringIO()
    Printer(out).print_op(clean)
    for nested in clean.walk(reverse=True):
        nested.drop_all_references()
    types = ", ".join(str(value.type) for value in op.operands)
    return f"{' '.join(out.getvalue().split())} on ({types})"


def key(text: str) -> str:
    """The content address of a signature: 20 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]
