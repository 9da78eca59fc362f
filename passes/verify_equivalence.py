"""verify-equivalence: refuse a program that differs from another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError

from ..dialects.context import WeightContext
from ..dialects.errors import UserError, one_line
from ..dialects.files import read_whole
from ..dialects.floats import BITS, Floats
from ..dialects.program import Program
from ..dialects.weights import Weights, load_safetensors
from .equivalence import Verdict, compare
from .same_interface import check_comparable


@dataclass(frozen=True)
class VerifyEquivalence(ModulePass):
    """Check that the program is equal to the program in a file; change nothing.

    `against` names an .mlir or .onnx file of any level. If the weights of either are not
    available, weights are identified by name. What the verdict claims: docs/trust.md.

    Before and after, where `against` names a program that returns `graph.add %x, %x`:

        %two = graph.constant dense<2.0> : tensor<4xf32>
        %y = graph.mul %x, %two : tensor<4xf32>
    """

    name = "verify-equivalence"
    floats: ClassVar[Floats] = BITS
    anchor: ClassVar[str] = "builtin.module"
    against: str
    seed: int = 0
    budget: float = 60.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Compare.

        Raises:
            UserError: the programs differ, or it is unknown whether they do.
        """
        program = Program(op, ctx.weights if isinstance(ctx, WeightContext) else Weights())
        other = read_any(Path(self.against), ctx)
        check_comparable(other, program)
        verdict = compare(other, program, seed=self.seed, budget=self.budget)
        if not verdict.is_equal:
            raise UserError(without_time(verdict), where=f"against {self.against}")


def without_time(verdict: Verdict) -> str:
    """A verdict without its seconds, so that it is the same each time."""
    return verdict.text().rpartition(" (")[0]


def read_any(path: Path, context: Context) -> Program:
    """Read a program from .mlir or .onnx, in a context that knows its dialects.

    Raises:
        UserError: there is no such file, or it is not a program.
    """
    if path.suffix.lower() == ".onnx":
        from ..lowering.onnx_to_graph import import_onnx

        return import_onnx(path)
    try:
        text = read_whole(path).decode()
        module = Parser(context, text, str(path)).parse_module()
        module.verify()
    except UnicodeDecodeError as error:
        raise UserError("this is not text (UTF-8)", where=str(path)) from error
    except ParseError as error:
        raise UserError(one_line(error.msg), where=str(path)) from error
    named = module.attributes.get("isoform.weights")
    side = path.parent / named.data if isinstance(named, StringAttr) else None
    found = side is not None and side.is_file()
    return Program(module, load_safetensors(side) if found and side else Weights(), str(path))
