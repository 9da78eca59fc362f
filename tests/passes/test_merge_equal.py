"""merge-equal gives what xDSL's cse gives, and looks at each op once."""

import time

import numpy as np
import pytest
from support.clock import clock_of_calls
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from isoform.compiler.pass_manager import run_pipeline
from isoform.compiler.registry import make_context
from isoform.dialects.builder import GraphBuilder
from isoform.passes.merge_equal import MergeEqual
from isoform.testing.random_programs import random_graph


def joined(count: int) -> ModuleOp:
    """Many parts, half of them equal, joined by one op."""
    b = GraphBuilder()
    x = b.input("x", (2, 4))
    parts = [b.mul(x, b.constant(np.full((2, 4), k // 2, np.float32))) for k in range(count)]
    b.output("y", b.concat(*parts, axis=1))
    return b.build().module


def after(module: ModuleOp, passes: str) -> str:
    copy = module.clone()
    run_pipeline(copy, passes, make_context())
    return str(copy)


@pytest.mark.parametrize("seed", range(20))
def test_it_gives_what_cse_gives(seed: int) -> None:
    module = random_graph(seed).module
    for passes in ("{}", "graph-to-algebra,{}", "graph-to-algebra,algebra-to-kernel,{}"):
        found = after(module, passes.format("merge-equal,dce"))
        assert found == after(module, passes.format("cse,dce"))


def test_calls_grow_with_the_size_not_its_square(monkeypatch: pytest.MonkeyPatch) -> None:

    def calls(count: int) -> float:
        module = joined(count)
        run_pipeline(module, "graph-to-algebra", make_context())
        with clock_of_calls(monkeypatch):
            before = time.perf_counter()
            MergeEqual().apply(Context(), module)
            return time.perf_counter() - before

    calls(10)
    assert calls(200) < 6 * calls(50)
