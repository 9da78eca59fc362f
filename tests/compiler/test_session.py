"""Sessions: calling conventions, checks of inputs, threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from xdsl.dialects.builtin import i64

import isoform
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program


def program() -> Program:
    b = GraphBuilder()
    x, y = b.input("x", (2, 3)), b.input("y", (2, 3))
    b.output("sum", b.add(x, y))
    b.output("product", b.mul(x, b.add(y, b.weight("w", np.ones((2, 3), np.float32)))))
    return b.build()


@pytest.fixture(params=["reference", "cpu"])
def session(request: pytest.FixtureRequest) -> isoform.Session:
    return isoform.compile(program(), target=request.param, threads=1)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((2, 3), np.float32)


def test_by_name_by_position_and_as_in_onnxruntime(session: isoform.Session) -> None:
    for outputs in (session(x=X, y=Y), session(X, Y), session(X, y=Y)):
        assert list(outputs) == ["sum", "product"]
        np.testing.assert_array_equal(outputs["sum"], X + 1)
    both = session.run(None, {"y": Y, "x": X})
    np.testing.assert_array_equal(both[1], X * 2)
    (product,) = session.run(["product"], {"x": X, "y": Y})
    np.testing.assert_array_equal(product, X * 2)


def test_it_describes_itself(session: isoform.Session) -> None:
    assert [str(i) for i in session.inputs] == ["x: float32[2, 3]", "y: float32[2, 3]"]
    assert [o.name for o in session.outputs] == ["sum", "product"]


def test_any_memory_layout_is_an_input(session: isoform.Session) -> None:
    np.testing.assert_array_equal(session(np.asfortranarray(X), Y[::1, ::-1])["sum"], X + 1)


def test_outputs_are_the_callers(session: isoform.Session) -> None:
    first = session(X, Y)["sum"]
    session(X + 1, Y)
    np.testing.assert_array_equal(first, X + 1)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": X}, r"input 'y' is missing: expected y: float32\[2, 3\]"),
        ({"x": X, "y": Y, "z": Y}, r"there is no input 'z' \(inputs are x, y\)"),
        (
            {"x": X, "y": Y.astype(np.float64)},
            "'y' has another dtype: expected float32, found float64",
        ),
        ({"x": X[:1], "y": Y}, r"input 'x' has another shape: expected \[2, 3\], found \[1, 3\]"),
    ],
)
def test_wrong_inputs_are_named(
    session: isoform.Session, feeds: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        session.run(None, feeds)


def test_wrong_calls_are_named(session: isoform.Session) -> None:
    with pytest.raises(UserError, match="too many inputs"):
        session(X, Y, Y)
    with pytest.raises(UserError, match="given twice"):
        session(X, x=X)
    with pytest.raises(UserError, match=r"no output 'prodct'.*did you mean 'product'"):
        session.run(["prodct"], {"x": X, "y": Y})


def test_threads_may_share_a_session(session: isoform.Session) -> None:
    def call(k: int) -> float:
        return float(session(X + k, Y)["sum"][0, 0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(100))) == [k + 1.0 for k in range(100)]


def test_a_closed_session_says_so(session: isoform.Session) -> None:
    with session:
        session(X, Y)
    session.close()
    with pytest.raises(UserError, match="this session is closed"):
        session(X, Y)


def test_weights_are_checked_when_compiling() -> None:
    wrong, missing = program(), program()
    wrong.weights = isoform.dialects.weights.Weights({"w": np.ones(4, np.float32)})
    missing.weights = isoform.dialects.weights.Weights()
    with pytest.raises(UserError, match=r"weight 'w' does not fit.*float32\[2, 3\]"):
        isoform.compile(wrong, target="reference")
    with pytest.raises(UserError, match="weight 'w' is not in the weights file"):
        isoform.compile(missing, target="reference")


def test_targets_that_do_not_run_here_say_so() -> None:
    with pytest.raises(UserError, match="cannot run on 'h100' here"):
        isoform.compile(program(), target="h100")
    with pytest.raises(UserError, match=r"unknown target 'cup'.*did you mean 'cpu'"):
        isoform.compile(program(), target="cup")


def test_integers_are_not_floats() -> None:
    b = GraphBuilder()
    b.output("y", b.add(b.input("i", (2,), i64), b.constant(np.array([1, 2]))))
    session = isoform.compile(b.build(), target="reference")
    assert session(i=np.array([1, 1]))["y"].dtype == np.int64
    with pytest.raises(UserError, match="expected int64, found int32"):
        session(i=np.array([1, 1], np.int32))
