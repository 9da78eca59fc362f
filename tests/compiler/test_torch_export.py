"""A torch module is imported as it is, or refused at the line that no program can hold.

Needs torch: CONTRIBUTING.md has the command.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.dialects.errors import UserError

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn: Any = torch.nn
tree_leaves, tree_map = torch.utils._pytree.tree_leaves, torch.utils._pytree.tree_map

X = torch.tensor([1.0, 2.0, 3.0])


def of(forward: Any) -> Any:
    """A module with this forward; by that name, since torch keeps the lines of no other one."""
    forward.__code__ = forward.__code__.replace(co_name="forward")
    return type("Of", (nn.Module,), {"forward": forward})()


def branch(self: Any, x: Any) -> Any:
    if x.sum() > 0:  # HERE
        return x * 2
    return x - 1


def loop(self: Any, x: Any) -> Any:
    for _ in range(int(x[0])):  # HERE
        x = x + 1
    return x


def item(self: Any, x: Any) -> Any:
    return x * x[0].item()  # HERE


def number(self: Any, x: Any) -> Any:
    return x * float(x.mean())  # HERE


def assertion(self: Any, x: Any) -> Any:
    assert x.sum() > 0  # HERE
    return x


def choice(self: Any, x: Any) -> Any:
    return torch.zeros(3) if bool((x > 0).all()) else x  # HERE


def selection(self: Any, x: Any) -> Any:
    return x[x > 0]  # HERE


def array(self: Any, x: Any) -> Any:
    return x + torch.from_numpy(x.numpy() * 2)  # HERE


def nested(self: Any, x: Any) -> Any:
    return branch(self, x) + 1


REFUSED = (branch, loop, item, number, assertion, choice, selection, array)


@pytest.mark.parametrize("function", [*REFUSED, nested], ids=lambda f: f.__name__)
@pytest.mark.parametrize("depth", [0, 2])
def test_what_depends_on_values_is_an_error_at_its_line(function: Any, depth: int) -> None:
    module = of(function)
    for _ in range(depth):
        module = nn.Sequential(nn.Linear(3, 3), module)
    inner = branch if function is nested else function
    code = inner.__code__
    lines = Path(__file__).read_text().splitlines()
    here = next(k for k in range(code.co_firstlineno, len(lines)) if "# HERE" in lines[k]) + 1
    with pytest.raises(UserError) as caught:
        isoform.from_torch(module.eval(), X)
    assert str(caught.value).startswith(f"{__file__}:{here}: ")
    assert "\n" not in str(caught.value)


class Counts(nn.Module):
    """Keeps state in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


class Moves(nn.Module):
    """Keeps state in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(64))

    def forward(self, x: Any) -> Any:
        self.seen += x
        return self.seen * 1


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Counts(), "keeps state"),
        (Moves(), "keeps state"),
        (of(lambda self, x: x + torch.rand(64)), "it is random"),
        (of(lambda self, x: nn.functional.dropout(x, 0.5)), "it is random"),
        (of(lambda self, x: x.add_(1) * 2), "forward changes its input 'x' in place"),
        (of(lambda self, x: (x, "text")), "a result is not a tensor but str"),
    ],
)
def test_state_randomness_and_writes_are_errors(module: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        isoform.from_torch(module.eval(), torch.ones(64))  # enough that no two draws are equal


def called(function: Any, args: Any) -> tuple[list[str], list[str]]:
    """Names of inputs and outputs; the values are those of torch, also for other inputs."""
    module = function if isinstance(function, nn.Module) else _module(function)
    program = isoform.from_torch(module.eval(), args)
    session = isoform.compile(program, target="reference")
    for given in (args, tree_map(_changed, args)):
        feeds = [t.numpy() for t in tree_leaves(given) if t is not None]
        results = module(*given) if isinstance(given, tuple) else module(given)
        wanted = [t.detach().numpy() for t in tree_leaves(results)]
        found = session.run(None, dict(zip(program.input_names, feeds, strict=True)))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return program.input_names, program.output_names


def _changed(value: Any) -> Any:
    return -value if value is not None and value.is_floating_point() else value


def _module(function: Any) -> Any:
    """A module whose forward has the function's parameters."""

    class Wrapped(nn.Module):
        pass

    Wrapped.forward = lambda self, *args: function(*args)
    parameters = inspect.signature(function).parameters.values()
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    Wrapped.forward.__signature__ = inspect.Signature([receiver, *parameters])
    return Wrapped()


def test_names_are_those_of_forward_and_of_keys() -> None:
    assert called(lambda x: x + 1, X) == (["x"], ["output"])
    assert called(lambda b, a: (b - a, a), (X, X)) == (["b", "a"], ["output_0", "output_1"])
    both = lambda d: {"sum": d["a"] + d["b"], "rest": (d["a"],)}  # noqa: E731
    assert called(both, ({"a": X, "b": X},)) == (["d_a", "d_b"], ["sum", "rest_0"])
    assert called(lambda t, u: t[0] + t[1] - u, ((X, X), X))[0] == ["t_0", "t_1", "u"]
    assert called(lambda *xs: xs[0] - xs[1], (X, X))[0] == ["xs_0", "xs_1"]
    assert called(lambda output: output, X) == (["output"], ["output_"])


def test_every_tensor_given_is_an_input() -> None:
    assert called(lambda x, unused: x + 1, (X, X))[0] == ["x", "unused"]
    assert called(lambda unused, x: x + 1, (torch.tensor([1]), X))[0] == ["unused", "x"]
    assert called(lambda x, mask=None: x if mask is None else x * mask, (X, None))[0] == ["x"]
    assert called(lambda x, mask=None: x if mask is None else x * mask, (X, X))[0] == ["x", "mask"]
    assert called(lambda x: torch.ones(2), X)[0] == ["x"]


def test_an_argument_that_is_no_tensor_is_an_error() -> None:
    for value in (2, 2.5, True, "text"):
        with pytest.raises(UserError, match="argument 'k' is not a tensor but"):
            called(lambda x, k: x, (X, value))
    with pytest.raises(UserError, match="missing a required argument: 'y'"):
        called(lambda x, y: x, (X,))


def test_shapes_are_constants() -> None:
    def by_shape(x: Any) -> Any:
        if x.shape[0] > 2:
            return x + torch.tensor(x.shape[0]) + torch.arange(x.shape[0])
        return x

    called(by_shape, X)


def test_layers_of_torch() -> None:
    called(nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)), torch.ones(2, 3))
    called(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), torch.rand(1, 3, 4))
    called(nn.Embedding(5, 4), torch.tensor([1, 2]))
    called(torch.jit.script(nn.Linear(3, 3)), X)


def test_training_mode_is_said_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    isoform.from_torch(module, X)
    assert "warning: Sequential: it is in training mode" in capsys.readouterr().err
    assert module.training
    isoform.from_torch(module.eval(), X)
    printed = capsys.readouterr()
    assert printed.err == printed.out == ""
