"""Exported programs: parameters keep their names, files are read, what a table lacks goes by ONNX.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.dialects.errors import UserError

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn: Any = torch.nn


def agrees(module: Any, *args: Any) -> isoform.Program:
    """The module's program, after comparing it with the module."""
    program = isoform.from_torch(module.eval(), args)
    feeds = {n: t.numpy() for n, t in zip(program.input_names, args, strict=True)}
    found = isoform.compile(program, effort="quick", threads=1).run(None, feeds)
    with torch.no_grad():
        wanted = torch.utils._pytree.tree_leaves(module(*args))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)
    return program


class Shared(nn.Module):
    """A tied weight, a buffer, and a tensor that is neither."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.other = self.inner
        self.register_buffer("offset", torch.ones(4))
        self.constant = torch.full((4,), 2.0)

    def forward(self, x: Any) -> Any:
        return self.other(self.inner(x)) * self.constant + self.offset


def test_parameters_keep_their_names() -> None:
    program = agrees(Shared(), torch.randn(3, 4))
    assert {"inner.weight", "inner.bias", "offset", "constant"} <= set(program.weights)


LAYER = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.TransformerEncoder(LAYER, 2), (1, 5, 8)),
        (nn.LSTM(4, 6, batch_first=True, bidirectional=True), (2, 3, 4)),
        (nn.GRU(4, 6), (3, 2, 4)),
        (nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2)),
         (1, 3, 16, 16)),
        (nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelUnshuffle(2)),
         (1, 3, 5, 7)),
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_modules_agree(module: Any, shape: tuple[int, ...]) -> None:
    program = agrees(module, torch.randn(shape))
    assert not any(op.name == "graph.opaque" for op in program.main.body.block.ops)


class Shifts(nn.Module):
    """An op that the table lacks and ONNX has."""

    def forward(self, x: Any) -> Any:
        return (x * 8).int() << 2


class Decomposes(nn.Module):
    """An op that neither has."""

    def forward(self, x: Any) -> Any:
        return torch.linalg.qr(x)[1]


def test_what_the_table_lacks_goes_by_onnx() -> None:
    agrees(Shifts(), torch.randn(3, 7).abs())


def test_what_nothing_has_is_named_with_its_line() -> None:
    with pytest.raises(
        UserError, match=rf"{__file__}:\d+: op linalg_qr.default is not in the table"
    ):
        isoform.from_torch(Decomposes().eval(), torch.randn(3, 3))


def test_exported_files_are_read(tmp_path: Path) -> None:
    module, x = Shared().eval(), torch.randn(3, 4)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, (x,)), path)
    program = isoform.load(path)
    assert program.input_names == ["x"] and program.output_names == ["output"]
    found = isoform.compile(program, effort="quick", threads=1)(x=x.numpy())["output"]
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-5, atol=1e-5)
    path.write_text("no archive")
    with pytest.raises(UserError, match="not a readable exported program"):
        isoform.load(path)


class Joins(nn.Module):
    """Sizes decide its shapes, also by arithmetic."""

    def forward(self, x: Any, y: Any) -> Any:
        both = torch.cat([x, y], 1).reshape(x.shape[0], -1, 2)
        return both * torch.arange(both.shape[1])[:, None] + x.shape[0]


def test_sizes_may_be_free(tmp_path: Path) -> None:
    n, k = torch.export.Dim("n", min=2, max=9), torch.export.Dim("k", min=2, max=64)
    dims = {"x": {0: n, 1: 2 * k}, "y": {0: n, 1: 2 * k}}
    module, args = Joins().eval(), (torch.randn(3, 4), torch.randn(3, 4))
    program = isoform.from_torch(module, args, dims)
    rows = {"x": {0: n}, "y": {0: n}}
    torch.export.save(torch.export.export(module, args, dynamic_shapes=rows), tmp_path / "m.pt2")
    for made in (program, isoform.load(tmp_path / "m.pt2")):
        session = isoform.compile(made, effort="quick", threads=1)
        for shape in ((3, 4), (5, 8), (3, 4), (2, 16)) if made is program else ((3, 4), (5, 4)):
            x, y = torch.randn(shape), torch.randn(shape)
            found = session(x=x.numpy(), y=y.numpy())["output"]
            np.testing.assert_allclose(found, module(x, y).numpy(), rtol=1e-5, atol=1e-5)
        x = np.ones((12, 4), np.float32)
        with pytest.raises(UserError, match="input 'x', dim 0: a size is out of range"):
            session(x=x, y=x)
        with pytest.raises(UserError, match=r"input 'y'.* another s"):
            session(x=np.ones((3, 4), np.float32), y=np.ones((3, 8), np.float32))


def test_sizes_by_arithmetic_are_checked() -> None:
    dims = ({0: 2 * torch.export.Dim("k", min=1, max=8)},)
    program = isoform.from_torch(nn.ReLU(), torch.ones(4), dims)
    session = isoform.compile(program, effort="quick", threads=1)
    assert session(np.ones(6, np.float32))["output"].shape == (6,)
    with pytest.raises(UserError, match="dim 0: no such size: expected 2\\*"):
        session(np.ones(7, np.float32))


def test_data_that_decides_a_size_is_still_an_error() -> None:
    class Selects(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[x > 0]

    with pytest.raises(UserError, match="shapes would depend on data"):
        isoform.from_torch(Selects().eval(), torch.randn(5), ({0: torch.export.Dim("n")},))


def test_commands_ask_for_fixed_shapes(tmp_path: Path) -> None:
    dims = ({0: torch.export.Dim("n", min=2, max=9)},)
    exported = torch.export.export(nn.ReLU(), (torch.randn(3, 4),), dynamic_shapes=dims)
    torch.export.save(exported, tmp_path / "model.pt2")
    with pytest.raises(UserError, match="its sizes are symbols"):
        _ = isoform.load(tmp_path / "model.pt2").module
