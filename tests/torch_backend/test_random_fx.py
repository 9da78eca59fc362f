"""Random functions of torch calls agree with eager: aliases, in-place ops, views, mixed dtypes.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import isoform

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAMS = 200
FIRST = int(os.environ.get("ISOFORM_TORCH_FIRST", "0"))  # other programs: 200, 400, ...
STEPS = 9
Step = Callable[[list[Any]], Any]


class Program:
    """A random function of three tensors, written as steps that read earlier values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.args = self._arguments()
        self.steps: list[Step] = []
        values = list(deepcopy(self.args))
        for _ in range(STEPS):
            step = self._step(values)
            values.append(step(values))
            self.steps.append(step)
        tensors = [k for k, v in enumerate(values) if isinstance(v, torch.Tensor)]
        self.results = [int(k) for k in self.rng.choice(tensors[3:], 3)]

    def __call__(self, *args: Any) -> Any:
        values = list(args)
        for step in self.steps:
            values.append(step(values))
        return tuple(values[k] for k in self.results)

    def _pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def _arguments(self) -> tuple[Any, ...]:
        base = torch.from_numpy(self.rng.standard_normal((4, 6)).astype(np.float32))
        x = self._pick([base, base.t().contiguous().t(), base[:, :1].expand(4, 6)])
        y = torch.from_numpy(self.rng.integers(-3, 4, (4, 6)))
        wide = torch.from_numpy(self.rng.standard_normal((4, 12)).astype(np.float32))
        z = self._pick([wide[:, ::2], wide[:, 6:], wide[:, :6].bfloat16(), wide[:, :6].double()])
        return x, y, z

    def _step(self, values: list[Any]) -> Step:
        kind = self._pick(["unary", "binary", "view", "view", "write", "move", "reduce", "compare"])
        k, j = (int(self.rng.integers(len(values))) for _ in range(2))
        return getattr(self, f"_{kind}")(values, k, j)

    def _unary(self, values: list[Any], k: int, j: int) -> Step:
        f = self._pick([torch.sin, torch.tanh, torch.sigmoid, torch.exp, torch.nn.functional.gelu,
                        torch.sort, torch.cummax])  # fmt: skip
        if f is torch.sort:
            return lambda v: torch.sort(v[k].reshape(-1)).values
        if f is torch.cummax:  # torch runs it
            return lambda v: torch.cummax(v[k].reshape(-1), 0).values
        return lambda v: f(v[k].float().clamp(-3, 3))

    def _binary(self, values: list[Any], k: int, j: int) -> Step:
        f = self._pick([torch.add, torch.sub, torch.mul, torch.maximum])
        if not _broadcast(values[k], values[j]) or torch.bool in (values[k].dtype, values[j].dtype):
            return lambda v: v[k] + 1
        return lambda v: f(v[k], v[j])

    def _view(self, values: list[Any], k: int, j: int) -> Step:
        rank = values[k].dim()
        if rank < 2:
            return lambda v: v[k].unsqueeze(0)
        a = int(self.rng.integers(rank))
        return self._pick([
            lambda v: v[k].transpose(0, 1),
            lambda v: v[k].select(a, 0),
            lambda v: v[k].narrow(a, 0, (v[k].shape[a] + 1) // 2),
            lambda v: v[k].flip(a),
            lambda v: v[k].unsqueeze(a),
            lambda v: v[k].reshape(-1),
            lambda v: v[k][..., ::2],
            lambda v: v[k].chunk(2, a)[0],
        ])  # fmt: skip

    def _write(self, values: list[Any], k: int, j: int) -> Step:
        """Changes a value in place, where no two elements share memory."""
        if 0 in values[k].stride() or values[k].dtype == torch.bool:
            return lambda v: v[k] * 2
        return self._pick([
            lambda v: v[k].add_(1),
            lambda v: v[k].mul_(2),
            lambda v: v[k].clamp_(-1, 1),
            lambda v: v[k].zero_(),
            lambda v: v[k].copy_(v[k].flip(0)) if v[k].dim() else v[k].neg_(),
        ])  # fmt: skip

    def _move(self, values: list[Any], k: int, j: int) -> Step:
        kind = self._pick([torch.float32, torch.float64, torch.bfloat16, torch.int64])
        finite = lambda t: t if not t.is_floating_point() else t.clamp(-50, 50)  # noqa: E731
        return self._pick([
            lambda v: finite(v[k]).to(kind),
            lambda v: v[k].clone(),
            lambda v: v[k].contiguous(),
            lambda v: torch.cat([v[k].reshape(-1), v[j].reshape(-1)]),
        ])  # fmt: skip

    def _reduce(self, values: list[Any], k: int, j: int) -> Step:
        if values[k].dim() == 0 or 0 in values[k].shape:
            return lambda v: v[k].clone()
        a = int(self.rng.integers(values[k].dim()))
        return self._pick([
            lambda v: v[k].sum(a),
            lambda v: v[k].float().mean(a, keepdim=True),
            lambda v: v[k].amax(a),
            lambda v: v[k].float().softmax(a),
            lambda v: v[k].float().cumsum(a),
        ])  # fmt: skip

    def _compare(self, values: list[Any], k: int, j: int) -> Step:
        if not _broadcast(values[k], values[j]):
            return lambda v: v[k] > 0
        return self._pick([
            lambda v: v[k] < v[j],
            lambda v: torch.where(v[k] > 0, v[k], v[j]),
            lambda v: (v[k] == v[j]) | (v[k] > 1),
        ])  # fmt: skip


def _broadcast(a: Any, b: Any) -> bool:
    try:
        return bool(np.broadcast_shapes(a.shape, b.shape)) or True
    except ValueError:
        return False


def agree(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        near = 5e-2 if b.dtype == torch.bfloat16 else 1e-4
        torch.testing.assert_close(a, b, rtol=near, atol=near, equal_nan=True)


def aliases(tensors: Any) -> list[list[bool]]:
    """Which of the tensors share memory."""
    kept = [t for t in tensors if t.numel()]
    at = [t.untyped_storage().data_ptr() for t in kept]
    return [[a == b for b in at] for a in at]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_program_agrees(seed: int) -> None:
    torch._dynamo.reset()
    torch.set_num_threads(1)
    program = Program(seed)
    mine, theirs = deepcopy(program.args), deepcopy(program.args)
    compiled = torch.compile(
        program.__call__, backend=isoform.torch.backend, options={"effort": "quick"}
    )
    with torch.no_grad():
        found, wanted = compiled(*mine), program(*theirs)
    agree(found, wanted)
    agree(mine, theirs)
    assert aliases((*found, *mine)) == aliases((*wanted, *theirs))
