"""Write dialects/builder_ops.pyi: the builder's methods for type checkers and editors.

python scripts/builder_stub.py            print it
python scripts/builder_stub.py --write    put it into the package
"""

from __future__ import annotations

import inspect
import math
import sys
from pathlib import Path

from isoform.dialects.builder_ops import CLASSES, docstring, method_name, signature

FILE = Path(__file__).resolve().parents[1] / "dialects" / "builder_ops.pyi"
# Those that `GraphBuilder` defines itself.
OWN = ("split",)
HEAD = '''\
"""Made by scripts/builder_stub.py from the op definitions."""

import inspect
from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from .graph import GraphOp

CLASSES: dict[str, type[GraphOp]]

def method_name(op_name: str) -> str: ...
def docstring(op: type[GraphOp]) -> str: ...
def signature(op: type[GraphOp]) -> inspect.Signature: ...

class GraphOps:
    def op(
        self, op_name: str, *operands: SSAValue, results: int = 1, **properties: Any
    ) -> SSAValue: ...
'''


def stub() -> str:
    """The whole file."""
    methods = (method(name) for name in CLASSES if name not in OWN)
    return HEAD + "".join(methods)


def method(op_name: str) -> str:
    """One method with its docstring."""
    found = signature(CLASSES[op_name])
    parts = ["self"]
    positional = False
    star = False
    for parameter in found.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts += ["/"] if positional else []
            parts += ["*"]
            star, positional = True, False
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: SSAValue")
            star = True
            continue
        positional = positional or parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        parts.append(f"{parameter.name}: {annotation(parameter)}{default(parameter)}")
    parts += ["/"] if positional else []
    lines = "".join(f"        {part},\n" for part in parts)
    text = docstring(CLASSES[op_name]).replace("\n", "\n        ").replace("\\", "\\\\")
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    head = f"    def {method_name(op_name)}(\n{lines}    ) -> SSAValue:\n"
    return f'{head}        """{text}"""\n'


def annotation(parameter: inspect.Parameter) -> str:
    """A type in words."""
    found = parameter.annotation
    if isinstance(found, type):
        return found.__name__
    return str(found).replace("collections.abc.", "").replace("xdsl.ir.core.", "")


def default(parameter: inspect.Parameter) -> str:
    """What stands behind the type; infinities have no literal."""
    value = parameter.default
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return " = ..."
    return f" = {value!r}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        FILE.write_text(stub())
    else:
        print(stub())
