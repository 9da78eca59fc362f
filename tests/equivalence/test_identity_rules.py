"""The rules of `identities`: what each rewrites keeps its value, and is said under its name."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.expressions import inlined, output
from xdsl.dialects.builtin import f32

from isoform.dialects import scalars
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import Apply, Expr, Read, Scope
from isoform.dialects.scalars import FUNCTIONS, call
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.passes.equivalence import symbolic
from isoform.passes.equivalence.identities import STATEMENTS, Rewriter, prove_up_to_functions
from isoform.passes.equivalence.prove import Prover

VALUES = (0.7, 1.9)  # of x and y


def expression(body) -> Expr:
    """What `body` makes of two numbers x and y."""
    b = GraphBuilder()
    x, y = (Source(b.input(name, ()))[()] for name in "xy")
    build = ScopeBuilder()
    made = build.scope(tensor((), f32), body(x, y), (), "sum")
    b.append(build.ops[0])
    b.output("z", made.value)
    return inlined(output(b.build()))


def value_of(expr: Expr, values: dict[str, float]) -> float:
    """The expression's value in float64."""
    total = 0.0
    for term in expr.terms:
        product = float(term.coefficient)
        for f in term.factors:
            if isinstance(f, Read):
                product *= values[f.token]
                continue
            assert isinstance(f, Apply)
            args = [np.float64(value_of(a, values)) for a in f.args]
            function = 1 / args[0] if f.function == "recip" else FUNCTIONS[f.function].numpy(*args)
            product *= float(function)
        total += product
    return total


def recip(x: scalars.Expr) -> scalars.Expr:
    return 1.0 / x


# What is rewritten, the names of the identities that are used, and the calls that are left.
CASES = {
    "exp(x)": (lambda x, y: call("exp", x), [], ["exp"]),
    "exp(3 x)": (lambda x, y: call("exp", x * 3.0), [], ["exp"]),
    "exp(x + y)": (lambda x, y: call("exp", x + y), ["exp-of-sum"], ["exp", "exp"]),
    "exp(-x)": (lambda x, y: call("exp", x * -1.0), ["exp-of-sum"], ["exp", "recip"]),
    "exp(x - 2 y)": (
        lambda x, y: call("exp", x - y * 2.0),
        ["exp-of-sum"],
        ["exp", "exp", "recip"],
    ),
    "tanh(x)": (lambda x, y: call("tanh", x), ["tanh-by-exp"], ["exp", "recip"]),
    "expm1(x)": (lambda x, y: call("expm1", x), ["expm1-by-exp"], ["exp"]),
    "1 / x": (lambda x, y: recip(x), [], ["recip"]),
    "1 / (1 / x)": (lambda x, y: recip(recip(x)), ["reciprocal-of-product"], []),
    "1 / (x y)": (lambda x, y: recip(x * y), ["reciprocal-of-product"], ["recip", "recip"]),
    "1 / (2 x)": (lambda x, y: recip(x * 2.0), ["reciprocal-of-product"], ["recip"]),
    "1 / (x + y)": (lambda x, y: recip(x + y), [], ["recip"]),
    "1 / (2 x + 4 y)": (
        lambda x, y: recip(x * 2.0 + y * 4.0),
        ["reciprocal-of-product"],
        ["recip"],
    ),
    "1 / (1 + exp(x))": (lambda x, y: recip(call("exp", x) + 1.0), [], ["exp", "recip"]),
    "1 / (1 + exp(-x))": (
        lambda x, y: recip(call("exp", x * -1.0) + 1.0),
        ["exp-of-sum", "logistic-symmetry"],
        ["exp", "recip"],
    ),
    "1 / (2 + exp(-x))": (
        lambda x, y: recip(call("exp", x * -1.0) + 2.0),
        ["exp-of-sum", "reciprocal-of-product"],
        ["exp", "recip", "recip"],
    ),
    "x / x": (lambda x, y: x * recip(x) * y, ["cancel"], []),
    "sqrt(x) sqrt(x)": (
        lambda x, y: call("sqrt", x) * call("sqrt", x) * y,
        ["square-of-root"],
        [],
    ),
    "(1 / sqrt(x)) (1 / sqrt(x))": (
        lambda x, y: recip(call("sqrt", x)) * recip(call("sqrt", x)),
        ["square-of-root"],
        ["recip"],
    ),
    "exp(x) exp(x)": (lambda x, y: call("exp", x) * call("exp", x), [], ["exp", "exp"]),
    "sin(-x)": (lambda x, y: call("sin", x * -1.0), ["odd-function"], ["sin"]),
    "sin(x)": (lambda x, y: call("sin", x), [], ["sin"]),
    "cos(-x)": (lambda x, y: call("cos", x * -1.0), ["even-function"], ["cos"]),
    "pow(x, 1/2)": (lambda x, y: call("pow", x, 0.5), ["power-of-half"], ["sqrt"]),
    "pow(x, -1/2)": (lambda x, y: call("pow", x, -0.5), ["power-of-half"], ["recip", "sqrt"]),
    "pow(x, y)": (lambda x, y: call("pow", x, y), [], ["pow"]),
    "x / 3": (lambda x, y: x * float(np.float32(1 / 3)), ["rounded-literal"], []),
    "x / sqrt(2)": (
        lambda x, y: x * float(np.float32(math.sqrt(0.5))),
        ["rounded-literal"],
        ["sqrt"],
    ),
    "pi x": (lambda x, y: x * float(np.float32(math.pi)), [], []),
}


