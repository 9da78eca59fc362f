"""Every ATen op of the table computes what torch's eager mode does.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest

from isoform.lowering.aten_to_graph.aten import UnsupportedAten
from isoform.lowering.aten_to_graph.table import TABLE

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from support.aten_calls import traced  # noqa: E402
from support.aten_cases import cases  # noqa: E402
from support.aten_op_cases import EXACT, MAKERS  # noqa: E402
from support.aten_variants import CHANGES, variants  # noqa: E402

from isoform.compiler.torch_backend.options import BackendOptions  # noqa: E402
from isoform.compiler.torch_backend.part import Part  # noqa: E402

SEEDS = [int(s) for s in os.environ.get("ISOFORM_TORCH_SEEDS", "1").split(",")]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-9}


def agree(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    near = TOLERANCE.get(wanted.dtype, 1e-5)
    torch.testing.assert_close(found, wanted, rtol=near, atol=near, equal_nan=True)


def test_every_op_has_cases() -> None:
    assert set(MAKERS) == set(TABLE)


@pytest.mark.parametrize("target", sorted(TABLE))
def test_op_agrees_with_eager(target: str) -> None:
    for case in (c for s in SEEDS for c in cases(target, MAKERS[target], seed=s)):
        compare(case)


@pytest.mark.parametrize("target", sorted(EXACT))
def test_op_agrees_where_one_number_decides(target: str) -> None:
    for case in (c for s in SEEDS for c in cases(target, EXACT[target], seed=s)):
        compare(case)


@pytest.mark.parametrize("target", sorted(TABLE))
def test_variants_agree_with_eager(target: str) -> None:
    """Other dtypes and ranks, empty tensors and gaps: right, or left to torch."""
    tried: set[str] = set()
    for case in (c for s in SEEDS for c in cases(target, MAKERS[target], seed=s)):
        for name, variant in variants(case):
            if name not in tried:
                with suppress(UnsupportedAten):
                    compare(variant)
                    tried.add(name)
    assert tried <= set(CHANGES)


def compare(case: Any) -> None:
    module, tensors = traced(case)
    part = Part(module.graph, [None] * len(tensors), BackendOptions(effort="quick"))
    found, wanted = part(*tensors), case.result()
    if isinstance(wanted, torch.Tensor):
        found, wanted = [found], [wanted]
    for a, b in zip(found, wanted, strict=True):
        agree(a, b)
