"""torch.compile with the backend: shapes, strides, views, in-place ops, parameters, and what stays
in torch.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownMemberType=false

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import isoform
from isoform.compiler.reports.check_certificate import recheck
from isoform.dialects.errors import UserError

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn: Any = torch.nn

from isoform.compiler.torch_backend import part  # noqa: E402

QUICK = {"effort": "quick"}


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with torch.no_grad():
        yield


def compiled(function: Any, **options: Any) -> Any:
    backend = isoform.torch.backend
    return torch.compile(function, backend=backend, options={**QUICK, **options})


def same(found: Any, wanted: Any) -> None:
    a, b = (torch.utils._pytree.tree_leaves(v) for v in (found, wanted))
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)
        if isinstance(y, torch.Tensor):
            assert x.stride() == y.stride()


def both(function: Callable[..., Any], *args: Any) -> None:
    """The same results, and the same effects on the arguments."""
    mine = deepcopy(args)
    found = compiled(function)(*mine)
    same(found, function(*args))
    same(mine, args)


def test_strides_of_inputs_and_results() -> None:
    x = torch.randn(3, 4, 5)
    for view in (x, x.permute(2, 0, 1), x[:, 1], x[:, ::2], x[:1].expand(3, 4, 5), x[0, 0, 0]):
        both(lambda t: (t * 2 + 1, torch.exp(t)), view)
    both(lambda t: torch.relu(t) + 1, torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))


def test_results_that_are_views_share_memory() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        return y, y.t(), y[0], x.view(-1), y.relu().unsqueeze(0)

    x = torch.randn(3, 4)
    both(function, x)
    y, turned, row, flat, _ = compiled(function)(x)
    assert turned.data_ptr() == y.data_ptr() == row.data_ptr()
    assert flat.data_ptr() == x.data_ptr()


def test_arguments_that_are_changed_in_place() -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        y[0].mul_(2)
        x[:, 0] = 5
        return x * y

    both(function, torch.randn(3, 4), torch.randn(3, 4))


def test_arguments_that_alias() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        return x + y

    base, other = torch.randn(4, 4), torch.empty(4, 4)
    other.copy_(base)
    found = compiled(function)(base[:2], base[1:3])
    same(found, function(other[:2], other[1:3]))
    same(base, other)


def test_shapes_change() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8)).eval()
    c = compiled(module)
    for n in (3, 5, 2, 7, 1, 0):
        x = torch.randn(n, 4)
        same(c(x), module(x))


def test_numbers_as_arguments() -> None:
    function = lambda x, k, f: x[:k] * f + k  # noqa: E731
    c, x = compiled(function), torch.randn(9)
    for k, f in ((3, 0.5), (4, 1.5), (5, 2.5), (8, 2.5)):
        same(c(x, k, f), function(x, k, f))


def test_changed_parameters_are_seen() -> None:
    module = nn.Linear(4, 4).eval()
    c, x = compiled(module), torch.randn(2, 4)
    same(c(x), module(x))
    module.weight.mul_(2)
    same(c(x), module(x))
    module.load_state_dict(nn.Linear(4, 4).state_dict())
    same(c(x), module(x))
    module.weight = nn.Parameter(torch.randn(4, 4))
    same(c(x), module(x))
    module.weight.data = torch.randn(4, 4)
    same(c(x), module(x))


class Counts(nn.Module):
    """Changes a buffer in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.seen += x
        return self.seen * 2


def test_buffers_that_change() -> None:
    mine, theirs = Counts(), Counts()
    c = compiled(mine)
    for _ in range(4):
        x = torch.randn(3)
        same(c(x), theirs(x))
    same(mine.seen, theirs.seen)


def test_what_is_not_in_the_table_stays_in_torch(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: Any) -> Any:
        values, at = torch.cummax(torch.sin(x) * 2, 1)
        return torch.cos(values) + 1, at

    with caplog.at_level(logging.WARNING, "isoform.torch"):
        both(function, torch.randn(3, 7))
    assert any("op cummax.default is not in the table" in r.getMessage() for r in caplog.records)