def calls(expr: Expr) -> list[str]:
    """The functions called, each as often as it is."""
    found = [f for t in expr.terms for f in t.factors if isinstance(f, Apply)]
    return sorted(
        [f.function for f in found] + [c for f in found for a in f.args for c in calls(a)]
    )


@pytest.mark.parametrize("case", CASES)
def test_a_rule_keeps_the_value_and_says_its_name(case: str) -> None:
    body, names, left = CASES[case]
    before = expression(body)
    rewriter = Rewriter()
    after = rewriter.expr(before, ())
    reads = [expression(lambda x, y, k=k: (x, y)[k]).terms[0].factors[0].token for k in (0, 1)]
    values = dict(zip(reads, VALUES, strict=True))
    assert value_of(after, values) == pytest.approx(value_of(before, values), rel=1e-6)
    assert sorted(rewriter.used) == names
    assert calls(after) == left
    assert set(names) <= set(STATEMENTS)


def test_an_exact_literal_replaces_its_rounding() -> None:
    after = Rewriter().expr(expression(CASES["x / 3"][0]), ())
    assert after.terms[0].coefficient == Fraction(1, 3)


def scope_of(body, *names: str) -> Scope:
    """The scope of a tensor that `body` makes of inputs with these names."""
    b = GraphBuilder()
    given = [b.input(name, (3,)) for name in "xuv"]
    b.output("y", body(b, *(given["xuv".index(name)] for name in names)))
    return output(b.build())


def test_scopes_with_a_tensor_each_that_the_other_lacks_are_not_written_out(monkeypatch) -> None:
    compared: list[object] = []
    real = symbolic.compare
    monkeypatch.setattr(symbolic, "compare", lambda *a: compared.append(a) or real(*a))

    def proved(one: Scope, other: Scope) -> bool | None:
        return prove_up_to_functions(Prover(), one, other, ()).equal

    apart = [scope_of(lambda b, x, w: b.mul(x, w), "x", name) for name in "uv"]
    assert proved(*apart) is None and not compared
    # What cancels is not read: of these each has a tensor of its own and does not depend on it.
    sums = [scope_of(lambda b, x, w: b.sub(b.add(x, w), w), "x", name) for name in "uv"]
    assert proved(*sums) is True
    # One that has all tensors of the other is written out: some may cancel.
    more = scope_of(lambda b, x, u, v: b.mul(x, b.add(u, v)), "x", "u", "v")
    assert proved(apart[0], more) is False and compared
