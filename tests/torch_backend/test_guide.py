"""The Python of docs/pytorch.md runs, from top to bottom. Needs torch: CONTRIBUTING.md has the
command.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import isoform

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

GUIDE = Path(__file__).parents[2] / "docs" / "pytorch.md"


def test_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "isoform" not in torch._dynamo.list_backends():  # run without an installed package
        torch._dynamo.register_backend(isoform.torch.backend, name="isoform")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 7
    exec("\n".join(blocks), {})
    assert isoform.load("model.pt2").input_names == ["input"]
    ran = torch._dynamo.utils.counters["isoform"]
    assert ran["run"] == ran["calls"] > 0
