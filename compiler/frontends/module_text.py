"""Print modules with the locations that are known."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation
from xdsl.printer import Printer


class NamePrinter(Printer):
    """Prints only known locations, as `loc("layer1.conv")`."""

    def print_op(self, op: Operation) -> None:
        """Print one op, with its location unless that is unknown."""
        before, self.print_debuginfo = self.print_debuginfo, op.location != UnknownLoc()
        super().print_op(op)
        self.print_debuginfo = before


def module_text(module: ModuleOp) -> str:
    """The IR text of a module with source locations, ending in a newline."""
    out = StringIO()
    NamePrinter(out).print_op(module)
    return out.getvalue() + "\n"
