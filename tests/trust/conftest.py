"""Small programs, their optimised forms, and the command line as a function."""

from pathlib import Path

import pytest
from support.small_network import Command, Outcome, network

from isoform.compiler import api
from isoform.compiler.cli import main

PLANTED = '''
"""A pass whose third rewrite is wrong: relu becomes abs."""
from dataclasses import dataclass

from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriteWalker, RewritePattern
from xdsl.rewriter import Rewriter

from isoform.dialects.graph.elementwise import AbsOp, ClipOp, ReluOp


class ClipRelu(RewritePattern):
    def __init__(self, wrong):
        self.wrong, self.seen = wrong, 0

    def match_and_rewrite(self, op, rewriter, /):
        if isinstance(op, ReluOp):
            self.seen += 1
            wrong = self.seen == self.wrong
            new = AbsOp(op.x) if wrong else ClipOp(op.x, min=0.0, max=float("inf"))
            new.location = op.location
            rewriter.replace(op, new)


@dataclass(frozen=True)
class ReluToClip(ModulePass):
    name = "relu-to-clip"
    wrong: int = 0

    def apply(self, ctx, op):
        PatternRewriteWalker(ClipRelu(self.wrong)).rewrite_module(op)


@dataclass(frozen=True)
class DropRelu(ModulePass):
    name = "drop-relu"

    def apply(self, ctx, op):
        first = next(inner for inner in op.walk() if isinstance(inner, ReluOp))
        Rewriter.replace_op(first, [], [first.x])


PASSES = [ReluToClip, DropRelu]
'''


@pytest.fixture
def isoform(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `isoform`; its exit status, stdout and stderr."""

    def run(*arguments: object) -> Outcome:
        status = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert "a bug;" not in err, err
        return status, out, err

    return run


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """The network as a file."""
    path = tmp_path / "net.mlir"
    api.save(network(), path)
    return path


@pytest.fixture
def relus(tmp_path: Path) -> Path:
    """Five relus whose signs differ, one of them located, and a use of each."""
    path = tmp_path / "relus.mlir"
    path.write_text(
        """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.relu %x : tensor<4xf32>
  %b = graph.relu %y : tensor<4xf32>
  %s = graph.sub %x, %y : tensor<4xf32>
  %c = graph.relu %s : tensor<4xf32> loc("third")
  %t = graph.add %x, %y : tensor<4xf32>
  %d = graph.relu %t : tensor<4xf32>
  %u = graph.mul %x, %y : tensor<4xf32>
  %e = graph.relu %u : tensor<4xf32>
  %ab = graph.sub %a, %b : tensor<4xf32>
  %cd = graph.sub %c, %d : tensor<4xf32>
  %ce = graph.add %cd, %e : tensor<4xf32>
  %r = graph.mul %ce, %ab : tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
    )
    return path


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A plug-in with wrong passes."""
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    return path