def test_a_part_that_does_not_compile_stays_in_torch(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise UserError("no code for it")

    monkeypatch.setattr(part, "compile_cpu", fails)
    with caplog.at_level(logging.WARNING, "isoform.torch"):
        both(lambda x: torch.exp(x) + 1, torch.randn(3))
    assert "a part cannot be compiled: no code for it" in caplog.text


def test_data_decides_and_the_rest_still_runs() -> None:
    def function(x: Any) -> Any:
        y = torch.exp(x) + 1
        if y.sum() > 5:
            return torch.sin(y) * 2
        return y[y > 1.5] * 3

    both(function, torch.ones(3))
    both(function, -torch.ones(2))


def test_branches_that_are_graphs_stay_in_torch() -> None:
    def function(x: Any) -> Any:
        y = torch.exp(x)
        return torch.cond(y.sum() > 5, lambda t: t + 1, lambda t: torch.sin(t) * 2, (y,)) * 3

    for x in (torch.ones(3), -torch.ones(3)):
        both(function, x)


def test_other_devices_stay_in_torch() -> None:
    def function(x: Any) -> Any:
        y = x * 2 + 1
        return y, y.to("meta"), torch.ones(3, device="meta") + 1

    found = compiled(function)(x := torch.randn(3))
    assert [t.device.type for t in found] == ["cpu", "meta", "meta"]
    same(found[0], x * 2 + 1)


def test_dtypes_mix() -> None:
    def function(x: Any, n: Any, b: Any, h: Any) -> Any:
        return x + n, torch.where(b, h, x), n // 2 + b, (h * h).to(torch.float32), b & (n > 1)

    h = torch.randn(4, dtype=torch.bfloat16)
    both(function, torch.randn(4), torch.arange(4), torch.tensor([True, False, True, True]), h)


def test_training_falls_back(caplog: pytest.LogCaptureFixture) -> None:
    module = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    with torch.enable_grad(), caplog.at_level(logging.WARNING, "isoform.torch"):
        compiled(module)(x).sum().backward()
    assert module.weight.grad is not None
    assert "gradients are wanted" in caplog.text


def test_inference_mode() -> None:
    module = nn.Linear(4, 4).eval()
    with torch.inference_mode():
        x = torch.randn(2, 4)
        same(compiled(module)(x), module(x))


def test_unknown_options_are_errors() -> None:
    for options, words in (
        ({"budgt": 1}, "no option 'budgt' .did you mean 'budget'"),
        ({"tolerance": -1}, "option 'tolerance' is a number from 0 up"),
        ({"effort": "huge"}, "unknown effort: expected quick, default, max, found huge"),
        ({"certificate": 3}, "option 'certificate' is a folder"),
    ):
        with pytest.raises(UserError, match=words):
            isoform.torch.backend(None, [], options=options)


def test_certificates_are_written(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    c, x = compiled(module, budget=2.0, certificate=tmp_path), torch.randn(2, 4)
    same(c(x), module(x))
    (path,) = tmp_path.glob("*.json")
    assert recheck(path).verdict.kind == "equal"


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_fused_encoder_layer_is_taken_apart(
    norm_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    how = {"batch_first": True, "norm_first": norm_first, "activation": "gelu"}
    layer = nn.TransformerEncoderLayer(8, 2, 16, **how)
    module = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    with caplog.at_level(logging.WARNING, "isoform.torch"):
        both(module, torch.randn(2, 5, 8))
    assert not caplog.records


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_are_unrolled(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    module = getattr(nn, kind)(4, 6, 2, bidirectional=True, batch_first=True).eval()
    allowed = torch._dynamo.config.patch(allow_rnn=True)
    with allowed, caplog.at_level(logging.WARNING, "isoform.torch"):
        found = compiled(module)(x := torch.randn(2, 5, 4))
    torch.testing.assert_close(found, module(x), rtol=1e-5, atol=1e-5)
    assert not caplog.records


def test_modules_are_compared() -> None:
    first = nn.Linear(4, 3).eval()

    class Second(nn.Module):
        def __init__(self, times: float) -> None:
            super().__init__()
            self.first, self.times = first, times

        def forward(self, y: Any) -> Any:
            return (y @ self.first.weight.t() + self.first.bias) * self.times

    x = torch.randn(2, 4)
    assert isoform.torch.verify(first, Second(1.0).eval(), x).kind == "equal"
    assert isoform.torch.verify(first, Second(1.5).eval(), x).kind == "different"
    with pytest.raises(UserError, match="the modules have other results"):
        isoform.torch.verify(first, nn.ReLU().eval(), x)


class Named(torch.Tensor):
    pass


def test_tensors_are_bound_where_they_lie() -> None:
    """Offsets, tensors that are minus what lies there, classes of their own."""
    f = compiled(lambda x: x * 2)
    y, z = torch.randn(4, 6), torch.randn(4, 6, dtype=torch.complex64)
    for x in (torch.randn(40)[7:31].view(4, 6), z.imag, z.conj().imag, torch._neg_view(y)):
        torch.testing.assert_close(f(x), x * 2)
    found = f(torch.ones(4, 6).as_subclass(Named))
    assert isinstance(found, Named)
    assert found.sum() == 48


def test_an_index_out_of_range_is_named_and_later_calls_are_right() -> None:
    f, x = compiled(lambda x, k: x[k] + 1), torch.randn(5, 3)
    with pytest.raises(UserError, match="index 7 at \\[1\\] is out of range"):
        f(x, torch.tensor([0, 7]))
    torch.testing.assert_close(f(x, torch.tensor([-1, 2])), x[[-1, 2]] + 1)


def test_a_tensor_of_another_type_than_compiled_for_is_no_memory_to_read() -> None:
    port = part.TensorPort.of("x", part.Layout.contiguous((2, 3)), torch.zeros(2, 3))
    for wrong in (torch.zeros(2, 3, dtype=torch.int32), torch.zeros(3, 2)):
        with pytest.raises(RuntimeError, match="another shape or type"):
            port.placed(wrong)
