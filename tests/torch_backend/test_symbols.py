"""Sizes of torch.export that are symbols stay symbols: one program serves many of them.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isoform

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn = torch.nn

from isoform.compiler.targets.dynamic_session import DynamicSession  # noqa: E402
from isoform.compiler.torch_backend import dynamo_backend  # noqa: E402
from isoform.compiler.torch_backend.dynamo_backend import CompiledGraph  # noqa: E402
from isoform.compiler.torch_backend.part import Part  # noqa: E402


class Encoder(nn.Module):
    """Tokens, positions, a causal mask, attention and a mean: what sizes are computed of."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.project = nn.Embedding(50, 16), nn.Linear(16, 48)

    def forward(self, ids: Any) -> Any:
        batch, seq = ids.shape
        x = self.tokens(ids) + torch.arange(seq)[None, :, None].float() * 0.01
        q, k, v = self.project(x).view(batch, seq, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.ones(seq, seq, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -1e9).softmax(-1)
        return (scores @ v).transpose(1, 2).reshape(batch, seq, 16).mean(1), x[:, -1]


def programs(session: Any) -> int:
    assert isinstance(session, DynamicSession)
    return session.programs


def test_sizes_that_were_not_met_compile_nothing() -> None:
    torch.manual_seed(0)
    module = Encoder().eval()
    dims = ({0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("seq", max=64)},)
    program = isoform.from_torch(module, torch.zeros((2, 8), dtype=torch.int64), dims)
    session = isoform.compile(program, effort="quick", threads=1)
    counts: list[int] = []
    for shape in ((2, 8), (3, 9), (3, 10), (4, 15), (3, 14), (4, 11)):
        ids = torch.randint(0, 50, shape)
        with torch.no_grad():
            wanted = module(ids)
        found = session(ids.numpy())
        for a, b in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)
        counts.append(programs(session))
    assert counts[2:] == [counts[2]] * 4


def test_torch_compile_with_dynamic_sizes_compiles_for_many() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, graphs = Encoder().eval(), []

    class Watched(CompiledGraph):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            graphs.append(self)

    compiled = torch.compile(module, backend=isoform.torch.backend, dynamic=True)
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(dynamo_backend, "CompiledGraph", Watched)
        for shape in ((2, 8), (3, 9), (3, 10), (4, 15), (3, 14), (4, 11)):
            ids = torch.randint(0, 50, shape)
            for a, b in zip(compiled(ids), module(ids), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
                assert a.stride() == b.stride()
    (graph,) = graphs
    (entry,) = [e for found in graph.entries.values() for e in found]
    assert entry.symbols is not None  # no shape was compiled by itself
    parts = [m for m in entry.partition.module.modules() if isinstance(m, Part)]
    assert [programs(p.session) for p in parts] == [2]  # of the first size, and of a bound


def test_layouts_in_memory_may_be_any_at_each_size() -> None:
    torch._dynamo.reset()

    def shift(x: Any, y: Any) -> Any:
        return (x + 1).transpose(0, 1) * y, (x * 2).sum(0), y.expand(2, *y.shape) + 1

    compiled = torch.compile(shift, backend=isoform.torch.backend, dynamic=True)
    with torch.no_grad():
        for n, m in ((4, 6), (5, 7), (6, 8), (7, 5)):
            x = torch.randn(m, n).t() if n % 2 else torch.randn(n, 2 * m)[:, ::2]
            y = torch.randn(m, 1).expand(m, n)
            for a, b in zip(compiled(x, y), shift(x, y), strict=True):
                torch.testing.assert_close(a, b)


def test_a_guard_that_a_size_breaks_is_another_program() -> None:
    class Grows(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.cat([x, y], 0).cumsum(0)[: x.shape[0]] * (x.shape[0] % 3)

    n = torch.export.Dim("n", min=2, max=50)
    module, args = Grows().eval(), (torch.randn(4, 3), torch.randn(4, 3))
    program = isoform.from_torch(module, args, ({0: n}, {0: n}))
    session = isoform.compile(program, effort="quick", threads=1)
    for rows in (4, 5, 7, 6, 4):
        x, y = torch.randn(rows, 3), torch.randn(rows, 3)
        found = session(x.numpy(), y.numpy())["output"]
        np.testing.assert_allclose(found, module(x, y).numpy(), rtol=1e-5, atol=1e-5)
